/*
 * head_test.c - the head alone: what it takes, what it refuses, and that slicing changes nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "http/head.h"
#include "test/harness/test.h"

#define BUFFER_SIZE 4096

typedef struct {
    ErrorCode code;
    bool      done;
    Head      head;
    Error     error;
    char      bytes[BUFFER_SIZE];
} Parsed;

/* Feed text in slices of so many bytes, into memory of exactly its size so that an overrun is found. */
static void parse(Parsed *parsed, const char *text, size_t size, size_t slice)
{
    char *bytes = malloc(size ? size : 1);

    head_init(&parsed->head);
    parsed->code = OK;
    parsed->done = false;
    for (size_t filled = 0; filled < size && parsed->code == OK && !parsed->done;) {
        size_t count = size - filled < slice ? size - filled : slice;

        memcpy(bytes + filled, text + filled, count);
        filled += count;
        parsed->code = head_parse(&parsed->head, bytes, filled, &parsed->done, &parsed->error);
    }
    if (parsed->code == OK && parsed->done) {
        /* Keep the strings: they lie in bytes. */
        ptrdiff_t shift = parsed->bytes - bytes;

        memcpy(parsed->bytes, bytes, size);
        parsed->head.method += shift;
        parsed->head.target += shift;
        for (int i = 0; i < parsed->head.header_count; i++) {
            parsed->head.headers[i].name += shift;
            parsed->head.headers[i].value += shift;
        }
    }
    free(bytes);
}

TEST(head_reads_a_head_in_any_slices)
{
    static const char text[] = "POST /v1/wallets?x=1 HTTP/1.1\r\nHost: a:80\r\nX-Empty:\r\nX-Spaced: \t b c \t\r\n"
                               "Content-Length: 12\r\nConnection: foo, Close\r\nExpect: 100-Continue\r\n\r\nbody";
    Parsed            parsed;

    for (size_t slice = 1; slice <= sizeof text; slice++) {
        parse(&parsed, text, sizeof text - 1, slice);
        assert_int_equal(parsed.code, OK);
        assert_true(parsed.done);
        assert_string_equal(parsed.head.method, "POST");
        assert_string_equal(parsed.head.target, "/v1/wallets?x=1");
        assert_int_equal(parsed.head.minor, 1);
        assert_int_equal(parsed.head.header_count, 6);
        assert_string_equal(head_header(&parsed.head, "x-empty"), "");
        assert_string_equal(head_header(&parsed.head, "X-SPACED"), "b c");
        assert_null(head_header(&parsed.head, "X-Other"));
        assert_int_equal(parsed.head.content_length, 12);
        assert_true(parsed.head.close);
        assert_true(parsed.head.expects_continue);
        assert_int_equal(parsed.head.length, sizeof text - 1 - 4);
    }
}

TEST(head_takes_what_rfc_9112_allows)
{
    static const struct {
        const char *text;
        bool        close;
    } good[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n",                                                false},
        {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",                                            false},
        {"GET / HTTP/1.1\r\nHost:\r\n\r\n",                                                  false},
        {"GET / HTTP/1.0\r\n\r\n",                                                           true },
        {"PURGE /x HTTP/1.1\r\nhost: [::1]:80\r\n\r\n",                                      false},
        {"GET http://a/b HTTP/1.1\r\nHost: a\r\nX: \xc3\xa9\r\n\r\n",                        false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", true },
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n",                 false},
    };
    Parsed parsed;

    for (size_t i = 0; i < COUNT(good); i++) {
        parse(&parsed, good[i].text, strlen(good[i].text), BUFFER_SIZE);
        assert_int_equal(parsed.code, OK);
        assert_true(parsed.done);
        assert_int_equal(parsed.head.close, good[i].close);
    }
}

TEST(head_refuses_what_could_be_read_in_two_ways)
{
    /* clang-format off */
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"GET / HTTP/1.1\nHost: a\n\n", "CRLF"},
        {"GET / HTTP/1.1\r\nHost: a\n\r\n", "CRLF"},
        {"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", "control character"},
        {"GET / HTTP/1.1\r\nHost: a\r\n\n", "CRLF"},
        {"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "no method"},
        {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", "no method"},
        {"GET\r\nHost: a\r\n\r\n", "no method"},
        {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", "no method"},
        {"GETGETGETGETGETGETGET / HTTP/1.1\r\nHost: a\r\n\r\n", "no method"},
        {"GET /\r\nHost: a\r\n\r\n", "a method, a target and a version"},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "a method, a target and a version"},
        {"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", "a method, a target and a version"},
        {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "version"},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", "version"},
        {"GET / http/1.1\r\nHost: a\r\n\r\n", "version"},
        {"GET / HTTP/1.1\r\n\r\n", "\"Host\" is missing"},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "\"Host\" is given twice"},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "\"Host\""},
        {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "\"Host\""},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", "folded"},
        {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "folded"},
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "a colon"},
        {"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", "a colon"},
        {"GET / HTTP/1.1\r\nHost: a\r\nX@: b\r\n\r\n", "a colon"},
        {"GET / HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n", "a colon"},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: a\x01\r\n\r\n", "control character"},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", "control character"},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: \xc3\x28\r\n\r\n", "\"X\" is not UTF-8"},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "twice"},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", "must be a number"},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", "must be a number"},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "must be a number"},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n", "must be a number"},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", "must be a number"},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", "exclude"},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "twice"},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "must be \"chunked\""},
        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", "must be \"chunked\""},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},
        {"POST / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n", "\"Expect\""},
        {"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", "twice"},
    };
    /* clang-format on */
    Parsed parsed;

    for (size_t i = 0; i < COUNT(bad); i++)
        for (size_t slice = 1; slice < 100; slice += 33) {
            parse(&parsed, bad[i].text, strlen(bad[i].text), slice);
            assert_int_equal(parsed.code, ERR_INVALID);
            assert_contains(parsed.error.text, bad[i].words);
        }
}

TEST(head_bounds_headers_and_lengths)
{
    char   text[BUFFER_SIZE] = "GET / HTTP/1.1\r\nHost: a\r\n";
    size_t used              = strlen(text);
    Parsed parsed;

    for (int i = 1; i < HEAD_HEADERS_MAX; i++) /* with Host that is as many as there may be */
        used += (size_t)snprintf(text + used, sizeof text - used, "X: %d\r\n", i);
    snprintf(text + used, sizeof text - used, "\r\n");
    parse(&parsed, text, strlen(text), BUFFER_SIZE);
    assert_int_equal(parsed.code, OK);
    assert_int_equal(parsed.head.header_count, HEAD_HEADERS_MAX);

    snprintf(text + used, sizeof text - used, "X: one more\r\n\r\n");
    parse(&parsed, text, strlen(text), BUFFER_SIZE);
    assert_int_equal(parsed.code, ERR_HEADERS);

    snprintf(text, sizeof text, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999999999999999\r\n\r\n");
    parse(&parsed, text, strlen(text), BUFFER_SIZE);
    assert_int_equal(parsed.code, ERR_LIMIT);
}

TEST(head_refuses_binary_before_the_line_ends)
{
    Parsed parsed;

    parse(&parsed, "\x16\x03\x01\x02", 4, 4);
    assert_int_equal(parsed.code, ERR_INVALID);
    parse(&parsed, "GET /\0", 6, 1);
    assert_int_equal(parsed.code, ERR_INVALID);
}

/* A generator that is the same on every machine. */
static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Whatever the bytes and however they are sliced: no overrun, and the same verdict. */
TEST(head_gives_one_verdict_for_any_slicing_of_noise)
{
    static const char base[] =
        "POST /a?b=c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX: y\r\nConnection: close\r\n\r\n";
    static const char marks[] = "\r\n\t :;,/?%HTP1.0\x7f\x80\xff";
    uint32_t          random  = 42;
    Parsed            whole, sliced;
    int               taken = 0;

    for (int round = 0; round < 20000; round++) {
        char   text[sizeof base];
        size_t size = sizeof base - 1;

        memcpy(text, base, size);
        for (uint32_t changes = next_random(&random) % 4; changes > 0; changes--)
            text[next_random(&random) % size] = marks[next_random(&random) % sizeof marks];
        parse(&whole, text, size, size);
        parse(&sliced, text, size, 1 + next_random(&random) % 7);
        assert_int_equal(whole.code, sliced.code);
        assert_int_equal(whole.done, sliced.done);
        taken += whole.done && whole.code == OK;
    }
    assert_true(taken > 1000 && taken < 19000);
}
