/*
 * poller_internal.h - the poller, shared by its lease and loop (poller.c) and the calls of a term (poller_term.c).
 */
#ifndef TELEGRAM_POLLER_INTERNAL_H
#define TELEGRAM_POLLER_INTERNAL_H

#include "base/sync.h"
#include "base/uuid.h"
#include "telegram/poller.h"

#define POLLER_CONFLICTS_MAX 16
#define POLLER_CONFLICTS_MS  600000

struct TelegramPoller {
    TelegramPollerOptions options;
    char                  holder[UUID_TEXT_SIZE];
    pthread_t             keeper, loop;
    Mutex                 mutex; /* guards the rest but for what belongs to the loop */
    Cond                  changed;
    bool                  stopping, held;
    int                   running; /* threads */
    int                   term;    /* counts the times that the lease was taken */
    Mono                  back_until;
    char                  name[TELEGRAM_NAME_SIZE];
    /* The loop's own. */
    int      term_ready; /* the term whose start is done */
    int64_t  offset;     /* of the next poll; 0: from the first that is not confirmed */
    int      limit, failures;
    unsigned steps_done; /* of the start of the term, a bit each */
    int      steps_tries;
    Mono     steps_at;   /* the next try */
    bool     is_started; /* all are done */
    bool     is_failing; /* the last updates could not be stored */
    Mono     prune_at;
    Mono     conflicts[POLLER_CONFLICTS_MAX]; /* the last ones, a ring */
    int      conflicts_count;
};

/* Until the deadline, or the poller is stopped. */
void poller_pause(TelegramPoller *poller, Deadline deadline);
bool poller_is_stopped(TelegramPoller *poller);
bool poller_is_held(TelegramPoller *poller); /* the lease */
/* Give the lease back, and do not ask for it for some seconds. */
void poller_step_back(TelegramPoller *poller);
/* The calls at the start of a term, those that are not done yet. What fails is logged and tried again after 1, 2, 4
 * ... 60 s; updates still come. */
void poller_term_start(TelegramPoller *poller);
/* One poll and its storing. */
void poller_poll(TelegramPoller *poller);
/* Another program polls with the same token: remember it. */
void poller_conflict(TelegramPoller *poller);
/* Rows that are too old. */
void poller_prune(TelegramPoller *poller);

#endif
