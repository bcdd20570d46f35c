/*
 * update_internal.h - what the files of the update handler share: one update, from its claim to its settle.
 *
 *     update.c           parses it, asks what must be known before, runs it, judges the result
 *     update_prepare.c   calls of the Bot API before the transaction: members and administrators
 *     update_batch.c     the transaction: the game, its messages, the dead letter, the settle
 *     update_progress.c  the message that shows the progress of a long change
 *     update_letter.c    the dead letter of an update that waits for the database
 *
 * An update's changes, its messages and that it is done commit together. The transaction runs again from its
 * beginning if it ends with a code whose verdict is RETRY (ERR_BUSY): after 100, 200 and 400 ms, with the list of
 * messages empty again.
 * Threads: a handler thread, or the combiner's while that waits. Ownership: everything lives in the arena of the job.
 */
#ifndef BOT_UPDATE_INTERNAL_H
#define BOT_UPDATE_INTERNAL_H

#include "base/uuid.h"
#include "bot/translate.h"
#include "bot/update.h"
#include "pg/combiner.h"

typedef struct {
    Handler          base;
    BotUpdateOptions options;
    TelegramPoller  *poller;
    Combiner        *combiner; /* of matches */
} UpdateHandler;

/* The progress of a long change: one message, which is edited while the change runs and replaced by the answer. */
typedef struct {
    char message_id[UUID_TEXT_SIZE]; /* command that sends the message; "" : this update shows no progress */
    bool is_shown;                   /* it may be there: the answer takes its place */
    int  count;                      /* queued by this attempt */
    Mono next;                       /* no edit before */
} UpdateProgress;

typedef struct {
    UpdateHandler *handler;
    Job           *job;
    SettleItem    *settle;
    int64_t        bot_id;
    char           bot_name[TELEGRAM_NAME_SIZE]; /* without "@"; "" : not known yet */
    TelegramUpdate parsed;
    bool           is_game;   /* the game handles it: */
    GameInput      input;     /* what the game is given; */
    const char    *operation; /* the type of its dead letter, NULL: it changes no ratings; */
    BotMessages    messages;  /* the answer; */
    const char    *busy;      /* what a group gets instead that asks too much, NULL: nothing */
    UpdateProgress progress;
    const Error   *failure;     /* why it was given up; NULL: it was not */
    bool           is_late;     /* an earlier attempt failed, or it could not be stored at first */
    bool           is_unstored; /* it could not be stored when it first came */
    bool           conflict;    /* the game returned ERR_BUSY in the last try */
    bool           lost;        /* another worker has the lease */
    bool           apart;       /* its batch has failed: it runs in a transaction of its own */
} BotUpdate;

static inline SettleItem update_settle_begin(const BotUpdate *update)
{
    const ClaimedCommand *command = update->job->command;

    return (SettleItem){.id = command->id, .token = command->token, .delay_ms = SETTLE_DELAY_DEFAULT};
}

/* Asks the Bot API, and the database in a transaction of its own, whether links name members and whether the sender
 * is an administrator. What the server does not answer is unknown. */
must_check ErrorCode update_prepare(BotUpdate *update, Error *reterr);

/* Runs it in a transaction, which matches of several chats share. */
must_check ErrorCode update_run_tx(BotUpdate *update, Deadline deadline, Error *reterr);
Combiner            *update_combiner_new(UpdateHandler *handler);

/*
 * A long change is one transaction, so its progress is queued in others: the message and its edits are commands of
 * the outbox, with the rate and order of all messages of the chat. The message's id is derived from the update's
 * command: another attempt, even by another pod, edits the same message. Progress that cannot be queued within 2 s is
 * skipped. Edits are no closer than the pace of a group.
 */
void update_progress_init(BotUpdate *update);

/*
 * Matches and undos that wait because the database failed have a dead letter (sql/bot/letter.sql): it shows operators
 * that they wait. It is written when the database is available again, before the next attempt, and resolved in the
 * transaction that completes the update. Updates that change no ratings have none, and these functions do nothing.
 */
must_check ErrorCode update_letter_keep(const BotUpdate *update, Deadline deadline, const Error *why, Error *reterr);
must_check ErrorCode update_letter_keep_in(Tx *tx, const BotUpdate *update, const Error *why, Error *reterr);
/* The update is done, or was given up (update->failure). */
must_check ErrorCode update_letter_end(Tx *tx, const BotUpdate *update, Error *reterr);

#endif
