/*
 * claims_internal.h - what the files of the claims over HTTP share; claims.h has the invariants.
 *
 *   claims.c           waits, claims, threads
 *   claims_group.c     groups and their states
 *   claims_poll.c      one statement per poll for all groups that wait
 *   claims_response.c  the responses with what a claim found
 *
 * Threads: all functions are called under the mutex, but claim_responses_write() under no lock.
 */
#ifndef API_CLAIMS_INTERNAL_H
#define API_CLAIMS_INTERNAL_H

#include "api/claims.h"
#include "base/sync.h"
#include "bus/waker.h"

#define POLL_MS            200
#define CLAIMS_THREADS_MAX 4
#define SERVED_MAX         256 /* waits of one claim */
#define CALL_MS            10000

typedef TAILQ_HEAD(WaitList, ClaimWait) WaitList;

/* IDLE: without waiters. WAITING: in the order of poll_at. DUE: a thread takes it soon. POLLED: a thread asks for it and others whether
 * there is something to claim. BUSY: a thread claims for it. */
typedef enum { GROUP_IDLE, GROUP_WAITING, GROUP_DUE, GROUP_POLLED, GROUP_BUSY, GROUP_STATE_COUNT } GroupState;

/* What takes turns. */
typedef struct {
    int     group_count, idle_count, busy_count;
    int64_t served; /* the number of its last turn; of a new one, of the last turn of any */
} ClaimTurn;

typedef struct ClaimDomain ClaimDomain;
typedef TAILQ_HEAD(DomainList, ClaimDomain) DomainList;
typedef TAILQ_HEAD(KeyList, ClaimKey) KeyList;

/* The domains of a key share its turns. */
typedef struct ClaimKey {
    char      *name;
    ClaimTurn  turn;
    DomainList domains; /* that have groups */
    int        domain_count;
    TAILQ_ENTRY(ClaimKey) link;
} ClaimKey;

/* A domain as one key claims from it. Its groups share its turns. */
struct ClaimDomain {
    ClaimKey *key;
    char     *name;
    ClaimTurn turn;
    TAILQ_ENTRY(ClaimDomain) link;
};

struct ClaimGroup {
    Arena       *arena; /* of the name */
    const char  *name;
    ClaimDomain *domain;
    Claimer     *claimer;
    GroupState   state;
    WaitList     waits;
    Mono         poll_at;
    bool         notified;    /* while it was polled or busy */
    bool         is_scanning; /* its last claim has read only a part of the queue */
    int64_t      scan_last;   /* the last wait that was there when its claim began to read */
    Error        error;       /* why the last claim failed; code OK: it did not */
    TAILQ_ENTRY(ClaimGroup) link;
};
typedef TAILQ_HEAD(GroupList, ClaimGroup) GroupList;

/* Commands to be released. */
typedef struct Undo Undo;
struct Undo {
    Arena          *arena;
    ClaimedCommand *list;
    int             count;
    Undo           *next;
};

struct Claims {
    Pool      *pool;
    WakeMember local;
    Mutex      mutex; /* guards the rest */
    Cond       changed;
    GroupList  groups[GROUP_STATE_COUNT];
    KeyList    keys; /* that have groups */
    int        key_count, idle_count;
    int64_t    served_last;
    int64_t    poll_ms;   /* from one poll to the next */
    Mono       expire_at; /* no wait's time is over before */
    int64_t    number_last;
    Undo      *undo;
    bool       stopping, ending;
    int        thread_count;
    pthread_t  threads[CLAIMS_THREADS_MAX];
};

/* A claim for the first waiters of a group, and what it found. */
typedef struct {
    ClaimWait      *waits[SERVED_MAX];
    int             wait_count;
    int             limit; /* of all of them */
    Arena          *arena;
    ClaimedCommand *list;
    int             count;
    bool            more; /* it found nothing, and has not read all */
    ErrorCode       code;
    Error           error;
} Served;

/* claims.c */
/* Waits whose time is over leave their groups and are put into *ret_done. */
void claim_waits_expire(Claims *claims, WaitList *ret_done);

/* claims_group.c */
void claim_groups_init(Claims *claims);
/* No group has a waiter. */
void claim_groups_free(Claims *claims);
/* The DUE group whose turn it is, NULL: none. Keys take turns, the domains of one key do in its turns, and the groups of a domain in those of the
 * domain. While groups of other keys are known, one key has at most all threads but one; likewise one domain of those of its key. */
ClaimGroup *claim_group_next(Claims *claims);
/* The group of the wait's key, domain and types; a new one is IDLE. */
ClaimGroup *claim_group_find(Claims *claims, const ClaimWait *wait);
void        claim_group_move(Claims *claims, ClaimGroup *group, GroupState state);
/* It has nothing to do right now: wait for the next poll, or be kept for its cursor. */
void claim_group_settle(Claims *claims, ClaimGroup *group);
void claim_group_notify(Claims *claims, ClaimGroup *group);
/* It was busy or polled. again: there may be more to claim. */
void claim_group_go_on(Claims *claims, ClaimGroup *group, bool again);

/* claims_response.c */
/* The first commands go to the first waiter, and so on. What does not fit into the response is released; what would not fit into any goes to
 * troubleshooting. A wait that was canceled meanwhile gets its own, too, which are released later. */
void claim_responses_write(Claims *claims, Served *served);

/* claims_poll.c */
/* When the first group is to be polled. */
Deadline claims_poll_at(const Claims *claims);
/* All that wait, at most CLAIMERS_MAX. Releases the mutex for the statement. */
void claims_poll(Claims *claims);

#endif
