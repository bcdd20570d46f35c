/*
 * rating_bench.c - a group with 10,000 players and 1,000,000 matches: leaderboard, undo of the last and of an old match, chart.
 *
 *     rating_bench URL [PLAYERS [MATCHES]]      in an empty database, which it migrates and fills
 *
 * The matches are made in SQL with ratings that a replay would not give: only the time is of interest. What is printed is the median and the
 * slowest of some runs, each a transaction of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "pg/migrate.h"
#include "pg/tx.h"
#include "rating/board.h"
#include "rating/chart.h"
#include "rating/undo.h"
#include "sql.h"

#define CHAT (-1001)
#define RUNS 21

static const char fill[] =
    "insert into rating.player (user_id, name, is_bot, seen_at) select i, 'Player ' || i, false, now() from "
    "generate_series(1, %d) i; "
    "insert into rating.member (group_id, player_id, start_rating, rating, deviation, volatility, games, "
    "last_match_id, version) "
    "select 1, i, 1500, 1000 + (i * 7919 %% 1000), 350, 0.06, 1, null, 1 from generate_series(1, %d) i; "
    "insert into rating.match (group_id, key, player_a, player_b, score_a, score_b, rules_id, played_at) "
    "select 1, 'k' || i, 1 + a, 1 + (a + 1 + i * 13 %% (%d - 1)) %% %d, 1 + i %% 3, 1, 1, now() - (%d - i) * interval "
    "'20 s' "
    "from generate_series(1, %d) i, lateral (select (i::bigint * 7907 %% %d)::integer as a) s; "
    "insert into rating.history (match_id, player_id, group_id, opponent_id, outcome, rating_before, deviation_before, "
    "volatility_before, "
    "rating_after, deviation_after, volatility_after, played_at) "
    "select m.id, p.id, 1, p.other, 0, 1500 + m.id %% 50, 350, 0.06, 1501 + m.id %% 50, 350, 0.06, m.played_at "
    "from rating.match m, lateral (values (m.player_a, m.player_b), (m.player_b, m.player_a)) p (id, other); "
    "update rating.member m set games = h.n, last_match_id = h.last from "
    "(select player_id, count(*) n, max(match_id) last from rating.history group by 1) h where h.player_id = "
    "m.player_id";

typedef struct {
    int64_t match_id;
    int     number, runs;
    int64_t us[RUNS];
    int     replayed;
} Bench;

static Pool  *pool;
static Arena *arena;

static void must(ErrorCode code, const Error *error)
{
    if (code == OK)
        return;
    fprintf(stderr, "rating_bench: %s\n", error->text);
    exit(1);
}

static ErrorCode setup_body(Tx *tx, void *context, Error *reterr)
{
    Group group;

    TRY(group_open(tx, CHAT, "bench", "en", &group, reterr));
    (void)context;
    return OK;
}

static ErrorCode sql_body(Tx *tx, void *context, Error *reterr)
{
    return db_run(tx, context, DB_NONE, NULL, reterr);
}

static ErrorCode board_body(Tx *tx, void *context, Error *reterr)
{
    Bench    *bench = context;
    BoardRow *list;
    int       count;

    return board_read(tx, 1, bench->number % 3 == 2 ? 9000 : 0, 10, &list, &count, reterr);
}

static ErrorCode undo_body(Tx *tx, void *context, Error *reterr)
{
    Bench   *bench = context;
    Group    group;
    UndoAsk  ask  = {.key      = arena_print(tx->arena, "u%lld:%d", (long long)bench->match_id, bench->number),
                     .match_id = bench->match_id,
                     .admin    = ADMIN_YES};
    UndoDone done = {0};

    TRY(group_get(tx, CHAT, &group, reterr));
    TRY(undo_run(tx, &group, &ask, &done, reterr));
    if (done.verdict != UNDO_DONE)
        return fail(reterr, ERR_INTERNAL, "undo ended with %d", done.verdict);
    bench->replayed = done.replayed;
    return OK;
}

static ErrorCode chart_body(Tx *tx, void *context, Error *reterr)
{
    int64_t     player = 1;
    BoardPoint *points;
    ChartSeries series = {.name = "Player"};
    int         count;
    const void *png;
    size_t      size;

    (void)context;
    TRY(board_points(tx, 1, &player, 1, CHART_POINTS_MAX, &points, &count, reterr));
    series.points = arena_array(tx->arena, ChartPoint, CHART_POINTS_MAX);
    series.count  = CHART_POINTS_MAX;
    for (int i = 0; i < CHART_POINTS_MAX; i++) /* of as many as there are, drawn again and again */
        series.points[i] = (ChartPoint){points[0].at + i * INT64_C(3600000000), points[i % count].rating};
    return chart_draw("bench", LANGUAGE_EN, &series, 1, tx->arena, &png, &size, reterr);
}

static int64_t timed(const char *name, TxBody *body, void *context)
{
    TxOptions options = {.name = name, .deadline = deadline_in_ms(600000), .arena = arena, .keyed = true};
    Error     error   = {0};
    Mono      begun   = clock_mono();

    must(tx_run(pool, &options, body, context, &error), &error);
    arena_reset(arena);
    return mono_us_between(begun, clock_mono());
}

static int smaller(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void bench_run(const char *name, TxBody *body, Bench *bench)
{
    for (bench->number = 0; bench->number < bench->runs; bench->number++)
        bench->us[bench->number] = timed(name, body, bench);
    qsort(bench->us, (size_t)bench->runs, sizeof bench->us[0], smaller);
    printf("%-32s median %8.1f ms, slowest %8.1f ms", name, (double)bench->us[bench->runs / 2] / 1000,
           (double)bench->us[bench->runs - 1] / 1000);
    if (bench->replayed)
        printf(", %d matches computed again", bench->replayed);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int players = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 10000,
        matches = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 1000000;
    Error error = {0};
    char  sql[4096];
    int   applied;

    if (argc < 2 || players < 3 || matches < 100) {
        fprintf(stderr, "usage: rating_bench URL [PLAYERS [MATCHES]]\n");
        return 2;
    }
    log_open(LOG_ERROR, LOG_TEXT, 2);
    arena = arena_new(ARENA_BYTES_DEFAULT * 8);
    must(pool_new(&(PoolOptions){.conninfo = argv[1], .size_max = 2}, &pool, &error), &error);
    must(migrate_run(pool, &schema_embedded, deadline_in_ms(120000), &applied, &error), &error);
    timed("setup", setup_body, NULL);
    snprintf(sql, sizeof sql, fill, players, players, players, players, matches, matches, players);
    for (char *save = NULL, *part = strtok_r(sql, ";", &save); part; part = strtok_r(NULL, ";", &save))
        timed("fill", sql_body, part);
    for (const char *const *table = (const char *const[]){"match", "history", "member", "player", NULL}; *table;
         table++) {
        snprintf(sql, sizeof sql, "analyze rating.%s", *table);
        timed("analyze", sql_body, sql);
    }
    printf("%d players, %d matches\n", players, matches);
    bench_run("leaderboard", board_body, &(Bench){.runs = RUNS});
    bench_run("undo of the last match", undo_body, &(Bench){.runs = RUNS});
    bench_run("undo with 1,000 after it", undo_body, &(Bench){.runs = 1, .match_id = matches - RUNS - 1000});
    bench_run("undo with 20,000 after it", undo_body,
              &(Bench){.runs = 1, .match_id = matches - RUNS - 20000 > 0 ? matches - RUNS - 20000 : 1});
    bench_run("chart of 1,000 matches", chart_body, &(Bench){.runs = RUNS});
    arena_free(arena);
    pool_free(pool);
    return 0;
}
