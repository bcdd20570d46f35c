/*
 * offer.h - workers of this process offer free handlers to what the process sends, so that it starts without a claim (ADR 49).
 *
 *     offer_take() before the send -> the send, whose SQL function decides what starts -> offer_end() after its commit, or its failure
 *
 * Invariants
 *   1. A handler that is offered is free, and stays reserved until offer_end(): the worker claims nothing for it.
 *   2. A worker offers only between a claim that found nothing and its next claim. So what is ready and was not seen by the check of the send waits no
 *      longer than it would without offers, until the next poll.
 *   3. A worker that stops offers nothing. It waits for open offers, until its deadline, and releases what they start. worker_free() waits for all of them.
 * Threads: any; an offer is used by one.
 */
#ifndef BUS_OFFER_H
#define BUS_OFFER_H

#include "bus/claim.h"
#include "bus/worker.h"

typedef struct {
    Worker            *worker;
    int                slots;
    const char        *name, *domain; /* of the worker */
    const char *const *types;         /* that it handles now, ended by NULL; NULL: all */
    const char        *only;          /* the type to which these handlers are limited; NULL: none */
    const char *const *allowed;       /* for resumed commands: the types of which one more may begin; NULL: all */
    int64_t            after[PRIORITY_COUNT]; /* where a claim would begin */
    int                lease_ms;
    Mono               taken_at;
} Offer;

/* Reserve up to `wanted` free handlers of one worker for commands of a domain that are sent through this pool, the first one of this type. false: no
 * worker has any. Texts are copied into the arena. */
bool offer_take(const Pool *pool, const char *domain, const char *type, int wanted, Arena *arena, Offer *ret_offer);
bool offer_has_type(const Offer *offer, const char *type);
/* Give the reserved handlers back, and hand over what was leased for them, which is copied. */
void offer_end(Offer *offer, const ClaimedCommand *started, int count);

/*
 * For a call that resumes commands, and does not know which: one handler of each worker whose commands can be resumed (Handler.unpack).
 *
 *     resume_offers_take() before the call -> its SQL function decides what starts (sql/bus/resume_start.sql) -> resume_offers_end() after the commit
 */
#define RESUME_OFFERS_MAX 16
typedef struct {
    Offer   list[RESUME_OFFERS_MAX];
    int64_t tokens[RESUME_OFFERS_MAX];
    int     count;
} ResumeOffers;
/* domain NULL: of any. kept: so many handlers of each worker stay free for others. */
void resume_offers_take(const Pool *pool, const char *domain, int kept, Arena *arena, ResumeOffers *ret_offers);
/* As pawl.offers_read() reads them; null: there are none. */
DbArg resume_offers_arg(Arena *arena, const ResumeOffers *offers);
/* started: as pawl.resume_started() returned it; NULL: nothing, or the call has failed. If that is in doubt, leases that it made expire. */
void resume_offers_end(ResumeOffers *offers, const char *started);

/* By the worker: from when it exists until it does not any more. */
void offers_join(Worker *worker);
void offers_leave(Worker *worker);
/* By the dispatcher: a claim has found nothing, or the next one comes. */
void offers_open(Worker *worker);
void offers_close(Worker *worker);
/* By the dispatcher, after the last claim: until no offer is open, or the worker's deadline to stop. */
void offers_wait(Worker *worker);

#endif
