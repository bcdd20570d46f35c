/*
 * player.h - players: who was seen, who is meant by a username.
 *
 * The usernames of all messages are kept in the database, so any process resolves them. A username belongs to the
 * player who was seen with it last, by the date of the message.
 * Threads: any. Ownership: results live in the transaction's arena.
 */
#ifndef RATING_PLAYER_H
#define RATING_PLAYER_H

#include "base/error.h"
#include "pg/query.h"

#define PLAYERS_SEEN_MAX 200

typedef enum { PLAYER_NAMED, PLAYER_PRESENT, PLAYER_LEFT } PlayerSight; /* named by another member, seen, leaving */

typedef struct {
    int64_t     user_id; /* the outside id */
    const char *name;
    const char *username; /* without "@"; NULL: none */
    bool        is_bot;
    PlayerSight sight;
} PlayerSeen;

#define PLAYER_COLUMNS(X, T)      \
    X(T, I32, ord)                \
    X(T, I64, player_id, user_id) \
    X(T, TEXT, name, username)    \
    X(T, BOOL, is_bot, is_member, is_present)
DB_ROW(Player, PLAYER_COLUMNS);

/* The five arrays that functions take. */
typedef struct {
    DbArg users, names, usernames, bots, presents;
} PlayersSeenArgs;
PlayersSeenArgs players_seen_args(Arena *arena, const PlayerSeen *list, int count);
/* Remember them, as seen in a message of this date. ret_ids[i]: the player's id. */
must_check ErrorCode players_seen(Tx *tx, int64_t group_id, int64_t date_s, const PlayerSeen *list, int count,
                                  int64_t *ret_ids, Error *reterr);
/* ret_players[i] has player_id 0 where the name is unknown. */
must_check ErrorCode players_named(Tx *tx, int64_t group_id, const char *const *usernames, int count,
                                   Player *ret_players, Error *reterr);
must_check ErrorCode players_get(Tx *tx, int64_t group_id, const int64_t *ids, int count, Player *ret_players,
                                 Error *reterr);

/* By outside ids. */
must_check ErrorCode players_of_users(Tx *tx, int64_t group_id, const int64_t *users, int count, Player *ret_players,
                                      Error *reterr);

/* Which of these users, users[i] in groups[i], has the name of another one who has played there. */
must_check ErrorCode players_namesakes(Tx *tx, const int64_t *groups, const int64_t *users, int count, bool *ret_are,
                                       Error *reterr);

/* How many commands there were in the minute before, with this one. group_id: or the negative outside id of the
 * user of a private chat. player_id 0: an anonymous administrator. */
typedef struct {
    int64_t by_player, by_group;
} Usage;
/* date_s: of the message, 0: now. per_player: what is beyond it is not counted, except the first. */
must_check ErrorCode usage_add(Tx *tx, int64_t group_id, int64_t player_id, int64_t date_s, int per_player,
                               Usage *ret_usage, Error *reterr);
/* Would one more be within the limits? Counts nothing. author_id: the outside id of a user or of the chat in whose
 * name it is written; 0: unknown. */
must_check ErrorCode usage_is_left(Tx *tx, int64_t group_id, int64_t author_id, int64_t date_s, int per_player,
                                   int per_group, bool *ret_is, Error *reterr);

#endif
