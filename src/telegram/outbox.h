/*
 * outbox.h - outgoing messages as commands of the bus: queued in the transaction that decided them, sent in the order
 * of their chat, paced.
 *
 *     telegram:123           updates of bot 123, ordered by chat
 *     telegram:123:outbox    what it sends, ordered by chat
 *
 * Invariants
 *   1. The id of an outgoing command is derived from the update's id and its number in the list, so an update that is
 *      handled again sends nothing twice.
 *   2. At most size_max messages of a bot wait, and of one chat at most 250 (pawl.telegram_share()). What is beyond
 *      is refused, logged and counted; the transaction is not affected. Messages that are first (outgoing.h) have a
 *      share of their own, go before the others of their chat, and are not refused: the transaction fails, and is to
 *      be run again later. Answers to button presses do not count among them: at most 200 wait, with one attempt, for
 *      at most a minute. Processes that queue at the same time may exceed it by what they queue together.
 *   3. All pods share the rate limits (sql/telegram/pace.sql): a chat gets 1 message a second, a group 20 a minute,
 *      all together 30 a second. A 429 pauses its chat for as long as the server says, uses up no attempt, and delays
 *      no other chat. One for an answer to a button press pauses these answers only.
 *   4. A message is sent at least once; twice only if the pod died, or the response was lost, after the server had
 *      sent it and before the commit.
 * Threads: any. Ownership: the pool and the bot are borrowed.
 */
#ifndef TELEGRAM_OUTBOX_H
#define TELEGRAM_OUTBOX_H

#include "bus/worker.h"
#include "pg/query.h"
#include "telegram/bot.h"
#include "telegram/outgoing.h"

#define TELEGRAM_DOMAIN_SIZE 64
#define TELEGRAM_OUTBOX_FULL "TG002" /* SQLSTATE: no place for a message that is first */
#define TELEGRAM_ATTEMPTS \
    20 /* of a message that the server may have got; a 429 or an unreachable server uses up none */

/* "telegram:123" and "telegram:123:outbox", in at least TELEGRAM_DOMAIN_SIZE bytes. */
void telegram_domain_updates(int64_t bot_id, char *ret_domain);
void telegram_domain_outbox(int64_t bot_id, char *ret_domain);
bool telegram_domain_is_updates(const char *domain);
bool telegram_domain_is_outbox(const char *domain);
/* A UUID that follows from a text, for ids of commands; UUID_TEXT_SIZE bytes. */
void telegram_uuid(const char *name, char *ret_uuid);

typedef struct {
    Pool        *pool;
    TelegramBot *bot;
    int          size_max;  /* messages that may wait */
    int          chat_ms;   /* between two messages of a chat */
    int          group_max; /* messages of a group in a minute */
    int          all_max;   /* messages in a second */
} TelegramOutboxOptions;

typedef struct TelegramOutbox TelegramOutbox;
TelegramOutbox               *telegram_outbox_new(const TelegramOutboxOptions *options);
void                          telegram_outbox_free(TelegramOutbox *outbox);
SCOPED(TelegramOutbox, telegram_outbox_free)

/* Messages that are queued together. */
typedef struct {
    const char *key; /* what their ids follow from, at most 200 bytes; the same key must come with the same list */
    const TelegramOutgoing *items;
    int                     count;
    /* HTML that a group in which ten messages wait gets instead of these, once a minute; not instead of edits and of
     * messages that are first. NULL: they are queued. */
    const char *busy;
    /* Written by the call. ERR_INVALID, ERR_LIMIT: an item that no server would take; none of these is queued. */
    Error error;
} TelegramPut;
/* Queue all of them in the caller's transaction, by one statement. ERR_LIMIT with SQLSTATE TELEGRAM_OUTBOX_FULL:
 * see above. *ret_refused: how many messages the full outbox did not take, the last ones. */
must_check ErrorCode telegram_outbox_put(TelegramOutbox *outbox, Tx *tx, TelegramPut *puts, int count, int *ret_refused,
                                         Error *reterr);
/* The id of the command that sends item `number` of a list that is queued under a key; UUID_TEXT_SIZE bytes. */
void telegram_outbox_id(const TelegramOutbox *outbox, const char *key, int number, char *ret_id);
/* The time between two messages of a group, if it gets as many as it may. */
int telegram_outbox_pace_ms(const TelegramOutbox *outbox);
/* Calls in a second, of all pods. */
int telegram_outbox_per_second(const TelegramOutbox *outbox);
/* What a message that the bot has sent is about: the reference given with it. NULL: none is known. */
must_check ErrorCode telegram_reference_find(Tx *tx, int64_t bot_id, int64_t chat_id, int64_t message_id,
                                             const char **ret_reference, Error *reterr);
/* The last message of a chat that the bot has sent with this reference; 0: none is known. */
must_check ErrorCode telegram_message_about(Tx *tx, int64_t bot_id, int64_t chat_id, const char *reference,
                                            int64_t *ret_message_id, Error *reterr);
/* Send one now, outside of the outbox, without pacing and at most once: for what cannot be queued because the
 * database is away. */
must_check ErrorCode telegram_send_directly(TelegramBot *bot, const TelegramOutgoing *item, Deadline deadline,
                                            Arena *arena, Error *reterr);

/* Runs the commands of the outbox. */
Handler *telegram_outbox_handler(TelegramOutbox *outbox);

#endif
