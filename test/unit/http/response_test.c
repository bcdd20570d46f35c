/*
 * response_test.c - answers as bytes, and problems.
 */
#include <string.h>

#include "http/response.h"
#include "test/harness/test.h"

TEST(response_head_has_frame_and_headers)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Response                  response;
    Text                      head;

    text_init(&head, arena, TEXT_MAX_LINE);
    response_init(&response, arena);
    response.status = 201;
    response_header(&response, "Pawl-Balance", "200");
    text_append(&response.body, "{}");
    response_write_head(&response, &(ResponseFrame){"Sun, 06 Nov 1994 08:49:37 GMT", "id-1", .close = true}, &head);
    assert_string_equal(text_string(&head), "HTTP/1.1 201 Created\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                            "Content-Type: application/json\r\nContent-Length: 2\r\n"
                                            "X-Request-Id: id-1\r\nPawl-Balance: 200\r\nConnection: close\r\n\r\n");
}

TEST(response_takes_many_headers)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Response                  response;
    Text                      head;

    text_init(&head, arena, TEXT_MAX_LINE);
    response_init(&response, arena);
    for (int i = 0; i < RESPONSE_HEADERS_MAX; i++)
        response_header(&response, arena_print(arena, "X-%d", i), "y");
    response_write_head(&response, &(ResponseFrame){"", "id-1", .close = true}, &head);
    for (int i = 0; i < RESPONSE_HEADERS_MAX; i++)
        assert_contains(text_string(&head), arena_print(arena, "\r\nX-%d: y\r\n", i));
}

TEST(response_borrows_its_content)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    static const char         bytes[] = "a\0b";
    Response                  response;
    Text                      head;
    size_t                    size;
    Error                     error;

    text_init(&head, arena, TEXT_MAX_LINE);
    response_init(&response, arena);
    text_append(&response.body, "not this");
    response_borrow(&response, bytes, 3);
    assert_ptr_equal(response_content(&response, &size), bytes);
    assert_int_equal(3, size);
    response_write_head(&response, &(ResponseFrame){"", "id-1", .close = true}, &head);
    assert_contains(text_string(&head), "Content-Length: 3\r\n");
    response.status = 304;
    text_clear(&head);
    response_write_head(&response, &(ResponseFrame){"", "id-1", .close = true}, &head);
    assert_contains(text_string(&head), "HTTP/1.1 304 Not Modified\r\n");
    assert_null(strstr(text_string(&head), "Content-"));
    assert_null(response_content(&response, &size));
    assert_int_equal(0, size);
    fail(&error, ERR_NOT_FOUND, "no");
    response_problem(&response, &error, "id-1");
    assert_string_equal(response_content(&response, &size), text_string(&response.body));
}

TEST(response_problem_replaces_what_was_there)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Response                  response;
    Error                     error;

    response_init(&response, arena);
    response_header(&response, "Pawl-Balance", "200");
    text_append(&response.body, "half");
    fail(&error, ERR_NOT_FOUND, "wallet \"%s\" not found", "ann");
    response_problem(&response, &error, "id-1");
    assert_int_equal(response.status, 404);
    assert_int_equal(response.header_count, 0);
    assert_string_equal(text_string(&response.body),
                        "{\"type\":\"/problems/not-found\",\"title\":\"not found\",\"status\":404,"
                        "\"detail\":\"wallet \\\"ann\\\" not found\",\"instance\":\"id-1\"}");
}

TEST(response_problem_says_when_to_come_back)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Response                  response;
    Error                     error;
    static const struct {
        ErrorCode   code;
        const char *seconds;
    } rows[] = {
        {ERR_BUSY,        "1"},
        {ERR_TIMEOUT,     "1"},
        {ERR_RATE,        "1"},
        {ERR_UNAVAILABLE, "5"},
        {ERR_STOPPING,    "5"}
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        response_init(&response, arena);
        fail(&error, rows[i].code, "later");
        response_problem(&response, &error, "id-1");
        assert_string_equal(response.headers[0].name, "Retry-After");
        assert_string_equal(response.headers[0].value, rows[i].seconds);
    }
}
