/*
 * replay.c - see replay.h.
 */
#include "rating/replay.h"

#include <stdlib.h>

#include "base/memory.h"
#include "sql.h"

#define DAY_US INT64_C(86400000000)

DB_SHAPE(replay, ReplayMatch, REPLAY_COLUMNS);

ErrorCode replay_chunk(Tx *tx, int64_t group_id, int64_t after, int limit, ReplayMatch **ret_list, int *ret_count,
                       Error *reterr)
{
    return db_many(tx, sql_rating_replay_chunk, DB_ARGS(db_i64(group_id), db_i64(after), db_i32(limit)), &replay_shape,
                   ret_list, ret_count, reterr);
}

int64_t replay_player(const ReplayMatch *match, int side)
{
    return side ? match->player_b : match->player_a;
}

RatingState replay_before(const ReplayMatch *match, int side)
{
    return side ? (RatingState){match->b_rating_before, match->b_deviation_before, match->b_volatility_before}
                : (RatingState){match->a_rating_before, match->a_deviation_before, match->a_volatility_before};
}

RatingState replay_after(const ReplayMatch *match, int side)
{
    return side ? (RatingState){match->b_rating, match->b_deviation, match->b_volatility}
                : (RatingState){match->a_rating, match->a_deviation, match->a_volatility};
}

/* ---- players by id: open addressing, at most half full ---- */

struct ReplayMap {
    ReplayPlayer *slots;
    size_t        capacity, count;
};

ReplayMap *replay_map_new(void)
{
    ReplayMap *map = memory_new(1, sizeof *map);

    map->capacity = 64;
    map->slots    = memory_new(map->capacity, sizeof *map->slots);
    return map;
}

void replay_map_free(ReplayMap *map)
{
    if (!map)
        return;
    free(map->slots);
    free(map);
}

static ReplayPlayer *slot_find(const ReplayMap *map, int64_t player_id)
{
    size_t at = (size_t)((uint64_t)player_id * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (map->capacity - 1);

    while (map->slots[at].player_id && map->slots[at].player_id != player_id)
        at = (at + 1) & (map->capacity - 1);
    return &map->slots[at];
}

ReplayPlayer *replay_map_get(ReplayMap *map, int64_t player_id)
{
    ReplayPlayer *slot = slot_find(map, player_id);

    return slot->player_id ? slot : NULL;
}

static void map_grow(ReplayMap *map)
{
    ReplayMap old = *map;

    map->capacity *= 2;
    map->slots = memory_new(map->capacity, sizeof *map->slots);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].player_id)
            *slot_find(map, old.slots[i].player_id) = old.slots[i];
    free(old.slots);
}

ReplayPlayer *replay_map_add(ReplayMap *map, int64_t player_id)
{
    ReplayPlayer *slot = slot_find(map, player_id);

    if (slot->player_id)
        return slot;
    if (map->count * 2 >= map->capacity) {
        map_grow(map);
        slot = slot_find(map, player_id);
    }
    map->count++;
    *slot = (ReplayPlayer){.player_id = player_id};
    return slot;
}

ReplayPlayer *replay_map_next(ReplayMap *map, size_t *position)
{
    while (*position < map->capacity) {
        ReplayPlayer *slot = &map->slots[(*position)++];

        if (slot->player_id)
            return slot;
    }
    return NULL;
}

/* ---- time ---- */

/* As rating.days_away in SQL. */
static int32_t days_away(int64_t from, int64_t to)
{
    return from && to > from ? (int32_t)((to - from) / DAY_US) : 0;
}

void replay_pass(ReplayMap *map, const ReplayMatch *match)
{
    for (int side = 0; side < 2; side++) {
        ReplayPlayer *player = replay_map_get(map, replay_player(match, side));

        if (player)
            player->last_at = match->played_at;
    }
}

ErrorCode replay_apply(ReplayMap *map, const ReplayMatch *match, const RatingState before[2], RatingState ret_after[2],
                       Error *reterr)
{
    Rules   rules = {match->formula, match->system, match->k_factor, match->margin};
    int32_t days[2];

    for (int side = 0; side < 2; side++) {
        const ReplayPlayer *player = replay_map_get(map, replay_player(match, side));

        days[side] = player ? days_away(player->last_at, match->played_at) : 0;
    }
    replay_pass(map, match);
    return rules_apply(&rules, before, days, match->score_a, match->score_b, ret_after, reterr);
}
