/*
 * send.h - commands into the bus, alone, in arrays, or combined with those of other callers.
 *
 * Invariants
 *   1. A command has its id before it is sent (made here if the caller gave none), so sending is keyed: after a lost response
 *      it is sent again and is still one command.
 *   2. A refusal (same id, another type or payload; a bad field) is the verdict of its item and of no other.
 *   3. A concurrent send of the same id, in another transaction that has not ended, is not waited for in a shared transaction: the
 *      item is tried again apart from the others, until that transaction has ended or its own deadline passes (ERR_BUSY). So is an item whose
 *      reply queue is being created or whose batch is being sealed.
 *   4. Nothing is notified inside the transaction; the waker (waker.h) notifies workers afterwards.
 *   5. What a worker of this process has a free handler for is leased to it by the send, and begins after the commit (offer.h). Not in send_in(): its
 *      transaction is the caller's, who says what starts by a SendStart.
 * Threads: any. Ownership: items are borrowed; result texts live in the arena.
 */
#ifndef BUS_SEND_H
#define BUS_SEND_H

#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/uuid.h"
#include "pg/pool.h"
#include "pg/query.h"

#define SEND_DOMAIN_MAX      63
#define SEND_TYPE_MAX        100
#define SEND_REPLY_TO_MAX    (SEND_DOMAIN_MAX + SEND_TYPE_MAX + 9) /* command:DOMAIN/TYPE */
#define SEND_CORRELATION_MAX 200
#define SEND_ORDER_KEY_MAX   200
#define SEND_DELAY_S_MAX     315360000 /* ten years */
#define SEND_KEY_MAX         200       /* of a text in place of the id */
#define SEND_UNIQUE_KEY_MAX  200
#define SEND_PRIORITY_MAX    9
#define SEND_ATTEMPTS_MAX    1000
#define SEND_BATCH_MAX       10000
#define SEND_PAYLOAD_MAX     ((size_t)4 << 20)
#define SEND_EXPANDED_MAX    ((size_t)16 << 20) /* bytes of a payload or result when its numbers are written out */

/* How many digits the exponents of its numbers add when JSON is written out: PostgreSQL writes 1e131071 in full. */
size_t send_exponents_sum(const char *json);

typedef struct {
    const char *domain, *type;
    const char *payload;           /* JSON; NULL: {} */
    const char *command_id;        /* NULL: made, into id */
    bool        is_keyed;          /* command_id is that of a sender's key: refused if another domain has it */
    const char *key;               /* text in place of command_id, for send_keys_take(); NULL: none */
    int64_t     delay_ms;          /* 0: none */
    int         priority;          /* 0 to 9; SEND_DEFAULT: 4 */
    int         max_attempts;      /* 1 to 1000; SEND_DEFAULT: 3 */
    const char *reply_to;          /* target of the outcome: a queue, or "command:DOMAIN/TYPE"; NULL: no reply */
    bool        replies_to_module; /* reply_to is a target that only a module uses; PostgreSQL checks it */
    const char *correlation_id;    /* NULL: none */
    const char *batch_id;          /* NULL: none */
    const char *attached;          /* text for the module that reserves the domain; NULL: none */
    const char *order_key; /* commands of the domain with the same key run one at a time, in order; NULL: none */
    /* While another command has this key, nothing is sent: see sql/bus/unique.sql. NULL: none. */
    const char *unique_key;
    const char *unique_for;          /* "queued", "active" or a duration such as "1h"; NULL: active */
    const char *on_duplicate;        /* one of duplicate_actions; NULL: keep */
    const char *actor;               /* the sender, for the audit; NULL: none */
    const char *noun, *payload_noun; /* what messages call the command and its payload; NULL: so */
    /* The verdict. */
    char        id[UUID_TEXT_SIZE];
    bool        is_new;
    const char *status;
    const char *
        duplicate; /* one of duplicate_ends: what became of the command that has the unique key; NULL: it is no duplicate */
    char      first_id[UUID_TEXT_SIZE]; /* the id of that command; else id */
    bool      is_started;               /* a worker of this process has it already (offer.h): none is to be notified */
    ErrorCode code;                     /* OK, ERR_KEY_REUSED, ERR_INVALID, ... */
    Error     error;
    bool
        busy; /* ERR_BUSY, because another transaction that has not ended sends the same id, or holds the reply queue or
                       * the batch; nothing was done */
    /* For sender_submit(). */
    void (*on_done)(void *context);
    void *context;
    /* Set by sender_submit(). */
    struct Sender *sender;
    Deadline       deadline;
} SendItem;
#define SEND_DEFAULT (-1)
extern const char *const duplicate_actions[], *const duplicate_ends[]; /* NULL-terminated, in the same order */

/* ERR_INVALID names the field: no command can have this type. */
must_check ErrorCode send_check_domain(const char *field, const char *domain, Error *reterr);
must_check ErrorCode send_check_type(const char *field, const char *type, Error *reterr);
/* scope: of a unique key, as in SendItem. */
must_check ErrorCode send_check_unique_for(const char *field, const char *scope, Error *reterr);
/* Check what can be known without the database: names, ranges, JSON and UTF-8. ERR_INVALID, ERR_LIMIT name the field. */
must_check ErrorCode send_check(const SendItem *item, Error *reterr);

/* All in one transaction; a verdict for each. Items may be of different domains and batches. What send_check() refuses is not
 * sent. The return value is about the transaction: when PostgreSQL cannot read one of the payloads (a number too large for
 * jsonb) none is sent: see send_each(). ERR_LIMIT: too many, or too large for the arena. */
must_check ErrorCode send_many(Pool *pool, Deadline deadline, Arena *arena, SendItem **items, int count, Error *reterr);

/* The same, but what PostgreSQL refuses is the verdict of its item alone: the others are sent without it, in transactions
 * of their own. nowait: what another transaction is sending, or has locked, is not waited for, but busy. Statuses are
 * constants. */
void send_each(Pool *pool, Deadline deadline, bool nowait, SendItem **items, int count);

/* send_many() as part of a transaction. Each item has its command_id, because a transaction may be run again. */
must_check ErrorCode send_in(Tx *tx, SendItem **items, int count, Error *reterr);
/* The same for one item that starts on a free handler of this process, in a transaction of pawl's own:
 *     send_start_offer() -> the transaction, with send_start_in() -> send_start_end() with how it ended */
typedef struct SendStart SendStart;
SendStart               *send_start_offer(Pool *pool, Arena *arena, SendItem *item);
must_check ErrorCode     send_start_in(Tx *tx, SendStart *start, Error *reterr);
void                     send_start_end(SendStart *start, ErrorCode code);
/* Into the metrics, when that transaction has committed; send_many() and sender_send() do so themselves. */
void send_count(SendItem *const *items, int count);

/* The id of a text key, as pawl.key() in SQL has it for the role of the session. ERR_INVALID: it is empty or too long. */
must_check ErrorCode send_key_id(Pool *pool, Deadline deadline, Arena *arena, const char *key, const char **ret_id,
                                 Error *reterr);

/* Give the items with keys their ids, which live in the arena, in this transaction, or if tx is NULL in one of its own. A wrong key, or one that is
 * not the item's id, is the verdict of its item. */
must_check ErrorCode send_keys_take(Pool *pool, Tx *tx, Deadline deadline, Arena *arena, SendItem *items, int count,
                                    Error *reterr);

/* Was nothing ever sent to this domain? Then *ret_nearest is the name of another one that may be meant; NULL: none is near. */
must_check ErrorCode send_domain_nearest(Pool *pool, Deadline deadline, Arena *arena, const char *domain,
                                         bool *ret_is_new, const char **ret_nearest, Error *reterr);

/* One command through a combiner: callers at the same time share a transaction. */
typedef struct Sender Sender;
Sender               *sender_new(Pool *pool);
void                  sender_free(Sender *sender);
SCOPED(Sender, sender_free)
/* Returns the item's verdict, with its message. status is one of a few constants. */
must_check ErrorCode sender_send(Sender *sender, Deadline deadline, SendItem *item, Error *reterr);
/* The same without waiting: item->on_done(item->context) is called exactly once, on another thread or in here; then item->code is
 * the verdict and item->error has its message. The item is borrowed until then. */
void sender_submit(Sender *sender, Deadline deadline, SendItem *item);

#endif
