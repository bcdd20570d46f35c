/*
 * player.c - see player.h.
 */
#include "rating/player.h"

#include <string.h>

#include "sql.h"

DB_SHAPE(player, Player, PLAYER_COLUMNS);

typedef struct {
    int32_t ord;
    int64_t player_id;
} SeenRow;
#define SEEN_COLUMNS(X, T) \
    X(T, I32, ord)         \
    X(T, I64, player_id)
DB_SHAPE(seen, SeenRow, SEEN_COLUMNS);

static DbArg seen_users(Arena *arena, const PlayerSeen *list, int count)
{
    int64_t *ids = arena_array(arena, int64_t, count + 1);

    for (int i = 0; i < count; i++)
        ids[i] = list[i].user_id;
    return db_i64s(arena, ids, count);
}

PlayersSeenArgs players_seen_args(Arena *arena, const PlayerSeen *list, int count)
{
    static const char *const sights[] = {[PLAYER_NAMED] = NULL, [PLAYER_PRESENT] = "true", [PLAYER_LEFT] = "false"};
    const char             **texts[4];

    for (size_t i = 0; i < COUNT(texts); i++)
        texts[i] = arena_array(arena, const char *, count + 1);
    for (int i = 0; i < count; i++) {
        texts[0][i] = list[i].name ? list[i].name : "";
        texts[1][i] = list[i].username && list[i].username[0] ? list[i].username : NULL;
        texts[2][i] = list[i].is_bot ? "true" : "false";
        texts[3][i] = sights[list[i].sight];
    }
    return (PlayersSeenArgs){.users     = seen_users(arena, list, count),
                             .names     = db_texts(arena, texts[0], count),
                             .usernames = db_texts(arena, texts[1], count),
                             .bots      = db_texts(arena, texts[2], count),
                             .presents  = db_texts(arena, texts[3], count)};
}

ErrorCode players_seen(Tx *tx, int64_t group_id, int64_t date_s, const PlayerSeen *list, int count, int64_t *ret_ids,
                       Error *reterr)
{
    PlayersSeenArgs args = players_seen_args(tx->arena, list, count);
    SeenRow        *seen;
    int             found;

    TRY(db_many(tx, sql_rating_players_seen,
                DB_ARGS(db_i64(group_id), db_i64(date_s), args.users, args.names, args.usernames, args.bots,
                        args.presents),
                &seen_shape, &seen, &found, reterr));
    for (int i = 0; i < found; i++)
        ret_ids[seen[i].ord - 1] = seen[i].player_id;
    return OK;
}

static ErrorCode players_read(Tx *tx, const char *sql, DbArgs args, int count, Player *ret_players, Error *reterr)
{
    const Player *list;
    int           found;

    TRY(db_many(tx, sql, args, &player_shape, &list, &found, reterr));
    memset(ret_players, 0, sizeof *ret_players * (size_t)count);
    for (int i = 0; i < found; i++)
        ret_players[list[i].ord - 1] = list[i];
    return OK;
}

ErrorCode players_named(Tx *tx, int64_t group_id, const char *const *usernames, int count, Player *ret_players,
                        Error *reterr)
{
    return players_read(tx, sql_rating_players_named, DB_ARGS(db_i64(group_id), db_texts(tx->arena, usernames, count)),
                        count, ret_players, reterr);
}

ErrorCode players_get(Tx *tx, int64_t group_id, const int64_t *ids, int count, Player *ret_players, Error *reterr)
{
    return players_read(tx, sql_rating_players_get, DB_ARGS(db_i64(group_id), db_i64s(tx->arena, ids, count)), count,
                        ret_players, reterr);
}

ErrorCode players_of_users(Tx *tx, int64_t group_id, const int64_t *users, int count, Player *ret_players,
                           Error *reterr)
{
    return players_read(tx, sql_rating_players_of_users, DB_ARGS(db_i64(group_id), db_i64s(tx->arena, users, count)),
                        count, ret_players, reterr);
}

typedef struct {
    int32_t ord;
} NamesakeRow;
#define NAMESAKE_COLUMNS(X, T) X(T, I32, ord)
DB_SHAPE(namesake, NamesakeRow, NAMESAKE_COLUMNS);

ErrorCode players_namesakes(Tx *tx, const int64_t *groups, const int64_t *users, int count, bool *ret_are,
                            Error *reterr)
{
    const NamesakeRow *list;
    int                found;

    TRY(db_many(tx, sql_rating_namesakes, DB_ARGS(db_i64s(tx->arena, groups, count), db_i64s(tx->arena, users, count)),
                &namesake_shape, &list, &found, reterr));
    memset(ret_are, 0, sizeof *ret_are * (size_t)count);
    for (int i = 0; i < found; i++)
        ret_are[list[i].ord - 1] = true;
    return OK;
}

#define USAGE_COLUMNS(X, T) X(T, I64, by_player, by_group)
DB_SHAPE(usage, Usage, USAGE_COLUMNS);

ErrorCode usage_add(Tx *tx, int64_t group_id, int64_t player_id, int64_t date_s, int per_player, Usage *ret_usage,
                    Error *reterr)
{
    return db_one(tx, sql_rating_usage_add,
                  DB_ARGS(db_i64(group_id), db_i64(player_id), date_s ? db_i64(date_s) : db_null(), db_i32(per_player)),
                  &usage_shape, ret_usage, reterr);
}

ErrorCode usage_is_left(Tx *tx, int64_t group_id, int64_t author_id, int64_t date_s, int per_player, int per_group,
                        bool *ret_is, Error *reterr)
{
    return db_one(tx, sql_rating_usage_is_left,
                  DB_ARGS(db_i64(group_id), db_i64(author_id), date_s ? db_i64(date_s) : db_null(), db_i32(per_player),
                          db_i32(per_group)),
                  &db_bool_shape, ret_is, reterr);
}
