/*
 * section_bot.c - updates of the bot: stored as a poll stores them, a match registered by each, its answer queued.
 *
 * No Bot API is called: updates are made here, in arrays of 100 as getUpdates returns them, and a second worker takes the messages out of the outbox
 * and sends them nowhere, because only 1,000 confirmations may wait there. The update handler, the game and the outbox are those of the daemon. One
 * thread stores while the worker handles; time is taken from the first update that is stored to the last one that is done.
 */
#include <inttypes.h>

#include "base/sync.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/measure.h"
#include "bench/size.h"
#include "bench/worker_thread.h"
#include "bot/update.h"
#include "bus/handler.h"
#include "pg/tx.h"
#include "rating/group.h"
#include "rating/player.h"
#include "sql.h"
#include "telegram/intake.h"
#include "telegram/outbox.h"

#define TOKEN       "1:bench"
#define ROOT        "http://127.0.0.1:9" /* is not called */
#define PLAYERS     8                    /* of a group */
#define POLL        100                  /* updates in one array */
#define CALL_MS     60000
#define ARENA_BYTES ((size_t)16 << 20)
#define TEXT_BYTES  ((size_t)1 << 20)
#define GROUP_MAX   ((int64_t)PLAYERS * 30) /* updates of a group: a player may send 30 in a minute */
#define AHEAD_MAX   2000                    /* updates that are stored and not handled yet */

typedef struct {
    Bench         *bench;
    BenchDatabase *database;
    TelegramIntake intake;
    Waker         *waker;
    WorkerThread   worker, sender; /* of updates, and of the outbox */
    int64_t        first;          /* update_id */
    ErrorCode      code;
    Error          error;
} Storing;

/* ---- groups and their players ---- */

static int64_t chat_of(int64_t group)
{
    return -1000000 - group;
}

static int64_t user_of(int64_t group, int64_t number)
{
    return 1000 + group * PLAYERS + number;
}

typedef struct {
    int64_t group, date_s;
} Opening;

static ErrorCode group_body(Tx *tx, void *context, Error *reterr)
{
    const Opening *opening = context;
    PlayerSeen     seen[PLAYERS];
    int64_t        ids[PLAYERS];
    Group          group;

    TRY(group_open(tx, chat_of(opening->group), "bench", "en", &group, reterr));
    for (int i = 0; i < PLAYERS; i++) {
        const char *name = arena_print(tx->arena, "player_%" PRId64, user_of(opening->group, i));

        seen[i] = (PlayerSeen){.user_id  = user_of(opening->group, i),
                               .name     = name,
                               .username = name,
                               .sight    = PLAYER_PRESENT};
    }
    return players_seen(tx, group.id, opening->date_s, seen, PLAYERS, ids, reterr);
}

static ErrorCode groups_open(Bench *bench, const BenchDatabase *database, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES);
    Opening                   opening = {.date_s = clock_wall().us / 1000000};
    TxOptions options = {.name = "bench group", .deadline = deadline_in_ms(CALL_MS), .arena = arena, .keyed = true};

    bench_print(bench, "opening groups");
    for (opening.group = 0; opening.group < bench->options.groups; opening.group++) {
        TRY(bench_continue(bench, reterr));
        options.deadline = deadline_in_ms(CALL_MS);
        TRY(tx_run(database->pool, &options, group_body, &opening, reterr));
        arena_reset(arena);
    }
    return OK;
}

/* ---- updates ---- */

/* Groups in turn; the pair and the scores change, so that no result is asked back. */
static void update_print(Text *json, int64_t id, int64_t groups, int64_t date_s)
{
    int64_t group = id % groups, number = id / groups, a = number % PLAYERS;
    int64_t b = (a + 1 + number / PLAYERS % (PLAYERS - 1)) % PLAYERS;

    text_print(json,
               "{\"update_id\":%" PRId64 ",\"message\":{\"message_id\":%" PRId64 ",\"date\":%" PRId64
               ",\"chat\":{\"id\":%" PRId64 ",\"title\":\"bench\",\"type\":\"supergroup\"},"
               "\"from\":{\"id\":%" PRId64 ",\"is_bot\":false,\"first_name\":\"player_%" PRId64
               "\",\"username\":\"player_%" PRId64 "\",\"language_code\":\"en\"},"
               "\"text\":\"/match @player_%" PRId64 " @player_%" PRId64 " %" PRId64 " %" PRId64 "\","
               "\"entities\":[{\"type\":\"bot_command\",\"offset\":0,\"length\":6}]}}",
               id, number + 1, date_s, chat_of(group), user_of(group, a), user_of(group, a), user_of(group, a),
               user_of(group, a), user_of(group, b), 1 + number % 900, number % 7);
}

static int64_t handled(const Storing *storing)
{
    WorkerCounts counts;

    worker_counts(storing->worker.worker, &counts);
    return counts.completed + counts.lost;
}

static ErrorCode updates_store(Storing *storing, Error *reterr)
{
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES);
    Bench                    *bench  = storing->bench;
    int64_t                   date_s = clock_wall().us / 1000000, last;
    char                      domain[TELEGRAM_DOMAIN_SIZE];

    telegram_domain_updates(storing->intake.bot_id, domain);
    for (int64_t at = 0; at < bench->options.count;) {
        Text json;
        int  stored, size = 0;

        TRY(bench_continue(bench, reterr));
        if (at - handled(storing) > AHEAD_MAX) {
            clock_sleep_ms(1);
            continue;
        }
        text_init(&json, arena, TEXT_BYTES);
        for (; size < POLL && at < bench->options.count; size++, at++) {
            text_append_char(&json, size ? ',' : '[');
            update_print(&json, storing->first + at, bench->options.groups, date_s);
        }
        text_append_char(&json, ']');
        TRY(telegram_intake_many(&storing->intake, text_string(&json), deadline_in_ms(CALL_MS), arena, &stored, &last,
                                 reterr));
        if (stored != size)
            return fail(reterr, ERR_INTERNAL, "%d of %d updates were stored", stored, size);
        waker_notify(storing->waker, domain);
        arena_reset(arena);
    }
    return OK;
}

static void *storing_run(void *context)
{
    Storing *storing = context;

    storing->code = updates_store(storing, &storing->error);
    if (storing->code != OK)
        atomic_store(&storing->bench->stopping, true);
    return NULL;
}

/* ---- a round ---- */

static ErrorCode round_run(Storing *storing, Handler *handler, int64_t *ret_us, Error *reterr)
{
    Bench    *bench = storing->bench;
    char      domain[TELEGRAM_DOMAIN_SIZE], outbox[TELEGRAM_DOMAIN_SIZE];
    pthread_t thread;
    Mono      start;
    ErrorCode code;

    telegram_domain_updates(storing->intake.bot_id, domain);
    telegram_domain_outbox(storing->intake.bot_id, outbox);
    worker_thread_start_domain(&storing->sender, bench, storing->database, outbox, &handler_noop, /* threads= */ 0);
    worker_thread_start_domain(&storing->worker, bench, storing->database, domain, handler,
                               (int)bench->options.clients);
    code = worker_thread_listen(&storing->worker, storing->database, reterr);
    if (code == OK)
        code = worker_thread_listen(&storing->sender, storing->database, reterr);
    bench_print(bench, "handling updates");
    if (code == OK) {
        start  = clock_mono();
        thread = thread_start("store", storing_run, storing);
        worker_thread_wait(&storing->worker, bench->options.count);
        *ret_us = mono_us_between(start, clock_mono());
        thread_join(thread);
        worker_thread_wait(&storing->sender, bench->options.count);
    }
    code = worker_thread_end(&storing->sender, code, reterr);
    code = worker_thread_end(&storing->worker, code, reterr);
    if (storing->code != OK) {
        code    = storing->code;
        *reterr = storing->error;
    }
    return code;
}

#define DONE_COLUMNS(X, T) X(T, I64, matches, messages)
DB_ROW(DoneRow, DONE_COLUMNS);
DB_SHAPE(done, DoneRow, DONE_COLUMNS);

/* A refusal is handled too, but costs less. */
static ErrorCode round_check(const Storing *storing, int64_t updates, Error *reterr)
{
    TxOptions options = {.name      = "bench bot",
                         .deadline  = deadline_in_ms(CALL_MS),
                         .arena     = storing->bench->arena,
                         .read_only = true};
    DoneRow   done;

    TRY(db_call(storing->database->pool, &options, sql_bench_bot, DB_ARGS(db_i64(storing->intake.bot_id)), &done_shape,
                &done, reterr));
    if (done.matches == updates && done.messages == updates)
        return OK;
    return fail(reterr, ERR_INTERNAL, "%lld updates gave %lld matches and %lld messages", (long long)updates,
                (long long)done.matches, (long long)done.messages);
}

static ErrorCode rounds_run(Bench *bench, Storing *storing, Handler *handler, Error *reterr)
{
    int64_t count = bench->options.count, us = 0;
    Size    before, after;

    for (int64_t round = 0; round < bench->options.rounds; round++) {
        storing->first = 1 + round * count;
        TRY(size_measure(bench, storing->database, "rating", &before, reterr));
        TRY(round_run(storing, handler, &us, reterr));
        report_run(&bench->report, "bot", "updates", UNIT_RATE, per_second(count, us));
        TRY(size_measure(bench, storing->database, "rating", &after, reterr));
        size_report(bench, "bot, each update", &before, &after, count);
        TRY(round_check(storing, (round + 1) * count, reterr));
    }
    return OK;
}

ErrorCode section_bot(Bench *bench, int64_t value, Error *reterr)
{
    scoped(telegram_bot_free) TelegramBot *bot     = NULL;
    Storing                                storing = {.bench = bench};
    TelegramOutbox                        *outbox;
    Handler                               *handler;
    ErrorCode                              code;

    (void)value;
    if (bench->options.count * bench->options.rounds > bench->options.groups * GROUP_MAX)
        return fail(reterr, ERR_USAGE, "the players of a group may send %lld updates: %lld updates need --groups %lld",
                    (long long)GROUP_MAX, (long long)(bench->options.count * bench->options.rounds),
                    (long long)(bench->options.count * bench->options.rounds + GROUP_MAX - 1) / GROUP_MAX);
    TRY(bench_database(bench, &storing.database, reterr));
    TRY(telegram_bot_new(TOKEN, ROOT, &bot, reterr));
    TRY(groups_open(bench, storing.database, reterr));
    storing.waker  = waker_new(storing.database->pool);
    storing.intake = (TelegramIntake){.pool = storing.database->pool, .bot_id = telegram_bot_id(bot)};
    outbox         = telegram_outbox_new(
        &(TelegramOutboxOptions){.pool      = storing.database->pool,
                                         .bot       = bot,
                                         .size_max  = (int)(bench->options.count * bench->options.rounds * 2),
                                         .chat_ms   = 1000,
                                         .group_max = 20,
                                         .all_max   = 30}); /* the defaults of settings */
    handler = bot_update_handler_new(
        &(BotUpdateOptions){.pool = storing.database->pool, .bot = bot, .outbox = outbox, .waker = storing.waker});
    code = rounds_run(bench, &storing, handler, reterr);
    bot_update_handler_free(handler);
    telegram_outbox_free(outbox);
    waker_free(storing.waker);
    return code;
}
