/*
 * match.c - see match.h.
 */
#include "rating/match.h"

#include <string.h>

#include "base/log.h"
#include "rating/metric.h"
#include "sql.h"

DB_SHAPE(match, Match, MATCH_COLUMNS);

#define READ_COLUMNS(X, T)            \
    X(T, int64_t, DB_I64, player_id)  \
    X(T, double, DB_REAL, rating)     \
    X(T, double, DB_REAL, deviation)  \
    X(T, double, DB_REAL, volatility) \
    X(T, int32_t, DB_I32, games)      \
    X(T, int64_t, DB_I64, version)    \
    X(T, bool, DB_BOOL, is_present)   \
    X(T, bool, DB_BOOL, is_bot)       \
    X(T, int64_t, DB_I64, match_id)   \
    X(T, bool, DB_BOOL, is_same)
typedef struct {
    READ_COLUMNS(DB_FIELD, ReadRow)
} ReadRow;
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
    if (code != OK) {
        if (reterr)
            *reterr = error;
        return code;
    }
    *ret_done = (MatchDone){
        .verdict = MATCH_REPEATED,
        .id      = id,
        .before  = {stored.a_before, stored.b_before},
        .after   = {stored.a_after,  stored.b_after }
    };
    return OK;
}

static ErrorCode write_all(Tx *tx, const Group *group, const MatchNew *match, const ReadRow *const members[2],
                           const RatingState before[2], const RatingState after[2], int64_t *ret_id, Error *reterr)
{
    int64_t versions[2] = {members[0]->version, members[1]->version};
    DbArg   states[6];

    for (int i = 0; i < 2; i++) {
        const RatingState *s = i ? after : before;

        states[i * 3]     = rating_reals(tx->arena, (double[]){s[0].rating, s[1].rating}, 2);
        states[i * 3 + 1] = rating_reals(tx->arena, (double[]){s[0].deviation, s[1].deviation}, 2);
        states[i * 3 + 2] = rating_reals(tx->arena, (double[]){s[0].volatility, s[1].volatility}, 2);
    }
    return db_get_i64(tx, sql_rating_match_write,
                      DB_ARGS(db_i64(group->id), db_text(match->key), db_i32(group->rules_id),
                              match->author_id ? db_i64(match->author_id) : db_null(), db_i32(match->score[0]),
                              db_i32(match->score[1]), db_i64s(tx->arena, match->player, 2),
                              db_i64s(tx->arena, versions, 2), states[0], states[1], states[2], states[3], states[4],
                              states[5]),
                      ret_id, reterr);
}

ErrorCode match_register(Tx *tx, const Group *group, const MatchNew *match, MatchDone *ret_done, Error *reterr)
{
    const ReadRow *members[2] = {NULL, NULL};
    RatingState    before[2], after[2];
    Rules          rules = group_rules(group);
    void          *rows;
    int            count;
    ErrorCode      code;
    MatchDone      done = {0};

    if (scores_refused(group, match, ret_done))
        return OK;
    TRY(db_many(tx, sql_rating_match_read,
                DB_ARGS(db_i64(group->id), db_text(match->key), db_i64(match->player[0]), db_i64(match->player[1]),
                        db_i32(match->score[0]), db_i32(match->score[1])),
                &read_shape, &rows, &count, reterr));
    for (int i = 0; i < count; i++) {
        const ReadRow *row = (const ReadRow *)rows + i;

        if (row->match_id)
            return repeated(tx, group, match, row->match_id, ret_done, reterr);
        members[row->player_id == match->player[1]] = row;
    }
    if (members_refused(match, members, ret_done))
        return OK;
    for (int i = 0; i < 2; i++)
        before[i] = (RatingState){members[i]->rating, members[i]->deviation, members[i]->volatility};
    rules_apply(&rules, before, match->score[0], match->score[1], after);
    for (int i = 0; i < 2; i++) {
        done.before[i] = before[i].rating;
        done.after[i]  = after[i].rating;
    }
    code = write_all(tx, group, match, members, before, after, &done.id, reterr);
    if (code == ERR_BUSY && reterr && strcmp(reterr->sqlstate, MATCH_CONFLICT) == 0)
        metric_add(&rating_metrics.conflicts, 1);
    TRY(code);
    metric_add(&rating_metrics.matches, 1);
    *ret_done = done;
    return OK;
}
