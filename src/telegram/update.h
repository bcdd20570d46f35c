/*
 * update.h - an update of the Bot API as plain structs: messages, edits, button presses, members that join and leave.
 *
 * Parsing is tolerant. Fields that are missing, null or of another type are absent, unknown ones are ignored, dates
 * in milliseconds become seconds. Only what is not JSON, or has no update_id, is refused.
 *
 * Invariants
 *   1. Texts are UTF-8 with a NUL behind. Entities are ranges of bytes of their text, whole characters, inside of it:
 *      the Bot API's UTF-16 offsets are converted, and an entity that points elsewhere is left out.
 *   2. thread_id is the topic that an answer has to be sent to. It is 0 in the General topic and outside of forums,
 *      where answers must not name one.
 * Threads: any. Ownership: everything lives in the arena given.
 */
#ifndef TELEGRAM_UPDATE_H
#define TELEGRAM_UPDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct {
    int64_t     id;
    bool        is_bot;
    const char *first_name, *last_name, *username, *language_code; /* NULL: absent; username without "@" */
} TelegramUser;

typedef enum {
    TELEGRAM_CHAT_UNKNOWN,
    TELEGRAM_CHAT_PRIVATE,
    TELEGRAM_CHAT_GROUP,
    TELEGRAM_CHAT_SUPERGROUP,
    TELEGRAM_CHAT_CHANNEL,
} TelegramChatType;

typedef struct {
    int64_t          id; /* 0: absent */
    TelegramChatType type;
    const char      *title; /* NULL: absent */
    bool             is_forum;
} TelegramChat;

typedef enum {
    TELEGRAM_ENTITY_OTHER,
    TELEGRAM_ENTITY_COMMAND,      /* "/match@bot" */
    TELEGRAM_ENTITY_MENTION,      /* "@name": no id comes with it */
    TELEGRAM_ENTITY_TEXT_MENTION, /* a name that is linked to a user */
} TelegramEntityType;

typedef struct {
    TelegramEntityType  type;
    size_t              offset, length; /* bytes of the text */
    const TelegramUser *user;           /* TEXT_MENTION, NULL otherwise */
} TelegramEntity;

typedef struct TelegramMessage TelegramMessage;
struct TelegramMessage {
    int64_t                id;   /* unique in its chat; 0: absent, or a message that the server has scheduled */
    int64_t                date; /* seconds since 1970; 0: absent */
    int64_t                thread_id;
    TelegramChat           chat;
    const TelegramUser    *from;         /* NULL: absent */
    bool                   is_anonymous; /* sent in the name of a chat: `from` is not who wrote it */
    bool                   has_sender_chat;
    int64_t                sender_chat; /* 0: none */
    bool                   is_own_name; /* and that chat is the group itself: an administrator wrote it */
    bool                   is_forwarded;
    const char            *text; /* of the message, or a caption; NULL: none */
    const TelegramEntity  *entities;
    int                    entities_count;
    const TelegramMessage *reply_to;    /* its own reply_to is NULL; NULL: it is no reply */
    const TelegramUser    *members_new; /* who joined */
    int                    members_new_count;
    const TelegramUser    *member_left;  /* NULL: no member left */
    int64_t                migrate_to;   /* the group became this supergroup; 0: it did not */
    int64_t                migrate_from; /* this supergroup was that group; 0: it was none */
};

/* A button was pressed. */
typedef struct {
    const char            *id; /* "" : absent */
    const TelegramUser    *from;
    const char            *data;     /* of the button; NULL: absent */
    const TelegramMessage *message;  /* that has the button; NULL: inaccessible */
    bool                   is_shown; /* the message has a button with this data, which is the client's word otherwise */
} TelegramCallback;

/* A user whose standing in a chat changed: TELEGRAM_MEMBER of others, TELEGRAM_MY_MEMBER of the bot itself. */
typedef struct {
    TelegramChat        chat;
    const TelegramUser *by, *user;
    const char *status_before, *status_after; /* "member", "administrator", "left", "kicked", ...; "" : absent */
    bool        was_in, is_in;                /* creator, administrator, member, or restricted with is_member */
} TelegramMember;

typedef enum {
    TELEGRAM_OTHER, /* of a kind that is not read */
    TELEGRAM_MESSAGE,
    TELEGRAM_EDITED_MESSAGE,
    TELEGRAM_CALLBACK,
    TELEGRAM_MEMBER,
    TELEGRAM_MY_MEMBER,
} TelegramUpdateKind;

typedef struct {
    int64_t                 id;
    TelegramUpdateKind      kind;
    const TelegramMessage  *message;  /* MESSAGE and EDITED_MESSAGE; of CALLBACK what callback->message is */
    const TelegramCallback *callback; /* CALLBACK */
    const TelegramMember   *member;   /* MEMBER and MY_MEMBER */
} TelegramUpdate;

/* ERR_INVALID: not JSON, no object, or without an update_id from 1. ERR_LIMIT: too large for the arena. */
must_check ErrorCode telegram_update_parse(const char *json, size_t size, Arena *arena, TelegramUpdate *ret_update,
                                           Error *reterr);
/* What of its JSON has to be stored: the members that are read, and no others. Of messages that are no command, of
 * edits, of messages with a button and of answered messages that is neither text nor media, of kinds that are not
 * read the id alone. Parsed again it is the same update. */
const char *telegram_update_reduce(const TelegramUpdate *update, const char *json, Arena *arena);
/* Is it something to handle: a command, a press, or news about members and chats? Of other messages only who wrote
 * them counts, of the rest nothing. */
typedef enum { TELEGRAM_USE_NONE, TELEGRAM_USE_AUTHOR, TELEGRAM_USE_WHOLE } TelegramUse;
TelegramUse telegram_update_use(const TelegramUpdate *update);
/* The chat that it belongs to, 0: none. Updates of one chat are handled in order. */
int64_t telegram_update_chat(const TelegramUpdate *update);

/* What the updates of kinds that are read are called: a JSON array for getUpdates and setWebhook. */
extern const char telegram_allowed_updates[];

#endif
