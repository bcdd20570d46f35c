/*
 * mutant.h - planted bugs, to show that the simulation would find them. Each replaces one function by the linker (--wrap).
 */
#ifndef SIM_MUTANT_H
#define SIM_MUTANT_H

#define MUTANTS(X)                                                                             \
    X(NONE, "none")                                                                            \
    X(PROBE_ALWAYS, "probe-always")             /* it is always time for a probe */            \
    X(NEVER_REFUSE, "never-refuse")             /* callers do not care about the breaker */    \
    X(COMMIT_RETRIED, "commit-retried")         /* a lost commit is taken for a refused one */ \
    X(SIGNAL_LOST, "signal-lost")               /* now and then nobody is woken */             \
    X(DEADLINE_FORGOTTEN, "deadline-forgotten") /* retries do not look at the clock */         \
    X(PROBE_LATE, "probe-late")                 /* the janitor waits a minute for a probe */   \
    X(CANCEL_COMMIT, "cancel-commit")           /* whatever is given up is canceled */         \
    X(NOTICE_IGNORED, "notice-ignored")         /* a commit without its standby is a commit */ \
    X(NO_BARRIER, "no-barrier")                 /* a repeated request waits for no standby */  \
    X(OWN_SETTLES, "own-settles")               /* a failure of our own settles a doubt */     \
    X(ARENA_KEPT, "arena-kept")                 /* what a try left is there in the next */
#define X(id, name) MUTANT_##id,
typedef enum { MUTANTS(X) MUTANT_COUNT } Mutant;
#undef X

extern const char *const mutant_names[MUTANT_COUNT];
extern Mutant            mutant;

#endif
