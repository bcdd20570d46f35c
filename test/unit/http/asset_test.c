/*
 * asset_test.c - static answers over real sockets: entity tags, 304, gzip variants, HEAD, and clients that ask for them wrongly.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/asset.h"
#include "test/harness/test.h"
#include "test/unit/http/fixture.h"
#include "test/unit/http/raw.h"

#define REQUEST_SIZE 2048

/* One request with these header lines, over a connection of its own. */
static Answer ask(const Fixture *fixture, const char *method, const char *path, const char *headers)
{
    scoped_raw Raw client = {0};
    char           request[REQUEST_SIZE];

    raw_open(&client, fixture->port);
    snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n", method, path, headers);
    raw_send(&client, request);
    return strcmp(method, "HEAD") == 0 ? raw_read_bodiless(&client) : raw_read(&client);
}

/* answer_header() keeps one value at a time. */
static void etag_of(const Answer *answer, char *ret_etag)
{
    snprintf(ret_etag, ASSET_ETAG_SIZE, "%s", answer_header(answer, "ETag"));
}

TEST(asset_is_answered_with_its_type_tag_and_cache_time)
{
    scoped_fixture Fixture f = {0};

    fixture_init(&f, (ServerOptions){0});
    Answer answer = ask(&f, "GET", "/assets/a.css", "");
    assert_int_equal(200, answer.status);
    assert_string_equal("p{}", answer.body);
    assert_string_equal("text/css", answer_header(&answer, "Content-Type"));
    assert_string_equal("3", answer_header(&answer, "Content-Length"));
    assert_string_equal("no-cache", answer_header(&answer, "Cache-Control"));
    assert_string_equal("nosniff", answer_header(&answer, "X-Content-Type-Options"));
    assert_string_equal("", answer_header(&answer, "Vary"));
    assert_int_equal(2 + 32, strlen(answer_header(&answer, "ETag")));
    answer = ask(&f, "GET", "/assets/app.js", "");
    assert_string_equal("public, max-age=60", answer_header(&answer, "Cache-Control"));
    answer = ask(&f, "GET", "/assets/empty", "");
    assert_int_equal(200, answer.status);
    assert_string_equal("0", answer_header(&answer, "Content-Length"));
}

TEST(asset_tags_follow_the_content)
{
    Asset a =
              {
                  .plain = {"a", 1},
                    .gzip = {"a", 1}
    },
          same = a, other = {.plain = {"b", 1}};

    asset_prepare(&a);
    asset_prepare(&same);
    asset_prepare(&other);
    assert_string_equal(a.plain_etag, same.plain_etag);
    assert_string_not_equal(a.plain_etag, other.plain_etag);
    assert_string_not_equal(a.plain_etag, a.gzip_etag); /* another representation, even with the same bytes */
}

TEST(asset_is_not_sent_again_to_a_client_that_has_it)
{
    scoped_fixture Fixture f = {0};
    char                   etag[ASSET_ETAG_SIZE], headers[REQUEST_SIZE / 2];
    static const struct {
        const char *before, *after; /* the tag */
        int         status;
    } rows[] = {
        {"If-None-Match: ",                         "\r\n",          304},
        {"if-none-match:",                          "\r\n",          304},
        {"If-None-Match: W/",                       "\r\n",          304},
        {"If-None-Match: \"x\", ",                  "\r\n",          304},
        {"If-None-Match: \"x\",,\t",                " , \"y\"\r\n",  304},
        {"If-None-Match: \"a,b\", ",                "\r\n",          304},
        {"If-None-Match: \"x\"\r\nIf-None-Match: ", "\r\n",          304},
        {"If-None-Match: *\r\nX: ",                 "\r\n",          304},
        {"X: ",                                     "\r\n",          200},
        {"If-None-Match:\r\nX: ",                   "\r\n",          200},
        {"If-None-Match: \"x\"\r\nX: ",             "\r\n",          200},
        {"If-None-Match: x",                        "\r\n",          200},
        {"If-None-Match: w/",                       "\r\n",          200},
        {"If-None-Match: W/ ",                      "\r\n",          200},
        {"If-None-Match: \"x\" ",                   "\r\n",          200},
        {"If-None-Match: \"x, ",                    "\r\n",          200},
        {"If-None-Match: ",                         "x\r\nX: y\r\n", 304}, /* the tag itself is well formed */
        {"If-None-Match: \"a b\", ",                "\r\n",          200},
        {"If-None-Match: **\r\nX: ",                "\r\n",          200},
        {"If-None-Match: \"\xc3\xa9\", ",           "\r\n",          304},
    };

    fixture_init(&f, (ServerOptions){0});
    Answer answer = ask(&f, "GET", "/assets/a.css", "");
    etag_of(&answer, etag);
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(headers, sizeof headers, "%s%s%s", rows[i].before, etag, rows[i].after);
        answer = ask(&f, "GET", "/assets/a.css", headers);
        if (answer.status != rows[i].status)
            fail_msg("%s gave %d", headers, answer.status);
        assert_string_equal(rows[i].status == 200 ? "p{}" : "", answer.body);
        assert_string_equal(etag, answer_header(&answer, "ETag"));
        assert_string_equal("no-cache", answer_header(&answer, "Cache-Control"));
        if (answer.status == 304) {
            assert_string_equal("", answer_header(&answer, "Content-Length"));
            assert_string_equal("", answer_header(&answer, "Content-Type"));
        }
    }
}

TEST(asset_is_compressed_for_clients_that_prefer_it)
{
    scoped_fixture Fixture f = {0};
    static const struct {
        const char *headers;
        bool        gzip;
    } rows[] = {
        {"",                                                      false},
        {"Accept-Encoding: gzip\r\n",                             true },
        {"Accept-Encoding: GZip\r\n",                             true },
        {"Accept-Encoding: x-gzip\r\n",                           true },
        {"Accept-Encoding: gzip, deflate, br\r\n",                true },
        {"Accept-Encoding: br;q=1.0, gzip;q=0.8, *;q=0.1\r\n",    true },
        {"Accept-Encoding: deflate\r\nAccept-Encoding: gzip\r\n", true },
        {"Accept-Encoding: *\r\n",                                true },
        {"Accept-Encoding: gzip ; q=0.001\r\n",                   true },
        {"Accept-Encoding: gzip;Q=1.000\r\n",                     true },
        {"Accept-Encoding: ,, gzip ,\r\n",                        true },
        {"Accept-Encoding: gzip;q=0.5, identity;q=0.5\r\n",       true },
        {"Accept-Encoding:\r\n",                                  false},
        {"Accept-Encoding: identity\r\n",                         false},
        {"Accept-Encoding: gzip;q=0\r\n",                         false},
        {"Accept-Encoding: gzip;q=0.000\r\n",                     false},
        {"Accept-Encoding: gzip;q=0, *\r\n",                      false},
        {"Accept-Encoding: *;q=0\r\n",                            false},
        {"Accept-Encoding: gzip;q=0.4, identity;q=0.5\r\n",       false},
        {"Accept-Encoding: gzip;q=2\r\n",                         false},
        {"Accept-Encoding: gzip;q=1.001\r\n",                     false},
        {"Accept-Encoding: gzip;q=0.1234\r\n",                    false},
        {"Accept-Encoding: gzip;q=-1\r\n",                        false},
        {"Accept-Encoding: gzip;q=\r\n",                          false},
        {"Accept-Encoding: gzip;q\r\n",                           false},
        {"Accept-Encoding: gzip;level=9\r\n",                     false},
        {"Accept-Encoding: gzip;q=1;q=1\r\n",                     false},
        {"Accept-Encoding: gzip deflate\r\n",                     false},
        {"Accept-Encoding: gzipped\r\n",                          false},
        {"Accept-Encoding: \"gzip\"\r\n",                         false},
        {"Accept-Encoding: ;q=1\r\n",                             false},
        {"Accept-Encoding: \xc3\xa9\r\n",                         false},
    };

    fixture_init(&f, (ServerOptions){0});
    for (size_t i = 0; i < COUNT(rows); i++) {
        Answer answer = ask(&f, "GET", "/assets/app.js", rows[i].headers);

        assert_int_equal(200, answer.status);
        if ((strcmp(answer_header(&answer, "Content-Encoding"), "gzip") == 0) != rows[i].gzip)
            fail_msg("%s", rows[i].headers);
        assert_memory_equal(answer.body, rows[i].gzip ? ASSET_GZIP : ASSET_PLAIN,
                            rows[i].gzip ? sizeof ASSET_GZIP - 1 : sizeof ASSET_PLAIN - 1);
        assert_string_equal("Accept-Encoding", answer_header(&answer, "Vary"));
        assert_string_equal("text/javascript", answer_header(&answer, "Content-Type"));
        assert_int_equal(rows[i].gzip ? sizeof ASSET_GZIP - 1 : sizeof ASSET_PLAIN - 1,
                         strtol(answer_header(&answer, "Content-Length"), NULL, 10));
    }
    Answer plain = ask(&f, "GET", "/assets/a.css", "Accept-Encoding: gzip\r\n");
    assert_string_equal("", answer_header(&plain, "Content-Encoding")); /* it has no variant */
    assert_string_equal("p{}", plain.body);
}

TEST(asset_variants_have_tags_of_their_own)
{
    scoped_fixture Fixture f = {0};
    char                   plain[ASSET_ETAG_SIZE], gzip[ASSET_ETAG_SIZE], headers[REQUEST_SIZE / 2];

    fixture_init(&f, (ServerOptions){0});
    Answer answer = ask(&f, "GET", "/assets/app.js", "");
    etag_of(&answer, plain);
    answer = ask(&f, "GET", "/assets/app.js", "Accept-Encoding: gzip\r\n");
    etag_of(&answer, gzip);
    assert_string_not_equal(plain, gzip);
    snprintf(headers, sizeof headers, "Accept-Encoding: gzip\r\nIf-None-Match: %s\r\n", gzip);
    answer = ask(&f, "GET", "/assets/app.js", headers);
    assert_int_equal(304, answer.status);
    assert_string_equal(gzip, answer_header(&answer, "ETag"));
    assert_string_equal("Accept-Encoding", answer_header(&answer, "Vary"));
    assert_string_equal("", answer_header(&answer, "Content-Encoding"));
    snprintf(headers, sizeof headers, "If-None-Match: %s\r\n", gzip);
    answer = ask(&f, "GET", "/assets/app.js", headers); /* it has the other one */
    assert_int_equal(200, answer.status);
    assert_string_equal(ASSET_PLAIN, answer.body);
}

TEST(asset_head_is_the_get_without_its_body)
{
    scoped_fixture Fixture f = {0};
    char                   etag[ASSET_ETAG_SIZE], headers[REQUEST_SIZE / 2];

    fixture_init(&f, (ServerOptions){0});
    Answer answer = ask(&f, "HEAD", "/assets/app.js", "Accept-Encoding: gzip\r\n");
    assert_int_equal(200, answer.status);
    assert_int_equal(sizeof ASSET_GZIP - 1, strtol(answer_header(&answer, "Content-Length"), NULL, 10));
    assert_string_equal("gzip", answer_header(&answer, "Content-Encoding"));
    etag_of(&answer, etag);
    snprintf(headers, sizeof headers, "Accept-Encoding: gzip\r\nIf-None-Match: %s\r\n", etag);
    assert_int_equal(304, ask(&f, "HEAD", "/assets/app.js", headers).status);
}

/* Nothing of a body may follow a 304 or a HEAD: the next answer would begin with it. */
TEST(asset_answers_in_a_pipeline_stay_apart)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};
    static const char      request[] =
        "GET /assets/app.js HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\n\r\nHEAD /assets/app.js HTTP/1.1\r\nHost: "
        "x\r\n\r\n"
        "GET /assets/a.css HTTP/1.1\r\nHost: x\r\n\r\nGET /assets/none HTTP/1.1\r\nHost: x\r\n\r\n";

    fixture_init(&f, (ServerOptions){0});
    raw_open(&client, f.port);
    raw_send(&client, request);
    assert_int_equal(304, raw_read(&client).status);
    assert_int_equal(200, raw_read_bodiless(&client).status);
    Answer answer = raw_read(&client);
    assert_string_equal("p{}", answer.body);
    answer = raw_read(&client);
    assert_true(answer_is_problem(&answer, 404));
}

TEST(asset_larger_than_any_buffer_arrives_whole)
{
    scoped_fixture Fixture f      = {0};
    scoped_raw Raw         client = {0};
    size_t                 zeros  = 0;

    fixture_init(&f, (ServerOptions){0});
    raw_open(&client, f.port);
    raw_send(&client, "GET /assets/large.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    for (ssize_t count; (count = recv(client.fd, client.bytes, sizeof client.bytes, 0)) > 0;)
        for (ssize_t i = 0; i < count; i++)
            zeros += client.bytes[i] == '\0';
    assert_int_equal(LARGE_BYTES, zeros);
}

TEST(asset_paths_lead_to_the_table_only)
{
    scoped_fixture Fixture   f       = {0};
    static const char *const paths[] = {"/assets",
                                        "/assets/",
                                        "/assets/none",
                                        "/assets/app.js/",
                                        "/assets//app.js",
                                        "/assets/app.js%00",
                                        "/assets/css",
                                        "/assets/css/",
                                        "/assets/css%2Fa.css",
                                        "/assets/css/a.css",
                                        "/assets/css/../app.js",
                                        "/assets/css/%2e%2e/app.js",
                                        "/assets/./app.js",
                                        "/assets/../live",
                                        "/assets/%2e%2e/%2e%2e/etc/passwd",
                                        "/assets/..%2f..%2fetc%2fpasswd",
                                        "/assets/APP.JS",
                                        "/assets/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a"};

    fixture_init(&f, (ServerOptions){0});
    for (size_t i = 0; i < COUNT(paths); i++) {
        Answer answer = ask(&f, "GET", paths[i], "");

        if (!answer_is_problem(&answer, strstr(paths[i], "%00") ? 400 : 404))
            fail_msg("%s gave %d", paths[i], answer.status);
        assert_string_equal("", answer_header(&answer, "ETag"));
    }
    Answer answer = ask(&f, "GET", "/assets/%61pp.js", "");
    assert_int_equal(200, answer.status);
    answer = ask(&f, "POST", "/assets/app.js", "");
    assert_true(answer_is_problem(&answer, 405));
    assert_string_equal("GET, HEAD", answer_header(&answer, "Allow"));
    answer = ask(&f, "GET", "/assets/app.js?v=1", "");
    assert_true(answer_is_problem(&answer, 400));
}

/* Noise in the two headers changes nothing but which of the right answers is given. */
TEST(asset_survives_noise_in_its_headers)
{
    scoped_fixture Fixture f       = {0};
    static const char      marks[] = "gzip*W/\"\\;q=.,0123 \tidentx-";
    uint32_t               noise   = 11;

    fixture_init(&f, (ServerOptions){0});
    for (int round = 0; round < 500; round++) {
        char headers[256];
        int  used = snprintf(headers, sizeof headers, "%s: ", round % 2 ? "Accept-Encoding" : "If-None-Match");

        for (int i = 0; i < 60; i++) {
            noise           = noise * 1664525u + 1013904223u;
            headers[used++] = marks[(noise >> 8) % (sizeof marks - 1)];
        }
        snprintf(headers + used, sizeof headers - (size_t)used, "\r\n");
        Answer answer = ask(&f, "GET", "/assets/app.js", headers);
        if (answer.status != 200 && answer.status != 304)
            fail_msg("%s gave %d", headers, answer.status);
    }
}
