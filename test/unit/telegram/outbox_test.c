/*
 * The outbox: what is queued commits with its transaction, once, within the limit; long texts become several commands.
 */
#include "telegram/outbox.h"

#include "pg/tx.h"
#include "telegram/intake.h"
#include "telegram/metric.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

#define TOKEN "424242:x"

typedef struct {
    TestDatabase   *db;
    Pool           *pool;
    TelegramBot    *bot;
    TelegramOutbox *outbox;
    Arena          *arena;
} Fixture;

static Fixture fixture_new(int size_max)
{
    Fixture fixture = {.db = database_new(), .arena = arena_new(ARENA_BYTES_DEFAULT)};
    Error   error   = {0};

    assert_ok(pool_new(&(PoolOptions){.conninfo = database_url(fixture.db), .size_max = 2}, &fixture.pool, &error));
    assert_ok(telegram_bot_new(TOKEN, "http://127.0.0.1:1", &fixture.bot, &error));
    fixture.outbox =
        telegram_outbox_new(&(TelegramOutboxOptions){.pool = fixture.pool, .bot = fixture.bot, .size_max = size_max});
    return fixture;
}

static void fixture_free(Fixture *fixture)
{
    telegram_outbox_free(fixture->outbox);
    telegram_bot_free(fixture->bot);
    pool_free(fixture->pool);
    arena_free(fixture->arena);
    database_free(fixture->db);
}

typedef struct {
    TelegramOutbox         *outbox;
    const char             *key;
    const TelegramOutgoing *items;
    int                     count, refused;
    bool                    is_undone;
} Put;

static ErrorCode put_body(Tx *tx, void *context, Error *reterr)
{
    Put        *put  = context;
    TelegramPut list = {.key = put->key, .items = put->items, .count = put->count};

    TRY(telegram_outbox_put(put->outbox, tx, &list, 1, &put->refused, reterr));
    if (list.error.code != OK) {
        *reterr = list.error;
        return list.error.code;
    }
    return put->is_undone ? fail(reterr, ERR_CONFLICT, "undone") : OK;
}

static ErrorCode put_run(const Fixture *fixture, Put *put, Error *reterr)
{
    TxOptions options = {.name = "test", .deadline = deadline_in_ms(20000), .arena = fixture->arena, .keyed = true};

    put->outbox = fixture->outbox;
    return tx_run(fixture->pool, &options, put_body, put, reterr);
}

TEST(outbox_commits_with_its_transaction_and_once)
{
    Fixture          fixture = fixture_new(1000);
    TelegramOutgoing item    = {.method = TELEGRAM_SEND, .chat_id = -5, .html = "hello"};
    Put              put     = {.key = "update:1", .items = &item, .count = 1, .is_undone = true};
    Error            error   = {0};

    assert_code(ERR_CONFLICT, put_run(&fixture, &put, &error));
    assert_int_equal(0, database_get_i64(fixture.db, "select count(*) from pawl.command"));
    put.is_undone = false;
    assert_ok(put_run(&fixture, &put, &error));
    assert_ok(put_run(&fixture, &put, &error));
    assert_int_equal(1, database_get_i64(fixture.db, "select count(*) from pawl.command"));
    put.key = "update:2";
    assert_ok(put_run(&fixture, &put, &error));
    assert_int_equal(2, database_get_i64(fixture.db, "select count(*) from pawl.command where order_key = '-5'"));
    fixture_free(&fixture);
}

/* One after the other the limit is exact. */
TEST(outbox_refuses_the_message_after_the_last_that_may_wait)
{
    Fixture          fixture = fixture_new(1000);
    TelegramOutgoing item    = {.method = TELEGRAM_SEND, .chat_id = 5, .html = "hello"};
    TelegramOutgoing answer  = {.method = TELEGRAM_ANSWER, .callback_id = "1"};
    int64_t          dropped = metric_value(&telegram_metrics.sent_dropped);
    Error            error   = {0};

    for (int i = 0; i < 1001; i++) {
        char key[32];
        Put  put = {.key = key, .items = &item, .count = 1};

        item.chat_id = 5 + i % 40; /* one chat may have a share only */
        snprintf(key, sizeof key, "update:%d", i);
        item.chat_id = 5 + i / 50; /* the share of a chat */
        assert_ok(put_run(&fixture, &put, &error));
        assert_int_equal(i < 1000 ? 0 : 1, put.refused);
    }
    assert_int_equal(1000, database_get_i64(fixture.db, "select count(*) from pawl.command"));
    assert_int_equal(dropped + 1, metric_value(&telegram_metrics.sent_dropped));
    Put put = {.key = "answer", .items = &answer, .count = 1};

    assert_ok(put_run(&fixture, &put, &error));
    assert_int_equal(0, put.refused);
    fixture_free(&fixture);
}

TEST(outbox_splits_long_texts)
{
    Fixture          fixture = fixture_new(1000);
    char            *text    = arena_alloc(fixture.arena, 10001);
    TelegramButton   button  = {"Undo", "undo:1", .ends_row = true};
    TelegramOutgoing items[] = {
        {.method = TELEGRAM_SEND, .chat_id = 5, .html = text, .reply_to = 9, .buttons = &button, .buttons_count = 1},
        {.method = TELEGRAM_SEND, .chat_id = 5, .html = "behind it"}
    };
    Put   put   = {.key = "update:1", .items = items, .count = 2};
    Error error = {0};

    for (int i = 0; i < 10000; i++)
        text[i] = i % 10 == 9 ? ' ' : 'x';
    assert_ok(put_run(&fixture, &put, &error));
    assert_int_equal(4, database_get_i64(fixture.db, "select count(*) from pawl.command"));
    assert_int_equal(3, database_get_i64(fixture.db,
                                         "select count(*) from pawl.command where length(payload->>'text') <= 4096 and "
                                         "payload->>'text' like 'xxx%'"));
    assert_int_equal(1, database_get_i64(fixture.db,
                                         "select row_number from (select row_number() over (order by id), payload from "
                                         "pawl.command) c where payload ? 'reply_to'"));
    assert_int_equal(3, database_get_i64(fixture.db,
                                         "select row_number from (select row_number() over (order by id), payload from "
                                         "pawl.command) c where payload ? 'buttons'"));
    fixture_free(&fixture);
}

/* Of a poll: each once, what cannot be read is left out, the last number counts. */
TEST(intake_stores_each_update_once)
{
    Fixture        fixture = fixture_new(1000);
    TelegramIntake intake  = {.pool = fixture.pool, .bot_id = 424242};
    const char    *json = "[{\"update_id\": 5, \"message\": {\"chat\": {\"id\": -3}}}, {\"update_id\": 5, \"message\": "
                          "{\"chat\": {\"id\": "
                          "-3}}}, {}, null, {\"update_id\": 7, \"message\": {\"chat\": {\"id\": 1e999999}}}, "
                          "{\"update_id\": 6, \"poll\": {}}]";
    int64_t        last;
    int            count;
    Error          error = {0};

    for (int i = 0; i < 2; i++) {
        assert_ok(telegram_intake_many(&intake, json, deadline_in_ms(20000), fixture.arena, &count, &last, &error));
        assert_int_equal(6, count);
        assert_int_equal(7, last);
    }
    assert_int_equal(2, database_get_i64(fixture.db, "select count(*) from pawl.command"));
    assert_int_equal(1, database_get_i64(fixture.db, "select count(*) from pawl.command where order_key = '-3'"));
    assert_int_equal(1, database_get_i64(fixture.db, "select count(*) from pawl.command where order_key is null"));
    fixture_free(&fixture);
}

/* Telegram sorts them; servers that do not must not turn a chat's matches round. */
TEST(intake_stores_updates_in_the_order_of_their_ids)
{
    Fixture        fixture = fixture_new(1000);
    TelegramIntake intake  = {.pool = fixture.pool, .bot_id = 424242};
    const char    *json    = "[{\"update_id\": 9, \"message\": {\"chat\": {\"id\": -3}}}, "
                             "{\"update_id\": 7, \"message\": {\"chat\": {\"id\": -3}}}, {}, "
                             "{\"update_id\": 8, \"message\": {\"chat\": {\"id\": -3}}}]";
    int64_t        last;
    int            count;
    Error          error = {0};

    assert_ok(telegram_intake_many(&intake, json, deadline_in_ms(20000), fixture.arena, &count, &last, &error));
    assert_int_equal(4, count);
    assert_int_equal(9, last);
    assert_int_equal(
        789, database_get_i64(fixture.db,
                              "select string_agg(payload->>'update_id', '' order by id)::bigint from pawl.command"));
    fixture_free(&fixture);
}
