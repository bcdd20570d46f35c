/*
 * opening.h - what every message and every button press needs first, in one round trip for all of them: its group,
 * who was seen, who is meant, the limits.
 *
 * Threads: any. Ownership: results live in the transaction's arena.
 */
#ifndef RATING_OPENING_H
#define RATING_OPENING_H

#include "rating/group.h"
#include "rating/player.h"

typedef struct {
    int64_t           chat_id;
    const char       *title;    /* NULL: unknown */
    const char       *language; /* code of a Language; NULL: unknown */
    int64_t           date_s;   /* of the message; 0: unknown */
    const PlayerSeen *seen;     /* at most PLAYERS_SEEN_MAX */
    int               seen_count;
    int64_t        author_id; /* outside id, or the negative one of the chat in whose name it was written; 0: unknown */
    int            per_user;  /* limit of commands a minute, the same for all */
    bool           is_counted; /* towards the limits: a command or a press */
    const int64_t *users;      /* who is asked for, by outside id */
    int            users_count;
    const char *const *names; /* and by username, without "@" */
    int                names_count;
} OpeningAsk;

typedef struct {
    Group   group;
    Usage   usage;
    Player *players; /* first those of users, then those of names; player_id 0: unknown */
} Opening;

must_check ErrorCode openings_run(Tx *tx, const OpeningAsk *const *asks, int count, Opening **ret_openings,
                                  Error *reterr);

#endif
