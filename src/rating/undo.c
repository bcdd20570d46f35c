/*
 * undo.c - see undo.h.
 */
#include "rating/undo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/writer.h"
#include "rating/metric.h"
#include "rating/replay.h"
#include "sql.h"

static ErrorCode conflict(Error *reterr, const char *what, int64_t id)
{
    error_set(reterr, __FILE__, __LINE__, ERR_BUSY, "%s %lld has changed since it was read", what, (long long)id);
    error_set_sqlstate(reterr, MATCH_CONFLICT);
    return ERR_BUSY;
}

/* ---- what is stored ---- */

#define FOUND_COLUMNS(X, T) \
    X(T, I64, match_id)     \
    X(T, I32, replayed)     \
    X(T, JSONB, changes)
DB_ROW(FoundRow, FOUND_COLUMNS);
DB_SHAPE(found, FoundRow, FOUND_COLUMNS);

#define VERSION_COLUMNS(X, T)     \
    X(T, I64, player_id, version) \
    X(T, REAL, rating)            \
    X(T, TIME, last_at)
DB_ROW(VersionRow, VERSION_COLUMNS);
DB_SHAPE(version, VersionRow, VERSION_COLUMNS);

static ErrorCode versions_read(Tx *tx, int64_t group_id, int64_t match_id, ReplayMap *map, Error *reterr)
{
    VersionRow *rows;
    int         count;

    TRY(db_many(tx, sql_rating_undo_versions, DB_ARGS(db_i64(group_id), db_i64(match_id)), &version_shape, &rows,
                &count, reterr));
    for (int i = 0; i < count; i++) {
        const VersionRow *row    = &rows[i];
        ReplayPlayer     *player = replay_map_add(map, row->player_id);

        player->version = row->version;
        player->rating  = row->rating;
        player->last_at = row->last_at;
    }
    return OK;
}

/* ---- history rows to be rewritten: arrays that grow until the chunk is flushed ---- */

typedef struct {
    int      count;
    int64_t *matches, *players;
    double  *values[6];
} Rewrites;

static void rewrites_init(Rewrites *rewrites, Arena *arena, int most)
{
    rewrites->count   = 0;
    rewrites->matches = arena_array(arena, int64_t, most);
    rewrites->players = arena_array(arena, int64_t, most);
    for (size_t i = 0; i < COUNT(rewrites->values); i++)
        rewrites->values[i] = arena_array(arena, double, most);
}

static void rewrites_add(Rewrites *rewrites, int64_t match_id, int64_t player_id, const RatingState *before,
                         const RatingState *after)
{
    const double values[] = {before->rating, before->deviation, before->volatility,
                             after->rating,  after->deviation,  after->volatility};
    int          at       = rewrites->count++;

    rewrites->matches[at] = match_id;
    rewrites->players[at] = player_id;
    for (size_t i = 0; i < COUNT(values); i++)
        rewrites->values[i][at] = values[i];
}

static ErrorCode rewrites_flush(Tx *tx, const Rewrites *rewrites, Error *reterr)
{
    Arena  *arena = tx->arena;
    int     n     = rewrites->count;
    int64_t changed;

    if (n == 0)
        return OK;
    return db_get_i64(tx, sql_rating_history_rewrite,
                      DB_ARGS(db_i64s(arena, rewrites->matches, n), db_i64s(arena, rewrites->players, n),
                              rating_reals(arena, rewrites->values[0], n), rating_reals(arena, rewrites->values[1], n),
                              rating_reals(arena, rewrites->values[2], n), rating_reals(arena, rewrites->values[3], n),
                              rating_reals(arena, rewrites->values[4], n), rating_reals(arena, rewrites->values[5], n)),
                      &changed, reterr);
}

/* ---- the replay ---- */

/* is_set becomes false when the recomputed state of a player equals the stored one; the version still
 * changes. */
static void player_set(ReplayMap *map, int64_t player_id, RatingState state, bool differs)
{
    ReplayPlayer *player = replay_map_add(map, player_id);

    player->state      = state;
    player->is_set     = differs;
    player->is_touched = true;
}

static bool state_is_same(const RatingState *one, const RatingState *other)
{
    return one->rating == other->rating && one->deviation == other->deviation && one->volatility == other->volatility;
}

static ErrorCode match_replay(const ReplayMatch *match, ReplayMap *map, Rewrites *rewrites, int *replayed,
                              Error *reterr)
{
    RatingState before[2], after[2];
    bool        differs = false;

    for (int side = 0; side < 2; side++) {
        const ReplayPlayer *player = replay_map_get(map, replay_player(match, side));

        before[side] = player && player->is_set ? player->state : replay_before(match, side);
        differs |= player && player->is_set;
    }
    if (!differs) { /* as it was; a player who was touched before ends with this */
        for (int side = 0; side < 2; side++) {
            ReplayPlayer *player = replay_map_get(map, replay_player(match, side));

            if (player)
                player->state = replay_after(match, side);
        }
        replay_pass(map, match);
        return OK;
    }
    TRY(replay_apply(map, match, before, after, reterr));
    for (int side = 0; side < 2; side++) {
        RatingState stored = replay_after(match, side);

        player_set(map, replay_player(match, side), after[side], !state_is_same(&stored, &after[side]));
        rewrites_add(rewrites, match->id, replay_player(match, side), &before[side], &after[side]);
    }
    ++*replayed;
    return OK;
}

/* What fits into one chunk is done before its progress would be read. */
static void progress_say(const UndoAsk *ask, int done, int total)
{
    if (ask->progress && total > REPLAY_CHUNK && done < total)
        ask->progress(ask->context, done, total);
}

static ErrorCode replay_after_match(Tx *tx, int64_t group_id, const UndoAsk *ask, int following, ReplayMap *map,
                                    UndoDone *undone, Error *reterr)
{
    ArenaMark    mark  = arena_mark(tx->arena);
    int64_t      after = undone->match.id;
    int          done  = 0;
    ReplayMatch *list;
    int          count;

    do {
        Rewrites rewrites;

        TRY(replay_chunk(tx, group_id, after, REPLAY_CHUNK, &list, &count, reterr));
        rewrites_init(&rewrites, tx->arena, 2 * count + 1);
        for (int i = 0; i < count; i++)
            TRY(match_replay(&list[i], map, &rewrites, &undone->replayed, reterr));
        TRY(rewrites_flush(tx, &rewrites, reterr));
        if (count)
            after = list[count - 1].id;
        arena_rewind(tx->arena, mark);
        done += count;
        progress_say(ask, done, following);
    } while (count == REPLAY_CHUNK);
    return OK;
}

/* Read the undone match's own rows: its players go back to where they were before it. */
static ErrorCode match_revert(Tx *tx, const Group *group, int64_t match_id, ReplayMap *map, Error *reterr)
{
    ArenaMark    mark = arena_mark(tx->arena);
    ReplayMatch *list;
    int          count;

    TRY(replay_chunk(tx, group->id, match_id - 1, 1, &list, &count, reterr));
    if (count == 0 || list[0].id != match_id)
        return conflict(reterr, "match", match_id); /* undone just now */
    for (int side = 0; side < 2; side++)
        player_set(map, replay_player(&list[0], side), replay_before(&list[0], side), true);
    arena_rewind(tx->arena, mark);
    return OK;
}

/* ---- the end ---- */

/* Those of the match first, then by size of the change. */
static int change_order(const void *x, const void *y, void *context)
{
    const ReplayPlayer *const *a = x, *const *b = y;
    const Match               *match   = context;
    bool                       a_plays = (*a)->player_id == match->player_a || (*a)->player_id == match->player_b;
    bool                       b_plays = (*b)->player_id == match->player_a || (*b)->player_id == match->player_b;

    if (a_plays != b_plays)
        return a_plays ? -1 : 1;
    if (fabs((*a)->state.rating - (*a)->rating) != fabs((*b)->state.rating - (*b)->rating))
        return fabs((*a)->state.rating - (*a)->rating) > fabs((*b)->state.rating - (*b)->rating) ? -1 : 1;
    return (*a)->player_id < (*b)->player_id ? -1 : 1;
}

static ReplayPlayer **touched_list(ReplayMap *map, Arena *arena, int *ret_count)
{
    size_t         position = 0;
    int            count    = 0;
    ReplayPlayer  *player;
    ReplayPlayer **list;

    while ((player = replay_map_next(map, &position)))
        count += player->is_touched;
    list     = arena_array(arena, ReplayPlayer *, count + 1);
    count    = 0;
    position = 0;
    while ((player = replay_map_next(map, &position)))
        if (player->is_touched)
            list[count++] = player;
    *ret_count = count;
    return list;
}

static const char *changes_json(Arena *arena, ReplayPlayer *const *list, int count)
{
    Text   text;
    Writer writer;

    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    for (int i = 0; i < count; i++) {
        writer_array(&writer, arena_print(arena, "%lld", (long long)list[i]->player_id));
        writer_real(&writer, NULL, list[i]->rating);
        writer_real(&writer, NULL, list[i]->state.rating);
        writer_end(&writer);
    }
    writer_end(&writer);
    return text_string(&text);
}

static ErrorCode members_write(Tx *tx, const Group *group, const UndoAsk *ask, const UndoDone *done,
                               ReplayPlayer *const *list, int count, Error *reterr)
{
    Arena   *arena    = tx->arena;
    int64_t *players  = arena_array(arena, int64_t, count);
    int64_t *versions = arena_array(arena, int64_t, count);
    double  *values[3];

    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = arena_array(arena, double, count);
    for (int i = 0; i < count; i++) {
        players[i]   = list[i]->player_id;
        versions[i]  = list[i]->version;
        values[0][i] = list[i]->state.rating;
        values[1][i] = list[i]->state.deviation;
        values[2][i] = list[i]->state.volatility;
        /* Played first after the versions were read. */
        if (!versions[i])
            return conflict(reterr, "player", players[i]);
    }
    return db_run(tx, sql_rating_undo_end,
                  DB_ARGS(db_i64(group->id), db_text(ask->key), db_i64(done->match.id),
                          ask->player_id ? db_i64(ask->player_id) : db_null(), db_i32(done->replayed),
                          db_jsonb(changes_json(arena, list, count)), db_i64s(arena, players, count),
                          db_i64s(arena, versions, count), rating_reals(arena, values[0], count),
                          rating_reals(arena, values[1], count), rating_reals(arena, values[2], count)),
                  NULL, reterr);
}

static ErrorCode undo_match(Tx *tx, const Group *group, const UndoAsk *ask, int following, UndoDone *done,
                            Error *reterr)
{
    scoped(replay_map_free) ReplayMap *map = replay_map_new();
    ReplayPlayer                     **list;
    int                                count;
    int64_t                            id = done->match.id;

    /* Versions first: whatever is committed after this statement and touches a rating that is read below changes
     * one of them. */
    TRY(versions_read(tx, group->id, id, map, reterr));
    TRY(match_revert(tx, group, id, map, reterr));
    TRY(db_run(tx, sql_rating_undo_begin, DB_ARGS(db_i64(group->id), db_i64(id)), NULL, reterr));
    TRY(replay_after_match(tx, group->id, ask, following, map, done, reterr));
    list = touched_list(map, tx->arena, &count);
    TRY(members_write(tx, group, ask, done, list, count, reterr));
    qsort_r(list, (size_t)count, sizeof *list, change_order, &done->match);
    for (int i = 0; i < count; i++) {
        if (rating_points(list[i]->rating) == rating_points(list[i]->state.rating))
            continue;
        if (done->changes_all++ < UNDO_SHOWN_MAX)
            done->changes[done->changes_count++] =
                (UndoChange){list[i]->player_id, list[i]->rating, list[i]->state.rating};
    }
    metric_add(&rating_metrics.undos, 1);
    metric_add(&rating_metrics.replayed, done->replayed);
    return OK;
}

static UndoVerdict permission(const Group *group, const UndoAsk *ask, const Match *match)
{
    bool plays = ask->player_id && (ask->player_id == match->player_a || ask->player_id == match->player_b);

    if (ask->admin == ADMIN_YES)
        return UNDO_DONE;
    if (!plays)
        return UNDO_NOT_YOURS;
    return match->age_s <= (int64_t)group->undo_hours * 3600 ? UNDO_DONE : UNDO_TOO_LATE;
}

static ErrorCode undo_decide(Tx *tx, const Group *group, const UndoAsk *ask, UndoDone *done, Error *reterr)
{
    Error     error = {0};
    int64_t   following;
    ErrorCode code = match_get(tx, group->id, ask->match_id, &done->match, &error);

    if (code == ERR_NOT_FOUND) {
        done->verdict = UNDO_NOTHING;
        return OK;
    }
    TRY(error_pass(code, &error, reterr));
    done->verdict   = done->match.is_undone ? UNDO_ALREADY : permission(group, ask, &done->match);
    done->is_unsure = ask->admin == ADMIN_UNKNOWN;
    if (done->verdict != UNDO_DONE)
        return OK;
    TRY(db_get_i64(tx, sql_rating_matches_after,
                   DB_ARGS(db_i64(group->id), db_i64(done->match.id), db_i32(UNDO_MATCHES_MAX + 1)), &following,
                   reterr));
    if (following > UNDO_MATCHES_MAX) {
        done->verdict = UNDO_TOO_OLD;
        return OK;
    }
    progress_say(ask, 0, (int)following);
    return undo_match(tx, group, ask, (int)following, done, reterr);
}

/* The key has undone a match. Only if it is the one that is asked for, in this group, was the request repeated. */
static ErrorCode undo_repeated(Tx *tx, const Group *group, const UndoAsk *ask, const FoundRow *found, UndoDone *done,
                               Error *reterr)
{
    Error     error = {0};
    ErrorCode code  = match_get(tx, group->id, found->match_id, &done->match, &error);

    done->replayed = found->replayed;
    done->verdict  = UNDO_REPEATED;
    if (code == ERR_NOT_FOUND || (ask->match_id && ask->match_id != found->match_id)) {
        log_write(LOG_WARN, "rating", "the key of an undo belongs to another one", LOG_STR("key", ask->key),
                  LOG_INT("match", found->match_id), LOG_INT("chat", group->chat_id));
        done->verdict = UNDO_KEY_USED;
        return OK;
    }
    return error_pass(code, &error, reterr);
}

ErrorCode undo_run(Tx *tx, const Group *group, const UndoAsk *ask, UndoDone *ret_done, Error *reterr)
{
    Error     local = {0};
    UndoDone  done  = {0};
    void     *rows;
    int       count;
    ErrorCode code;

    reterr = reterr ? reterr : &local;
    TRY(db_many(tx, sql_rating_undo_find, DB_ARGS(db_text(ask->key)), &found_shape, &rows, &count, reterr));
    code = count > 0 ? undo_repeated(tx, group, ask, rows, &done, reterr) : undo_decide(tx, group, ask, &done, reterr);
    if (code == ERR_BUSY && strcmp(reterr->sqlstate, MATCH_CONFLICT) == 0)
        metric_add(&rating_metrics.conflicts, 1);
    TRY(code);
    *ret_done = done;
    return OK;
}
