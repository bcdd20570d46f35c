/*
 * send_test.c - commands in: once each, refused by name, in one transaction over several domains.
 */
#include "bus/send.h"

#include <string.h>

#include "base/metric.h"
#include "base/sync.h"
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
    int64_t               calls = metric_value(METRIC_SEND_CALLS), new = metric_value(METRIC_SENT_NEW);
    int64_t               known = metric_value(METRIC_SENT_KNOWN), refused = metric_value(METRIC_SENT_REFUSED);
    Error                 error = {0};

    items[0].command_id = ID;
    items[2].command_id = ID;
    assert_ok(send_many(bus->pool, soon(), bus->arena, list, 3, &error)); /* two domains: a transaction */
    assert_ok(send_many(bus->pool, soon(), bus->arena, list, 1, &error));
    assert_int_equal(metric_value(METRIC_SEND_CALLS) - calls, 2);
    assert_int_equal(metric_value(METRIC_SENT_NEW) - new, 2);
    assert_int_equal(metric_value(METRIC_SENT_REFUSED) - refused, 1);
    assert_int_equal(metric_value(METRIC_SENT_KNOWN) - known, 1);
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

TEST(send_check_names_the_field)
{
    static const struct {
        SendItem    item;
        ErrorCode   code;
        const char *words;
    } rows[] = {
        {{.domain = NULL, .type = "t"},                                             ERR_INVALID, "domain must be"           },
        {{.domain = "-a", .type = "t"},                                             ERR_INVALID, "domain must be"           },
        {{.domain = "a", .type = ""},                                               ERR_INVALID, "type must be"             },
        {{.domain = "a", .type = "t", .command_id = "7"},                           ERR_INVALID, "command_id must be a UUID"},
        {{.domain = "a", .type = "t", .batch_id = "7"},                             ERR_INVALID, "batch_id must be a UUID"  },
        {{.domain = "a", .type = "t", .max_attempts = 3, .delay_ms = -1},           ERR_INVALID, "delay must be"            },
        {{.domain = "a", .type = "t", .max_attempts = 3, .priority = 10},           ERR_INVALID, "priority must be"         },
        {{.domain = "a", .type = "t", .max_attempts = 0},                           ERR_INVALID, "max_attempts must be"     },
        {{.domain = "a", .type = "t", .max_attempts = 3, .reply_to = "a b"},        ERR_INVALID, "reply_to must be"         },
        {{.domain = "a", .type = "t", .max_attempts = 3, .correlation_id = "\xff"}, ERR_INVALID, "must be UTF-8"            },
        {{.domain = "a", .type = "t", .max_attempts = 3, .payload = "\"\xff\""},    ERR_INVALID, "UTF-8"                    },
        {{.domain = "a", .type = "t", .max_attempts = 3, .payload = "\"\\u0000\""}, ERR_INVALID, "payload"                  },
        {{.domain = "a", .type = "t", .max_attempts = 3, .payload = ""},            ERR_INVALID, "payload"                  },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        Error error = {0};

        assert_code(rows[i].code, send_check(&rows[i].item, &error));
        assert_contains(error.text, rows[i].words);
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
