/*
 * match.c - see match.h.
 */
#include "rating/match.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "rating/metric.h"
#include "sql.h"

DB_SHAPE(match, Match, MATCH_COLUMNS);

#define READ_COLUMNS(X, T)                    \
    X(T, I32, ord, games, days)               \
    X(T, I64, player_id, version, match_id)   \
    X(T, REAL, rating, deviation, volatility) \
    X(T, BOOL, is_present, is_bot, is_same)   \
    X(T, TIME, played_at)
DB_ROW(ReadRow, READ_COLUMNS);
DB_SHAPE(read, ReadRow, READ_COLUMNS);

ErrorCode match_get(Tx *tx, int64_t group_id, int64_t id, Match *ret_match, Error *reterr)
{
    return db_one(tx, sql_rating_match_get, DB_ARGS(db_i64(group_id), id ? db_i64(id) : db_null()), &match_shape,
                  ret_match, reterr);
}

static bool refuse(MatchDone *done, MatchVerdict verdict, int which)
{
    done->verdict = verdict;
    done->which   = which;
    return true;
}

/* What needs no database. */
static bool scores_refused(const Group *group, const MatchNew *match, MatchDone *done)
{
    for (int i = 0; i < 2; i++)
        if (match->score[i] < 0 || match->score[i] > MATCH_SCORE_MAX)
            return refuse(done, MATCH_SCORES, i);
    if (match->player[0] == match->player[1])
        return refuse(done, MATCH_ONE_PLAYER, 0);
    if (match->score[0] == 0 && match->score[1] == 0)
        return refuse(done, MATCH_NO_SCORE, 0);
    if (match->score[0] == match->score[1] && !group->draws)
        return refuse(done, MATCH_NO_DRAWS, 0);
    return false;
}

static bool members_refused(const MatchNew *match, const ReadRow *const members[2], MatchDone *done)
{
    for (int i = 0; i < 2; i++) {
        if (!members[i])
            return refuse(done, MATCH_NO_MEMBER, i);
        if (members[i]->is_bot)
            return refuse(done, MATCH_BOT, i);
        if (!members[i]->is_present)
            return refuse(done, MATCH_LEFT, i);
    }
    return !match->is_confirmed && members[0]->is_same && refuse(done, MATCH_SAME, 0);
}

static bool is_same_match(const Match *stored, const MatchNew *match)
{
    return stored->player_a == match->player[0] && stored->player_b == match->player[1] &&
           stored->score_a == match->score[0] && stored->score_b == match->score[1];
}

/* The key has a match. Only if it is this one was the request repeated. */
static ErrorCode repeated(Tx *tx, const Group *group, const MatchNew *match, int64_t id, MatchDone *ret_done,
                          Error *reterr)
{
    Error     error = {0};
    Match     stored;
    ErrorCode code = match_get(tx, group->id, id, &stored, &error);

    if (code == ERR_NOT_FOUND || (code == OK && !is_same_match(&stored, match))) {
        log_write(LOG_WARN, "rating", "the key of a match belongs to another one", LOG_STR("key", match->key),
                  LOG_INT("match", id), LOG_INT("chat", group->chat_id));
        refuse(ret_done, MATCH_KEY_USED, 0);
        return OK;
    }
    TRY(error_pass(code, &error, reterr));
    *ret_done = (MatchDone){
        .verdict = MATCH_REPEATED,
        .id      = id,
        .before  = {stored.a_before, stored.b_before},
        .after   = {stored.a_after,  stored.b_after }
    };
    return OK;
}

/* A match on its way from the read to the write. */
typedef struct {
    MatchTry      *try;
    const char    *date;     /* in seconds, as text; NULL: not given */
    int64_t        match_id; /* that has the key already; 0: none */
    const ReadRow *members[2];
    RatingState    before[2], after[2];
} Registration;

static ErrorCode read_all(Tx *tx, Registration *list, int count, Error *reterr)
{
    Arena       *arena  = tx->arena;
    int64_t     *groups = arena_array(arena, int64_t, count), *players[2];
    const char **keys   = arena_array(arena, const char *, count);
    const char **dates  = arena_array(arena, const char *, count);
    int32_t     *scores[2];
    ReadRow     *rows;
    int          found;

    for (int side = 0; side < 2; side++) {
        players[side] = arena_array(arena, int64_t, count);
        scores[side]  = arena_array(arena, int32_t, count);
        for (int i = 0; i < count; i++) {
            players[side][i] = list[i].try->match->player[side];
            scores[side][i]  = list[i].try->match->score[side];
        }
    }
    for (int i = 0; i < count; i++) {
        groups[i] = list[i].try->group->id;
        keys[i]   = list[i].try->match->key;
        dates[i]  = list[i].date;
    }
    TRY(db_many(tx, sql_rating_matches_read,
                DB_ARGS(db_i64s(arena, groups, count), db_texts(arena, keys, count), db_i64s(arena, players[0], count),
                        db_i64s(arena, players[1], count), db_i32s(arena, scores[0], count),
                        db_i32s(arena, scores[1], count), db_texts(arena, dates, count)),
                &read_shape, &rows, &found, reterr));
    for (int i = 0; i < found; i++) {
        const ReadRow *row  = &rows[i];
        Registration  *item = &list[row->ord - 1];

        item->match_id                                               = row->match_id;
        item->members[row->player_id == item->try->match->player[1]] = row;
    }
    return OK;
}

typedef struct {
    int32_t ord;
    int64_t id;
} WrittenRow;
#define WRITTEN_COLUMNS(X, T) \
    X(T, I32, ord)            \
    X(T, I64, id)
DB_SHAPE(written, WrittenRow, WRITTEN_COLUMNS);

/* One number of the states before or after each match: that of its first player, then of its second one. */
static DbArg side_reals(Arena *arena, const Registration *list, int count, bool is_after, size_t offset)
{
    double *reals = arena_array(arena, double, 2 * count);

    for (int i = 0; i < 2 * count; i++) {
        const RatingState *state = &(is_after ? list[i / 2].after : list[i / 2].before)[i % 2];

        memcpy(&reals[i], (const char *)state + offset, sizeof *reals);
    }
    return rating_reals(arena, reals, 2 * count);
}
#define SIDE_REALS(is_after)                                                        \
    side_reals(arena, list, count, is_after, offsetof(RatingState, rating)),        \
        side_reals(arena, list, count, is_after, offsetof(RatingState, deviation)), \
        side_reals(arena, list, count, is_after, offsetof(RatingState, volatility))

static ErrorCode write_all(Tx *tx, Registration *list, int count, Error *reterr)
{
    Arena   *arena  = tx->arena;
    int64_t *groups = arena_array(arena, int64_t, count);
    int32_t *rules = arena_array(arena, int32_t, count), *scores_a = arena_array(arena, int32_t, count),
            *scores_b    = arena_array(arena, int32_t, count);
    int64_t     *dates   = arena_array(arena, int64_t, count);
    int64_t     *players = arena_array(arena, int64_t, 2 * count), *versions = arena_array(arena, int64_t, 2 * count);
    const char **keys = arena_array(arena, const char *, count), **authors = arena_array(arena, const char *, count);
    WrittenRow  *rows;
    int          found;

    for (int i = 0; i < count; i++) {
        const MatchNew *match = list[i].try->match;

        groups[i]   = list[i].try->group->id;
        rules[i]    = list[i].try->group->rules_id;
        keys[i]     = match->key;
        dates[i]    = list[i].members[0]->played_at;
        authors[i]  = match->author_id ? arena_print(arena, "%" PRId64, match->author_id) : NULL;
        scores_a[i] = match->score[0];
        scores_b[i] = match->score[1];
        for (int k = 0; k < 2; k++) {
            players[2 * (ptrdiff_t)i + k]  = match->player[k];
            versions[2 * (ptrdiff_t)i + k] = list[i].members[k]->version;
        }
    }
    TRY(db_many(tx, sql_rating_matches_write,
                DB_ARGS(db_i64s(arena, groups, count), db_texts(arena, keys, count), db_i32s(arena, rules, count),
                        db_texts(arena, authors, count), db_i32s(arena, scores_a, count),
                        db_i32s(arena, scores_b, count), db_i64s(arena, players, 2 * count),
                        db_i64s(arena, versions, 2 * count), SIDE_REALS(false), SIDE_REALS(true),
                        db_i64s(arena, dates, count)),
                &written_shape, &rows, &found, reterr));
    for (int i = 0; i < found; i++) {
        const WrittenRow *row = &rows[i];

        list[row->ord - 1].try->done.id = row->id;
    }
    return OK;
}

static ErrorCode compute(Registration *item, Error *reterr)
{
    const MatchNew *match = item->try->match;
    Rules           rules = group_rules(item->try->group);
    int32_t         days[2];

    for (int i = 0; i < 2; i++) {
        const ReadRow *member = item->members[i];

        item->before[i] = (RatingState){member->rating, member->deviation, member->volatility};
        days[i]         = member->days;
    }
    TRY(rules_apply(&rules, item->before, days, match->score[0], match->score[1], item->after, reterr));
    item->try->done = (MatchDone){
        .before = {item->before[0].rating, item->before[1].rating},
        .after  = {item->after[0].rating,  item->after[1].rating }
    };
    return OK;
}

ErrorCode matches_register(Tx *tx, MatchTry *const *tries, int count, Error *reterr)
{
    Registration *list = arena_array(tx->arena, Registration, count + 1);
    int           read = 0, kept = 0;
    ErrorCode     code;

    for (int i = 0; i < count; i++) {
        const MatchNew *match = tries[i]->match;

        if (!scores_refused(tries[i]->group, match, &tries[i]->done))
            list[read++] = (Registration){
                .try  = tries[i],
                .date = match->date_s ? arena_print(tx->arena, "%" PRId64, match->date_s) : NULL,
            };
    }
    if (read > 0)
        TRY(read_all(tx, list, read, reterr));
    for (int i = 0; i < read; i++) {
        MatchTry *try = list[i].try;

        if (list[i].match_id) {
            TRY(repeated(tx, try->group, try->match, list[i].match_id, &try->done, reterr));
        } else if (!members_refused(try->match, list[i].members, &try->done)) {
            TRY(compute(&list[i], reterr));
            list[kept++] = list[i];
        }
    }
    if (kept == 0)
        return OK;
    code = write_all(tx, list, kept, reterr);
    if (code == ERR_BUSY && reterr && strcmp(reterr->sqlstate, MATCH_CONFLICT) == 0)
        metric_add(&rating_metrics.conflicts, 1);
    TRY(code);
    metric_add(&rating_metrics.matches, kept);
    return OK;
}
