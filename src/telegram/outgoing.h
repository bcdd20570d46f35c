/*
 * outgoing.h - a call of the Bot API that sends something, as a struct and as the payload of a command.
 *
 * Outgoing items are commands of the bus in the domain of their bot's outbox (outbox.h), ordered by chat.
 * Threads: any. Ownership: items are borrowed; payloads live in the arena.
 */
#ifndef TELEGRAM_OUTGOING_H
#define TELEGRAM_OUTGOING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define TELEGRAM_FILE_MAX      ((size_t)2 << 20) /* bytes of a photo or document */
#define TELEGRAM_DATA_MAX      64                /* bytes of a button's data */
#define TELEGRAM_KEYS_MAX      100               /* buttons of one keyboard */
#define TELEGRAM_REFERENCE_MAX 100

typedef enum {
    TELEGRAM_SEND,     /* sendMessage; a text over the limit becomes several messages */
    TELEGRAM_EDIT,     /* editMessageText; a text over the limit is shortened */
    TELEGRAM_PHOTO,    /* sendPhoto */
    TELEGRAM_DOCUMENT, /* sendDocument */
    TELEGRAM_ANSWER,   /* answerCallbackQuery: not delayed by the chat's messages, dropped when it is too old */
    TELEGRAM_METHOD_COUNT
} TelegramMethod;

/* A button below a message. A row of buttons ends with the one that has ends_row. */
typedef struct {
    const char *text; /* plain */
    const char *data; /* 1 to TELEGRAM_DATA_MAX bytes: comes back in a callback */
    bool        ends_row;
} TelegramButton;

typedef struct {
    TelegramMethod        method;
    int64_t               chat_id;    /* all but ANSWER */
    int64_t               thread_id;  /* topic; 0: none */
    int64_t               reply_to;   /* message id; 0: no reply. A message that is gone is no obstacle */
    int64_t               message_id; /* EDIT */
    const char           *html;       /* text or caption, HTML. ANSWER: plain text of at most 200 units, NULL: none */
    const TelegramButton *buttons;    /* SEND, EDIT, PHOTO */
    int                   buttons_count;
    const void           *file; /* PHOTO, DOCUMENT */
    size_t                file_size;
    const char           *file_name;   /* "ratings.csv" */
    const char           *callback_id; /* ANSWER */
    bool                  is_alert;    /* ANSWER: a dialog instead of a line */
    bool                  is_silent;   /* without a sound */
    bool                  is_first;    /* before the others of its chat, and never refused (outbox.h) */
    bool                  is_busy;     /* a notice of the outbox: the chat asks too much */
    /* SEND, EDIT: the id of an earlier command of the outbox, whose message gets this text. If that was not sent,
     * or is gone, SEND is a new message, and EDIT without a message_id is nothing. NULL: none. */
    const char *replaces;
    /* What the message is about, for telegram_reference_find(): "match:42". NULL: nothing. */
    const char *reference;
} TelegramOutgoing;

/* The longest text that the server takes. */
size_t telegram_outgoing_units_max(TelegramMethod method);

extern const char *const telegram_method_types[TELEGRAM_METHOD_COUNT + 1]; /* types of commands: "send", "edit", ... */

/* ERR_INVALID: a chat, text, button or file that no server would take. ERR_LIMIT: too large. */
must_check ErrorCode telegram_outgoing_write(const TelegramOutgoing *item, Arena *arena, const char **ret_payload,
                                             Error *reterr);
/* The payload of a command back; type as in telegram_method_types. file: base64, for a payload whose file is stored
 * apart; NULL: none. ERR_INVALID: it is none. ERR_LIMIT: its text is longer than the server takes. */
must_check ErrorCode telegram_outgoing_read(const char *type, const char *payload, const char *file, Arena *arena,
                                            TelegramOutgoing *ret_item, Error *reterr);

#endif
