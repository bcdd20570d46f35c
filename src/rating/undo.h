/*
 * undo.h - undo a match: afterwards the ratings are those that a replay of the remaining matches gives.
 *
 * Runs in the caller's transaction. The match is marked; matches that follow are computed again as far as their
 * players' ratings differ from what is stored; every player whose rating was computed again gets a new version.
 *
 * Invariants
 *   1. A key undoes one match. The same key again answers with what it undid and changes nothing.
 *   2. ERR_BUSY with SQLSTATE RT001: a rating changed meanwhile. The caller rolls back and begins again with the same
 *      key.
 *   3. At most UNDO_MATCHES_MAX matches are read again; an older match is refused.
 * Threads: any. Ownership: results live in the transaction's arena.
 */
#ifndef RATING_UNDO_H
#define RATING_UNDO_H

#include "rating/group.h"
#include "rating/match.h"

#define UNDO_MATCHES_MAX 50000
#define UNDO_SHOWN_MAX   10

typedef enum { ADMIN_NO, ADMIN_YES, ADMIN_UNKNOWN } Admin;

/* Of the matches that follow, so many have been read and computed again as far as needed. */
typedef void UndoProgress(void *context, int done, int total);

typedef struct {
    const char *key;
    int64_t     match_id;  /* 0: the last one that is not undone */
    int64_t     player_id; /* who asks; 0: an anonymous administrator */
    Admin       admin;
    /* Called with 0 before the first chunk, and after each but the last, if there are several. NULL: none. */
    UndoProgress *progress;
    void         *context;
} UndoAsk;

typedef enum {
    UNDO_DONE,
    UNDO_REPEATED, /* the key has undone it before */
    /* Refusals. */
    UNDO_NOTHING,   /* the group has no match, or not this one */
    UNDO_ALREADY,   /* it was undone under another key */
    UNDO_NOT_YOURS, /* neither a player of it nor an administrator */
    UNDO_TOO_LATE,  /* a player, but its time is over */
    UNDO_KEY_USED,  /* the key has undone another match, or one of another group */
    UNDO_TOO_OLD,   /* more than UNDO_MATCHES_MAX follow it */
} UndoVerdict;

typedef struct {
    int64_t player_id;
    double  before, after;
} UndoChange;

typedef struct {
    UndoVerdict verdict;
    bool        is_unsure; /* refused, but whether an administrator asks could not be found out */
    Match       match;
    int         replayed; /* matches computed again */
    /* DONE: of the ratings that people see; the players of the match first, then the largest changes. */
    UndoChange changes[UNDO_SHOWN_MAX];
    int        changes_count, changes_all; /* shown; all of them */
} UndoDone;

must_check ErrorCode undo_run(Tx *tx, const Group *group, const UndoAsk *ask, UndoDone *ret_done, Error *reterr);

#endif
