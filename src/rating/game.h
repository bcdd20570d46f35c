/*
 * game.h - the game as people play it in a group: a message or a button press in, changes of the database and replies
 * out.
 *
 * It knows no messenger. Users, groups and topics are numbers from outside; replies are texts, buttons and files.
 *
 * Invariants
 *   1. Everything runs in the caller's transaction. ERR_BUSY with SQLSTATE RT001: a version conflict; the caller
 *      rolls back and calls again with the same input. Nothing is kept in memory between calls.
 *   2. A change of ratings has a key: the bot, the group and the message, or the button press with what it changes,
 *      or, where the message has no id, a hash of the group, the command, its players, scores and the date, or the
 *      transport's id where there is no date either. The same input twice changes nothing twice.
 *   3. Texts are HTML; the caller's function escapes text that users wrote.
 * Threads: any. Ownership: inputs are borrowed, replies live in the transaction's arena.
 */
#ifndef RATING_GAME_H
#define RATING_GAME_H

#include "base/error.h"
#include "base/text.h"
#include "pg/query.h"
#include "rating/ask.h"
#include "rating/phrase.h"
#include "rating/undo.h"

#define GAME_PER_USER \
    30 /* commands a minute of one user in a group, or in the chat with the bot, unless the input says another */
#define GAME_PER_GROUP     300 /* of a group */
#define GAME_PAGE          10  /* places of a leaderboard */
#define GAME_REPLIES_MAX   4
#define GAME_BUTTONS_MAX   8
#define GAME_DATA_MAX      64 /* bytes of a button's data */
#define GAME_CHART_PLAYERS 8  /* that may be named; the best GAME_CHART_BEST unless some are */
#define GAME_CHART_BEST    5
#define GAME_CHARTS        5 /* of a group in a minute */
#define GAME_FILE_MAX      ((size_t)2 << 20)

typedef void GameEscape(Text *html, const char *text);
/* The address of a topic, without characters that HTML escapes; NULL: it has none. */
typedef const char *GameTopicUrl(int64_t chat_id, int64_t topic, Arena *arena);
/* How far a change that takes long has come. Called in the transaction, which has none of the text's memory to keep. */
typedef void GameProgress(void *context, const char *html);

typedef enum {
    GAME_MESSAGE,
    GAME_BUTTON,
    GAME_MEMBERS, /* users came or left */
    GAME_ADDED,   /* the bot was added to the group */
    GAME_MOVED,   /* the group has another number */
    GAME_REMOVED, /* the bot was removed from the group */
} GameKind;

typedef struct {
    GameKind        kind;
    int64_t         chat_id;
    const char     *chat_title;   /* NULL: unknown */
    bool            is_private;   /* a chat with the bot alone */
    int64_t         topic;        /* 0: none, or the general one */
    int64_t         message_id;   /* 0: none. BUTTON: of the message that has the button */
    int64_t         date_s;       /* seconds since 1970; 0: unknown */
    int64_t         update_id;    /* of the transport: the same input again has the same; 0: unknown */
    const GameUser *from;         /* NULL: no single user, as of an anonymous admin */
    int64_t         sender_chat;  /* the chat in whose name it was written, a negative number; 0: none */
    bool            is_anonymous; /* in the name of the group or of a channel: `from` is NULL */
    bool            is_forwarded;
    const char     *language; /* of the user; NULL: unknown */
    const char     *text;     /* NULL: none */
    const GameLink *links;
    int             links_count;
    Ask             ask;                     /* what the text asks for: game_input_parse() */
    const GameUser *reply_to;                /* whose message is answered; NULL: none, or not attributable */
    bool            is_reply;                /* it answers some message */
    const char     *reply_reference;         /* what the answered message is about: "match:42"; NULL: unknown */
    const char     *button_id, *button_data; /* BUTTON */
    const GameUser *came, *left;             /* MEMBERS */
    int             came_count, left_count;
    int64_t         moved_to; /* MOVED: from chat_id to this */
    Admin   admin; /* of `from`, see game_needs_admin(); of an anonymous sender: ADMIN_YES if in the group's own name */
    int64_t bot_id;              /* keys of two bots differ; 0: there is one */
    int     per_user, per_group; /* commands a minute; 0: GAME_PER_USER, GAME_PER_GROUP */
    const char   *bot_name;      /* NULL: unknown */
    GameEscape   *escape;
    GameTopicUrl *topic_url; /* NULL: topics have no addresses */
    GameProgress *progress;  /* NULL: progress is not shown */
    void         *progress_context;
    bool          is_late; /* an earlier try failed and the user was notified */
} GameInput;

typedef struct {
    const char *text; /* plain */
    const char *data; /* 1 to GAME_DATA_MAX bytes */
    bool        ends_row;
} GameButton;

typedef enum {
    GAME_SAY,        /* a new message in the topic of the input, as an answer to it */
    GAME_EDIT,       /* the message that has the pressed button gets this text and these buttons */
    GAME_EDIT_ABOUT, /* the message that is about the reference gets this text and no buttons, if there is one */
    GAME_TOAST,      /* a short plain text for the user who pressed the button; NULL: an empty one */
    GAME_PHOTO,      /* PNG with the text as its caption */
    GAME_DOCUMENT,   /* a file */
} GameReplyKind;

typedef struct {
    GameReplyKind kind;
    const char   *html;
    bool          is_brief; /* TOAST: it goes away by itself; other texts stay until they are closed */
    GameButton    buttons[GAME_BUTTONS_MAX];
    int           buttons_count;
    const char   *reference;  /* "match:42"; NULL: nothing */
    int64_t       message_id; /* EDIT_ABOUT: which that is, written by who sends it; 0: none */
    const void   *file;
    size_t        file_size;
    const char   *file_name;
} GameReply;

typedef struct {
    GameReply   list[GAME_REPLIES_MAX];
    int         count;
    bool        is_ignored; /* beyond a limit: not even a press is answered */
    const char *busy;       /* HTML: what the chat gets if its answers cannot all be sent; NULL: they must be */
} GameOutput;

/* Types of dead letters: what an input changes, if the database fails for it. */
#define GAME_MATCH "match_registration"
#define GAME_UNDO  "match_undo"

/* Parses the text of the input, whose other fields are set. All functions below read what it found. Pure. */
void game_input_parse(GameInput *input, Arena *arena);
/* Which of the types of dead letters it is; NULL: neither. Pure. */
const char *game_operation(const GameInput *input);
/* Which links name players that the command takes, ret_taken[i]: the first two of a match, eight of a chart, none
 * where the text is no command. Returns how many. Pure. */
int game_links_taken(const GameInput *input, bool *ret_taken);
/* Is it within the limits of its user and its group, which is counted when it is run? */
must_check ErrorCode game_is_within_limits(Tx *tx, int64_t group_id, const GameInput *input, bool *ret_is,
                                           Error *reterr);
/* Does the answer depend on whether `from` is an administrator of the group? Pure. */
bool game_needs_admin(const GameInput *input);
/* Inputs that share a transaction: one, or several of different groups. Their matches are registered together, in
 * six round trips for any number of them; what else they ask for takes the round trips that it takes alone. After
 * an error none of them was done. */
must_check ErrorCode game_run(Tx *tx, const GameInput *inputs, int count, GameOutput *ret_outputs, Error *reterr);
/* Messages that are no commands, also several of one group: notes who wrote them, as game_run() would, in one round
 * trip or a few. */
must_check ErrorCode game_seen(Tx *tx, const GameInput *inputs, int count, Error *reterr);
/* The text for an input that failed for good or is delayed by an outage. It uses no database, so the language is the
 * user's. false: the input was no command, and there is nothing to say. */
bool game_failed(const GameInput *input, const Error *why, Arena *arena, GameOutput *ret_output);

#endif
