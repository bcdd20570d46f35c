/*
 * problem_test.c - every type of problem has its page, and texts for operators stay away from clients.
 */
#include "base/problem.h"

#include <string.h>

#include "test/harness/test.h"

static Error error_of(ErrorCode code, const char *file, const char *sqlstate)
{
    Error error = {.code = code, .file = file, .text = "host=10.0.0.7 user=app"};

    error_set_sqlstate(&error, sqlstate);
    return error;
}

TEST(problem_texts_from_the_database_are_not_for_clients)
{
    static const ErrorCode codes[] = {ERR_BUSY, ERR_TIMEOUT, ERR_UNAVAILABLE, ERR_REFUSED, ERR_UNKNOWN, ERR_INTERNAL};

    Problem problem;

    for (size_t i = 0; i < COUNT(codes); i++) {
        Error from_pg = error_of(codes[i], "pg/conn.c", ""), with_state = error_of(codes[i], "wallet/post.c", "53300");

        assert_true(problem_is_confidential(&from_pg) && problem_is_confidential(&with_state));
        assert_null(strstr(problem_detail(&from_pg), "10.0.0.7"));
        assert_true(problem_find(error_type(&from_pg), &problem));
        assert_string_equal(problem_detail(&from_pg), problem.meaning);
        assert_null(strstr(problem_detail(&with_state), "10.0.0.7"));
    }
    Error refusal = error_of(ERR_CONFLICT, "pg/conn.c", "QW011"), own = error_of(ERR_BUSY, "http/peer.c", "");
    assert_string_equal(problem_detail(&refusal), refusal.text); /* our own SQL words it for clients */
    assert_string_equal(problem_detail(&own), own.text);
    Error defect = error_of(ERR_INTERNAL, "http/dispatch.c", "");
    assert_null(strstr(problem_detail(&defect), "10.0.0.7"));
}

TEST(problem_texts_about_the_connection_are_not_stored)
{
    static const ErrorCode codes[] = {ERR_BUSY, ERR_TIMEOUT, ERR_UNAVAILABLE, ERR_REFUSED, ERR_UNKNOWN};
    Error                  said    = error_of(ERR_INTERNAL, "pg/conn.c", "P0001");

    for (size_t i = 0; i < COUNT(codes); i++) {
        Error error = error_of(codes[i], "pg/conn.c", "");

        assert_null(strstr(problem_stored(&error), "10.0.0.7"));
    }
    Error refused = error_of(ERR_REFUSED, "pg/conn.c", "28000");
    assert_null(strstr(problem_stored(&refused), "10.0.0.7"));
    assert_string_equal(problem_stored(&said), said.text); /* a handler's own words */
}
