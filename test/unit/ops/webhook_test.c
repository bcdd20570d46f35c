/*
 * webhook_test.c - what a receiver of webhooks gets, and what its answers mean.
 */
#include <string.h>

#include "ops/metric.h"
#include "ops/webhook.h"
#include "test/harness/test.h"
#include "test/unit/client/receiver.h"

#define SOON_MS 60000

static ErrorCode post(Client *client, const char *url, Error *reterr)
{
    return webhook_post(client, url, "alert-1", "{\"alert\":\"x\"}", deadline_in_ms(SOON_MS), reterr);
}

TEST(webhook_posts_json_under_its_key)
{
    scoped_receiver Receiver    receiver = {0};
    scoped(client_free) Client *client   = NULL;
    Error                       error    = {0};
    int64_t                     sent     = metric_value(&ops_metrics.webhook_ok);

    receiver_init(&receiver, answer_text, "HTTP/1.1 204 No Content\r\n\r\n");
    assert_ok(client_new(&webhook_client, &client, &error));
    for (int i = 0; i < 3; i++)
        assert_ok(post(client, receiver.url, &error));
    assert_int_equal(0, strncmp(receiver_last(&receiver), "POST / HTTP/1.1\r\n", 17));
    assert_contains(receiver_last(&receiver), "\r\nContent-Type: application/json");
    assert_contains(receiver_last(&receiver), "\r\nIdempotency-Key: \"alert-1\"");
    assert_contains(receiver_last(&receiver), "\n\n{\"alert\":\"x\"}");
    assert_int_equal(1, atomic_load(&receiver.connections));
    assert_int_equal(sent + 3, metric_value(&ops_metrics.webhook_ok));
}

TEST(webhook_outcome_follows_from_the_status)
{
    static const struct {
        const char *text;
        ErrorCode   code;
        int         retry_ms;
        const char *words;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",                   OK,              0,    ""                                             },
        {"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", ERR_REFUSED,     0,
         "webhook: the server responded with status 302"                                                                                         },
        {"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",                   ERR_REFUSED,     0,
         "webhook: the server responded with status 404"                                                                                         },
        {"HTTP/1.1 429 No\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n", ERR_RATE,        5000,
         "webhook: the server asks for fewer requests"                                                                                           },
        {"HTTP/1.1 503 No\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n", ERR_UNAVAILABLE, 9000,
         "webhook: the server responded with status 503"                                                                                         },
        {"",                                                               ERR_UNKNOWN,     0,    "webhook: the server sent no complete response"},
    };
    scoped(client_free) Client *client = NULL;
    Error                       error  = {0};
    int64_t                     failed = metric_value(&ops_metrics.webhook_failed);

    assert_ok(client_new(&webhook_client, &client, &error));
    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped_receiver Receiver receiver = {0};

        error = (Error){0};
        receiver_init(&receiver, answer_text_close, rows[i].text);
        assert_code(rows[i].code, post(client, receiver.url, &error));
        assert_contains(error.text, rows[i].words);
        if (rows[i].code != OK)
            assert_contains(error_peer(&error), "127.0.0.1");
        assert_int_equal(rows[i].retry_ms, error.retry_ms);
    }
    assert_int_equal(failed + (int)COUNT(rows) - 1, metric_value(&ops_metrics.webhook_failed));
}

/* It is delivered whatever the receiver has to say about it. */
TEST(webhook_is_delivered_to_a_receiver_that_talks_on)
{
    static char                 text[1 << 20];
    scoped_receiver Receiver    receiver = {0};
    scoped(client_free) Client *client   = NULL;
    Error                       error    = {0};
    int used = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", sizeof text);

    memset(text + used, 'x', sizeof text - 1 - (size_t)used);
    receiver_init(&receiver, answer_text_close, text);
    assert_ok(client_new(&webhook_client, &client, &error));
    assert_ok(post(client, receiver.url, &error));
}
