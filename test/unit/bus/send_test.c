/*
 * send_test.c - commands in: once each, refused by name, in one transaction over several domains.
 */
#include "bus/send.h"

#include <string.h>

#include "base/sync.h"
#include "base/text.h"
#include "bus/metric.h"
#include "bus/reserved_domain.h"
#include "test/unit/bus/fixture.h"

#define ID "0190a000-0000-7000-8000-00000000000a"

TEST(command_same_send_twice_is_one_command)
{
    scoped(bus_free) Bus *bus   = bus_new(4);
    SendItem              item  = bus_item("mail", "hello", "{\"to\": 1}");
    SendItem             *list  = &item;
    Error                 error = {0};

    item.command_id = ID;
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_ok(item.code);
    assert_true(item.is_new);
    assert_string_equal(item.id, ID);
    assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
    assert_ok(item.code);
    assert_false(item.is_new);
    assert_string_equal(item.status, "PENDING");
    assert_int_equal(bus_count(bus, "command"), 1);
    assert_int_equal(bus_count(bus, "ready"), 1);
    assert_int_equal(bus_count(bus, "audit"), 1);
}

TEST(send_refuses_the_same_id_with_another_body_and_names_the_difference)
{
    scoped(bus_free) Bus *bus      = bus_new(4);
    SendItem              items[3] = {bus_item("mail", "hello", "{\"to\": 1}"), bus_item("mail", "bye", "{\"to\": 1}"),
                                      bus_item("mail", "hello", "{\"to\": 2}")};
    SendItem             *list[]   = {&items[0], &items[1], &items[2]};
    Error                 error    = {0};

    for (int i = 0; i < 3; i++)
        items[i].command_id = ID;
    assert_ok(send_many(bus->pool, soon(), bus->arena, list, 3, &error));
    assert_ok(items[0].code);
    assert_true(items[0].is_new);
    assert_int_equal(items[1].code, ERR_KEY_REUSED);
    assert_contains(items[1].error.text, "type is \"bye\", it was sent as \"hello\"");
    assert_int_equal(items[2].code, ERR_KEY_REUSED);
    assert_contains(items[2].error.text, "payload differs");
    assert_int_equal(bus_count(bus, "command"), 1);
}

TEST(send_counts_what_became_of_each_item)
{
    scoped(bus_free) Bus *bus      = bus_new(4);
    SendItem              items[3] = {bus_item("mail", "hello", NULL), bus_item("post", "hello", NULL),
                                      bus_item("mail", "bye", NULL)};
    SendItem             *list[]   = {&items[0], &items[1], &items[2]};
    int64_t               calls = metric_value(&bus_metrics.send_calls), new = metric_value(&bus_metrics.sent_new);
    int64_t known = metric_value(&bus_metrics.sent_known), refused = metric_value(&bus_metrics.sent_refused);
    Error   error = {0};

    items[0].command_id = ID;
    items[2].command_id = ID;
    assert_ok(send_many(bus->pool, soon(), bus->arena, list, 3, &error)); /* two domains: a transaction */
    assert_ok(send_many(bus->pool, soon(), bus->arena, list, 1, &error));
    assert_int_equal(metric_value(&bus_metrics.send_calls) - calls, 2);
    assert_int_equal(metric_value(&bus_metrics.sent_new) - new, 2);
    assert_int_equal(metric_value(&bus_metrics.sent_refused) - refused, 1);
    assert_int_equal(metric_value(&bus_metrics.sent_known) - known, 1);
}

TEST(send_many_takes_several_domains_and_leaves_out_what_is_wrong)
{
    scoped(bus_free) Bus *bus      = bus_new(4);
    SendItem              items[4] = {bus_item("b", "t", NULL), bus_item("a", "t", "[1]"), bus_item("b", "t t", NULL),
                                      bus_item("b", "t", "{\"x\":}")};
    SendItem             *list[]   = {&items[0], &items[1], &items[2], &items[3]};
    Error                 error    = {0};

    items[0].delay_ms = 60000;
    items[1].priority = 9;
    assert_ok(send_many(bus->pool, soon(), bus->arena, list, 4, &error));
    assert_ok(items[0].code);
    assert_ok(items[1].code);
    assert_int_equal(items[2].code, ERR_INVALID);
    assert_contains(items[2].error.text, "type must be");
    assert_int_equal(items[3].code, ERR_INVALID);
    assert_contains(items[3].error.text, "payload");
    assert_int_equal(bus_count(bus, "command"), 2);
    assert_int_equal(bus_count(bus, "delayed"), 1);
    assert_int_equal(database_get_i64(bus->db, "select priority::bigint from pawl.ready"), 9);
}

static bool domain_is_court(const char *domain)
{
    return strncmp(domain, "court:", strlen("court:")) == 0;
}

static const ReservedDomain test_domains[] = {
    {domain_is_court, .commands = "verdicts", .refuses_replies = true},
    {0}
};
RESERVED_DOMAINS_JOIN(test_domains)

TEST(send_check_names_the_field)
{
    static const struct {
        SendItem    item;
        ErrorCode   code;
        const char *words;
    } rows[] = {
        {{.domain = NULL, .type = "t"},                                                      ERR_INVALID, "domain must be"           },
        {{.domain = "-a", .type = "t"},                                                      ERR_INVALID, "domain must be"           },
        {{.domain = "a", .type = ""},                                                        ERR_INVALID, "type must be"             },
        {{.domain = "a", .type = "t", .command_id = "7"},                                    ERR_INVALID, "command_id must be a UUID"},
        {{.domain = "a", .type = "t", .batch_id = "7"},                                      ERR_INVALID, "batch_id must be a UUID"  },
        {{.domain = "a", .type = "t", .max_attempts = 3, .delay_ms = -1},                    ERR_INVALID, "delay must be"            },
        {{.domain = "a", .type = "t", .max_attempts = 3, .priority = 10},                    ERR_INVALID, "priority must be"         },
        {{.domain = "a", .type = "t", .max_attempts = 0},                                    ERR_INVALID, "max_attempts must be"     },
        {{.domain = "a", .type = "t", .max_attempts = 3, .reply_to = "a b"},                 ERR_INVALID, "reply_to must be"         },
        {{.domain = "a", .type = "t", .max_attempts = 3, .reply_to = "command:d"},           ERR_INVALID, "command:DOMAIN/TYPE"      },
        {{.domain = "a", .type = "t", .max_attempts = 3, .reply_to = "command:/t"},          ERR_INVALID, "command:DOMAIN/TYPE"      },
        {{.domain = "a", .type = "t", .max_attempts = 3, .reply_to = "command:d/"},          ERR_INVALID, "command:DOMAIN/TYPE"      },
        {{.domain = "a", .type = "t", .max_attempts = 3, .reply_to = "command:d/t/u"},
         ERR_INVALID,                                                                                     "command:DOMAIN/TYPE"      },
        {{.domain = "a", .type = "t", .max_attempts = 3, .reply_to = "command:court:d/t"},
         ERR_INVALID,                                                                                     "a domain of verdicts"     },
        {{.domain = "a", .type = "t", .max_attempts = 3, .reply_to = "response:7/$reply.s"},
         ERR_INVALID,                                                                                     "reply_to must be a queue" },
        {{.domain = "a", .type = "t", .max_attempts = 3, .correlation_id = "\xff"},          ERR_INVALID, "must be UTF-8"            },
        {{.domain = "a", .type = "t", .max_attempts = 3, .payload = "\"\xff\""},             ERR_INVALID, "UTF-8"                    },
        {{.domain = "a", .type = "t", .max_attempts = 3, .payload = "\"\\u0000\""},          ERR_INVALID, "payload"                  },
        {{.domain = "a", .type = "t", .max_attempts = 3, .payload = ""},                     ERR_INVALID, "payload"                  },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        Error error = {0};

        assert_code(rows[i].code, send_check(&rows[i].item, &error));
        assert_contains(error.text, rows[i].words);
    }
}

TEST(send_check_takes_a_command_as_the_target_of_a_reply)
{
    char  longest[SEND_REPLY_TO_MAX + 1] = "command:";
    Error error                          = {0};

    memset(longest + 8, 'd', SEND_DOMAIN_MAX);
    longest[8 + SEND_DOMAIN_MAX] = '/';
    memset(longest + 9 + SEND_DOMAIN_MAX, 't', SEND_TYPE_MAX);
    assert_int_equal(SEND_REPLY_TO_MAX, strlen(longest));

    const char *const targets[] = {"answers", "a.b-c_d", "command:d/t", "command:d.e:f/t:u", longest};

    for (size_t i = 0; i < COUNT(targets); i++) {
        SendItem item = {.domain = "a", .type = "t", .max_attempts = 3, .reply_to = targets[i]};

        assert_ok(send_check(&item, &error));
    }
}

TEST(sender_keeps_a_poisoned_neighbour_to_itself)
{
    scoped(bus_free) Bus       *bus    = bus_new(4);
    scoped(sender_free) Sender *sender = sender_new(bus->pool);
    SendItem                    bad    = bus_item("mail", "t", "1e500000");
    SendItem                    good   = bus_item("mail", "t", "1");
    Error                       error  = {0};

    assert_code(ERR_INVALID, sender_send(sender, soon(), &bad, &error));
    assert_string_equal(error.sqlstate, "22003");
    assert_ok(sender_send(sender, soon(), &good, &error));
    assert_true(good.is_new);
    assert_int_equal(bus_count(bus, "command"), 1);
}

TEST(send_of_one_id_twice_in_a_call_takes_the_delay_of_the_first)
{
    static const int64_t delays[][2] = {
        {0,       3600000},
        {3600000, 0      }
    };

    for (size_t i = 0; i < COUNT(delays); i++) {
        scoped(bus_free) Bus *bus      = bus_new(4);
        SendItem              items[2] = {bus_item("mail", "t", NULL), bus_item("mail", "t", NULL)};
        SendItem             *list[]   = {&items[0], &items[1]};
        Error                 error    = {0};

        for (int j = 0; j < 2; j++) {
            items[j].command_id = ID;
            items[j].delay_ms   = delays[i][j];
        }
        assert_ok(send_many(bus->pool, soon(), bus->arena, list, 2, &error));
        assert_true(items[0].is_new && !items[1].is_new);
        assert_int_equal(bus_count(bus, "ready"), delays[i][0] == 0);
        assert_int_equal(bus_count(bus, "delayed"), delays[i][0] != 0);
    }
}

/* Commands k(from) to k(to) in one call of send_items, as "STATUS count" of each status. */
static const char *send_shared(Bus *bus, int from, int to)
{
    return database_get_text(bus->db,
                             arena_print(bus->arena,
                                         "select string_agg(status || case when is_new then ' new ' else ' ' end || n, "
                                         "', ' order by status, is_new) "
                                         "from (select status, is_new, count(*) n from pawl.send_items(true, 'mail', "
                                         "array_fill('t'::text, '{%d}'), array_fill('1'::jsonb, '{%d}'), "
                                         "array(select lpad(n::text, 32, '0')::uuid from generate_series(%d, %d) n), "
                                         "null, null, null, null, null, null, null) group by 1, 2) s",
                                         to - from + 1, to - from + 1, from, to),
                             bus->arena);
}

TEST(send_sets_aside_what_an_open_transaction_sends_too)
{
    scoped(bus_free) Bus *bus    = bus_new(4);
    PGconn               *holder = database_connect(bus->db);

    PQclear(PQexec(holder, "begin; select pawl.send('mail', 't', '1', lpad('2', 32, '0'))"));
    assert_string_equal(send_shared(bus, 1, 3), "BUSY 1, PENDING new 2");
    /* Its transaction went on and has the session's own limit again. */
    assert_string_equal(send_shared(bus, 1, 3), "BUSY 1, PENDING 2");
    PQclear(PQexec(holder, "rollback"));
    assert_string_equal(send_shared(bus, 1, 3), "PENDING 2, PENDING new 1");

    /* More than are waited for: what was not tried is set aside as well. */
    PQclear(PQexec(holder, "begin; select pawl.send('mail', 't', '1', lpad(n::text, 32, '0')) "
                           "from generate_series(11, 17) n"));
    assert_string_equal(send_shared(bus, 10, 40), "BUSY 30, PENDING new 1");
    PQclear(PQexec(holder, "commit"));
    assert_string_equal(send_shared(bus, 10, 40), "PENDING 8, PENDING new 23");
    assert_int_equal(bus_count(bus, "command"), 34);
    assert_int_equal(bus_count(bus, "ready"), 34);
    assert_int_equal(bus_count(bus, "audit"), 34);
    PQfinish(holder);
}

/* The same, as "ord STATUS" of each item. */
#define SHARED_LIST "select string_agg(ord || ' ' || status, ', ' order by ord) from pawl.send_items(true, 'mail', "

TEST(send_sets_aside_what_waits_for_a_reply_queue_that_is_being_created)
{
    scoped(bus_free) Bus *bus    = bus_new(4);
    PGconn               *holder = database_connect(bus->db);
    const char           *send =
        SHARED_LIST "array_fill('t'::text, '{4}'), array_fill('1'::jsonb, '{4}'), "
                    "array(select lpad(n::text, 32, '0')::uuid from generate_series(1, 4) n), null, null, null, "
                    "array['fresh', null, 'other', 'fresh'], null, null, null)";

    PQclear(PQexec(holder, "begin; select pgmq.create('fresh')"));
    assert_string_equal(database_get_text(bus->db, send, bus->arena), "1 BUSY, 2 PENDING, 3 PENDING, 4 BUSY");
    PQclear(PQexec(holder, "commit"));
    assert_string_equal(database_get_text(bus->db, send, bus->arena), "1 PENDING, 2 PENDING, 3 PENDING, 4 PENDING");
    assert_int_equal(bus_count(bus, "command"), 4);
    assert_int_equal(bus_count(bus, "ready"), 4);
    PQfinish(holder);
}

TEST(send_sets_aside_what_waits_for_a_batch_that_is_being_sealed)
{
    scoped(bus_free) Bus *bus    = bus_new(4);
    PGconn               *holder = database_connect(bus->db);
    const char           *send   = SHARED_LIST
        "array_fill('t'::text, '{2}'), array_fill('1'::jsonb, '{2}'), "
        "array(select lpad(n::text, 32, '0')::uuid from generate_series(1, 2) n), null, null, null, null, null, "
        "'" ID "', null)";

    database_exec(bus->db, "select pawl.batch_new('" ID "')");
    PQclear(PQexec(holder, "begin; select pawl.batch_seal('" ID "')"));
    assert_string_equal(database_get_text(bus->db, send, bus->arena), "1 BUSY, 2 BUSY");
    PQclear(PQexec(holder, "rollback"));
    assert_string_equal(database_get_text(bus->db, send, bus->arena), "1 PENDING, 2 PENDING");
    PQfinish(holder);
}

/* Retention deletes the command and keeps its key, in a transaction that has not ended. */
TEST(send_answers_about_a_command_that_is_being_deleted)
{
    scoped(bus_free) Bus *bus    = bus_new(4);
    PGconn               *holder = database_connect(bus->db);

    assert_string_equal(send_shared(bus, 1, 1), "PENDING new 1");
    database_exec(bus->db, "select pawl.cancel(array_agg(command_id)) from pawl.command");
    database_exec(bus->db, "select pawl.least_age_set('commands', '0')");
    PQclear(PQexec(holder, "begin; select pawl.prune_commands(100, '0 s', null)"));
    assert_string_equal(send_shared(bus, 1, 3), "CANCELED 1, PENDING new 2");
    PQclear(PQexec(holder, "commit"));
    assert_string_equal(send_shared(bus, 1, 3), "CANCELED 1, PENDING 2");
    PQfinish(holder);
}

typedef struct {
    Sender   *sender;
    SendItem  item;
    ErrorCode code;
} Twin;

static void *twin_send(void *context)
{
    Twin *twin = context;

    twin->code = sender_send(twin->sender, soon(), &twin->item, NULL);
    return NULL;
}

TEST(sender_decides_its_neighbours_while_a_twin_is_open)
{
    scoped(bus_free) Bus       *bus      = bus_new(4);
    scoped(sender_free) Sender *sender   = sender_new(bus->pool);
    PGconn                     *holder   = database_connect(bus->db);
    Twin                        twins[3] = {
        {sender, bus_item("mail", "t", "1"), OK},
        {sender, bus_item("mail", "t", "1"), OK},
        {sender, bus_item("mail", "t", "2"), OK}
    };
    pthread_t threads[COUNT(twins)];
    SendItem  late  = bus_item("mail", "t", "1");
    Error     error = {0};

    PQclear(PQexec(holder, "begin; select pawl.send('mail', 't', '1', '" ID "')"));
    for (size_t i = 0; i < COUNT(twins); i++) {
        twins[i].item.command_id = ID;
        threads[i]               = thread_start("twin", twin_send, &twins[i]);
    }
    for (int i = 0; i < 30; i++) {
        SendItem item = bus_item("mail", "t", NULL);

        assert_ok(sender_send(sender, soon(), &item, &error));
        assert_true(item.is_new);
    }
    late.command_id = ID;
    assert_code(ERR_BUSY, sender_send(sender, deadline_in_ms(500), &late, &error));
    assert_contains(error.text, "another transaction that has not ended");
    PQclear(PQexec(holder, "commit"));
    for (size_t i = 0; i < COUNT(twins); i++)
        thread_join(threads[i]);
    assert_ok(twins[0].code);
    assert_false(twins[0].item.is_new);
    assert_ok(twins[1].code);
    assert_int_equal(twins[2].code, ERR_KEY_REUSED);
    assert_int_equal(bus_count(bus, "command"), 31);
    PQfinish(holder);
}

/* A command whose reply queue or batch is held by an application's open transaction waits; its neighbours are sent. */
TEST(sender_decides_its_neighbours_while_a_reply_queue_or_a_batch_is_held)
{
    scoped(bus_free) Bus       *bus     = bus_new(4);
    scoped(sender_free) Sender *sender  = sender_new(bus->pool);
    PGconn                     *holder  = database_connect(bus->db);
    Twin                        held[2] = {
        {sender, bus_item("mail", "t", "1"), OK},
        {sender, bus_item("mail", "t", "1"), OK},
    };
    pthread_t threads[COUNT(held)];
    Error     error = {0};

    database_exec(bus->db, "select pawl.batch_new('" ID "')");
    PQclear(PQexec(holder, "begin; select pgmq.create('fresh'); "
                           "select from pawl.batch where batch_id = '" ID "' for update"));
    held[0].item.reply_to = "fresh";
    held[1].item.batch_id = ID;
    for (size_t i = 0; i < COUNT(held); i++)
        threads[i] = thread_start("held", twin_send, &held[i]);
    for (int i = 0; i < 30; i++) {
        SendItem item = bus_item("mail", "t", NULL);

        assert_ok(sender_send(sender, soon(), &item, &error));
        assert_true(item.is_new);
    }
    assert_int_equal(bus_count(bus, "command"), 30);
    PQclear(PQexec(holder, "commit"));
    for (size_t i = 0; i < COUNT(held); i++) {
        thread_join(threads[i]);
        assert_ok(held[i].code);
        assert_true(held[i].item.is_new);
    }
    assert_int_equal(bus_count(bus, "command"), 32);
    PQfinish(holder);
}

/* A number of a few bytes is written out with all its digits. */
TEST(send_refuses_a_payload_that_is_too_large_when_written_out)
{
    static const char *const numbers[] = {"1e131071", "0e-16383", "-1E+131071", "1e-16383"};
    scoped(bus_free) Bus    *bus       = bus_new(4);

    for (size_t i = 0; i < COUNT(numbers); i++) {
        Text      json;
        SendItem  item  = bus_item("mail", "t", NULL);
        SendItem *list  = &item;
        Error     error = {0};

        text_init(&json, bus->arena, (size_t)1 << 20);
        text_print(&json, "[\"1e131071 is \\\" no number\"");
        for (int j = 0; j < 1100; j++)
            text_print(&json, ",%s", numbers[i]);
        text_print(&json, "]");
        item.payload = text_string(&json);
        assert_ok(send_many(bus->pool, soon(), bus->arena, &list, 1, &error));
        assert_int_equal(item.code, ERR_LIMIT);
        assert_contains(item.error.text, "payload must have at most 16777216 bytes");
        assert_int_equal(
            database_get_i64(bus->db, arena_print(bus->arena,
                                                  "do $$ begin perform pawl.send('mail', 't', '%s'); raise 'taken'; "
                                                  "exception when sqlstate 'QU001' then null; end $$; select 1",
                                                  item.payload)),
            1);
    }
    assert_int_equal(bus_count(bus, "command"), 0);
    /* Large numbers as such are fine. */
    database_exec(bus->db, "select pawl.send('mail', 't', '[1e131071]'), pawl.send('mail', 't', '[0]')");
    assert_int_equal(bus_count(bus, "command where payload_bytes = 131074"), 1);
    assert_int_equal(bus_count(bus, "command where payload_bytes is null"), 1);
}
