/*
 * verify.c - see verify.h.
 */
#include "rating/verify.h"

#include <math.h>
#include <stdarg.h>

#include "pg/tx.h"
#include "rating/replay.h"
#include "sql.h"

#define GROUPS_CHUNK 500

typedef struct {
    int64_t id, chat_id;
} GroupRow;
#define GROUP_ROW_COLUMNS(X, T) X(T, I64, id, chat_id)
DB_SHAPE(group_row, GroupRow, GROUP_ROW_COLUMNS);

#define MEMBER_COLUMNS(X, T)                                                  \
    X(T, I64, player_id, games, last_match_id, active_rows, version, changes) \
    X(T, REAL, start_rating, rating, deviation, volatility)
DB_ROW(MemberRow, MEMBER_COLUMNS);
DB_SHAPE(member_row, MemberRow, MEMBER_COLUMNS);

/* One group in its transaction; what was found is added to the report only when the transaction has ended. */
typedef struct {
    const RatingVerifyOptions *options;
    GroupRow                   group;
    Arena                     *arena; /* the report's */
    RatingReport              *report, group_report;
} Check;

static printf_like(4, 5) void finding(Check *check, const char *what, int64_t id, const char *format, ...)
{
    char    which[80], sentence[256];
    va_list values;

    snprintf(which, sizeof which, "%s %lld of chat %lld", what, (long long)id, (long long)check->group.chat_id);
    va_start(values, format);
    vsnprintf(sentence, sizeof sentence, format, values);
    va_end(values);
    findings_add(&check->group_report.findings, check->arena, &(Finding){what, which, sentence});
}

static ErrorCode match_check(Check *check, const ReplayMatch *match, ReplayMap *map, Error *reterr)
{
    RatingState before[2], after[2];
    int         sign = (match->score_a > match->score_b) - (match->score_a < match->score_b);

    if (match->history_rows != 2)
        finding(check, "match", match->id, "has %d history rows, not 2", match->history_rows);
    if (match->outcome == 2)
        finding(check, "match", match->id, "the outcomes in its history are not the opposite of each other");
    else if (match->outcome != sign)
        finding(check, "match", match->id, "its history has the outcome %d, its scores say %d", match->outcome, sign);
    for (int side = 0; side < 2; side++) {
        ReplayPlayer *player = replay_map_add(map, replay_player(match, side));
        RatingState   stored = replay_before(match, side);

        if (!player->is_set) { /* its first match: the start rating, which the member's row has */
            player->is_set = true;
            player->state  = (RatingState){player->start_rating, 350, 0.06};
        }
        before[side] = player->state;
        if (!rating_state_is_same(&before[side], &stored))
            finding(check, "match", match->id, "player %lld had %.6f before it, a replay gives %.6f",
                    (long long)player->player_id, stored.rating, before[side].rating);
    }
    TRY(replay_apply(map, match, before, after, reterr));
    for (int side = 0; side < 2; side++) {
        ReplayPlayer *player = replay_map_get(map, replay_player(match, side));
        RatingState   stored = replay_after(match, side);

        if (!rating_state_is_same(&after[side], &stored))
            finding(check, "match", match->id, "player %lld has %.6f after it, a replay gives %.6f",
                    (long long)player->player_id, stored.rating, after[side].rating);
        player->state         = after[side];
        player->last_match_id = match->id;
        player->games++;
    }
    return OK;
}

static void member_check(Check *check, const MemberRow *row, ReplayMap *map)
{
    const ReplayPlayer *player = replay_map_get(map, row->player_id);
    RatingState         stored = {row->rating, row->deviation, row->volatility};
    int64_t             games  = player ? player->games : 0;

    if (row->games != games)
        finding(check, "player", row->player_id, "has %lld games, there are %lld matches", (long long)row->games,
                (long long)games);
    if (row->active_rows != games)
        finding(check, "player", row->player_id, "has %lld history rows, there are %lld matches",
                (long long)row->active_rows, (long long)games);
    if (row->version != 1 + row->changes)
        finding(check, "player", row->player_id, "has the version %lld, %lld changes give %lld",
                (long long)row->version, (long long)row->changes, (long long)row->changes + 1);
    if (games == 0)
        return;
    if (row->last_match_id != player->last_match_id)
        finding(check, "player", row->player_id, "its last match is %lld, not %lld", (long long)player->last_match_id,
                (long long)row->last_match_id);
    if (!rating_state_is_same(&stored, &player->state))
        finding(check, "player", row->player_id, "has %.6f, a replay gives %.6f", row->rating, player->state.rating);
}

static ErrorCode group_check(Tx *tx, void *context, Error *reterr)
{
    Check                             *check = context;
    scoped(replay_map_free) ReplayMap *map   = replay_map_new();
    MemberRow                         *members;
    ReplayMatch                       *list;
    int                                members_count, count;
    int64_t                            after = 0;
    ArenaMark                          mark;

    check->group_report = (RatingReport){0};
    TRY(db_run(tx, sql_rating_verify_snapshot, DB_NONE, NULL, reterr));
    TRY(db_many(tx, sql_rating_verify_members, DB_ARGS(db_i64(check->group.id)), &member_row_shape, &members,
                &members_count, reterr));
    for (int i = 0; i < members_count; i++)
        replay_map_add(map, members[i].player_id)->start_rating = members[i].start_rating;
    mark = arena_mark(tx->arena);
    do {
        TRY(replay_chunk(tx, check->group.id, after, REPLAY_CHUNK, &list, &count, reterr));
        for (int i = 0; i < count; i++)
            TRY(match_check(check, &list[i], map, reterr));
        if (count)
            after = list[count - 1].id;
        check->group_report.matches += count;
        if (check->options->progress)
            check->options->progress(check->options->context, check->report->matches + check->group_report.matches);
        arena_rewind(tx->arena, mark);
    } while (count == REPLAY_CHUNK);
    for (int i = 0; i < members_count; i++)
        member_check(check, &members[i], map);
    check->group_report.players = members_count;
    return OK;
}

static void report_add(RatingReport *all, const RatingReport *one)
{
    all->groups++;
    all->matches += one->matches;
    all->players += one->players;
    findings_join(&all->findings, &one->findings);
}

static ErrorCode one_check(Pool *pool, Check *check, int64_t deadline_ms, Error *reterr)
{
    scoped(arena_free) Arena *rows    = arena_new(ARENA_BYTES_DEFAULT * 4);
    TxOptions                 options = {.name      = "rating_verify",
                                         .deadline  = deadline_in_ms(deadline_ms),
                                         .arena     = rows,
                                         .read_only = true};

    TRY(tx_run(pool, &options, group_check, check, reterr));
    report_add(check->report, &check->group_report);
    return OK;
}

ErrorCode rating_verify(Pool *pool, const RatingVerifyOptions *options, int64_t deadline_ms, Arena *arena,
                        RatingReport *ret_report, Error *reterr)
{
    Check   *check = arena_alloc(arena, sizeof *check);
    Mono     begun = clock_mono();
    int64_t  after = 0;
    int      count;
    GroupRow found = {0};

    *check      = (Check){.options = options, .arena = arena, .report = ret_report};
    *ret_report = (RatingReport){0};
    do {
        scoped(arena_free) Arena *rows = arena_new(ARENA_BYTES_DEFAULT);
        GroupRow                 *list;
        TxOptions                 reading = {.name      = "rating_verify_groups",
                                             .deadline  = deadline_in_ms(deadline_ms),
                                             .arena     = rows,
                                             .read_only = true};

        TRY(db_call_many(pool, &reading, sql_rating_group_list, DB_ARGS(db_i64(after), db_i32(GROUPS_CHUNK)),
                         &group_row_shape, &list, &count, reterr));
        for (int i = 0; i < count; i++) {
            check->group = list[i];
            after        = check->group.id;
            if (options->chat_id && check->group.chat_id != options->chat_id)
                continue;
            found = check->group;
            TRY(one_check(pool, check, deadline_ms, reterr));
        }
    } while (count == GROUPS_CHUNK);
    if (options->chat_id && !found.id)
        return fail(reterr, ERR_NOT_FOUND, "there is no group %lld", (long long)options->chat_id);
    ret_report->took_ms = mono_ms_between(begun, clock_mono());
    return OK;
}

void rating_report_write(Writer *writer, const RatingReport *report)
{
    writer_object(writer, NULL);
    writer_bool(writer, "ok", report->findings.count == 0);
    writer_i64(writer, "groups", report->groups);
    writer_i64(writer, "matches", report->matches);
    writer_i64(writer, "players", report->players);
    writer_i64(writer, "took_ms", report->took_ms);
    findings_write(writer, &report->findings);
    writer_end(writer);
}
