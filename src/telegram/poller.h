/*
 * poller.h - gets the updates of a bot: by long polls, or by a webhook that it registers. One pod of all that share a
 * database polls.
 *
 * A lease in the database says which (sql/telegram/lease.sql). It lasts TELEGRAM_LEASE_MS and is renewed three times
 * in that time; when its holder dies another pod takes over within it, and a holder that stops releases it. At the
 * start of a term the holder requests the bot's name and registers the commands, and the webhook if one is given.
 *
 * Invariants
 *   1. A poll confirms updates that are stored, and no others: the offset is advanced after the commit. While the
 *      database is unavailable the holder polls on without confirming, so that users are notified (intake.h).
 *   2. A 409 says that another program polls: the holder releases the lease and pauses for some seconds. If it says
 *      that a webhook is set, the webhook is removed without dropping pending updates.
 *   3. A server without long polls, which answers immediately and without updates, causes no busy loop.
 * Threads: two of its own, one of them for the lease. stop from any. Ownership: everything in the options is
 * borrowed; bot belongs to the poller alone, which stops its calls.
 */
#ifndef TELEGRAM_POLLER_H
#define TELEGRAM_POLLER_H

#include "telegram/bot.h"
#include "telegram/intake.h"

#define TELEGRAM_LEASE_MS   6000
#define TELEGRAM_POLL_S     25
#define TELEGRAM_NAME_SIZE  128
#define TELEGRAM_SECRET_MAX 256

/* A row for setMyCommands. Rows of one scope and language follow each other. */
typedef struct {
    const char *scope;    /* "all_private_chats", "all_group_chats", "all_chat_administrators" */
    const char *language; /* "" : for all others; "ru" */
    const char *command, *description;
} TelegramCommand;

typedef struct {
    TelegramIntake         intake;
    TelegramBot           *bot;
    bool                   is_webhook;     /* updates come by the webhook: no polls */
    const char            *webhook_url;    /* to register; NULL: the operator has */
    const char            *webhook_secret; /* that comes with each update */
    const TelegramCommand *commands;       /* ended by a NULL command; NULL: none */
    int                    outbox_max;     /* for the metric */
    void (*on_stored)(void *context);      /* updates were stored */
    /* From time to time, in either mode: delete at most so many old rows of each kind. Returns how many rows; NULL:
     * none. */
    int64_t (*on_prune)(void *context, int rows);
    void *context;
} TelegramPollerOptions;

typedef struct TelegramPoller TelegramPoller;
/* Starts. ERR_INTERNAL: no threads. */
must_check ErrorCode telegram_poller_new(const TelegramPollerOptions *options, TelegramPoller **ret_poller,
                                         Error *reterr);
/* No more polls; the one under way ends within about a second. */
void telegram_poller_stop(TelegramPoller *poller);
/* false: it still runs. */
bool telegram_poller_wait(TelegramPoller *poller, Deadline deadline);
/* After telegram_poller_wait() returned true. */
void telegram_poller_free(TelegramPoller *poller);
SCOPED(TelegramPoller, telegram_poller_free)
/* The bot's username, in at least TELEGRAM_NAME_SIZE bytes; "" : not known yet. */
void telegram_poller_name(TelegramPoller *poller, char *ret_name);

#endif
