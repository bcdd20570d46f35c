/*
 * test.c - the list of self-registered tests and main().
 */
#include "test/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define TESTS_MAX 500

static struct CMUnitTest tests[TESTS_MAX];
static size_t            test_count;

void test_register(const char *name, CMUnitTestFunction function)
{
    const char *only = getenv("PAWL_TEST");

    if (only && !strstr(name, only))
        return;
    if (test_count == TESTS_MAX)
        abort();
    tests[test_count++] = (struct CMUnitTest){name, function, NULL, NULL, NULL};
}

void test_assert_code(ErrorCode expected, ErrorCode actual, const Error *error, const char *what, const char *file,
                      int line)
{
    if (actual == expected)
        return;
    fprintf(stderr, "%s:%d: %s is %s, not %s: %s\n", file, line, what, error_name(actual), error_name(expected),
            actual == OK ? "" : error->text);
    _fail(file, line);
}

void test_assert_contains(const char *text, const char *part, const char *file, int line)
{
    if (text && strstr(text, part))
        return;
    fprintf(stderr, "%s:%d: \"%s\" does not contain \"%s\"\n", file, line, text ? text : "(null)", part);
    _fail(file, line);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct CMUnitTest *)a)->name, ((const struct CMUnitTest *)b)->name);
}

int main(int argc, char **argv)
{
    (void)argc;
    qsort(tests, test_count, sizeof tests[0], by_name);
    setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 0);
    log_open(getenv("PAWL_LOG") ? LOG_DEBUG : LOG_OFF, LOG_TEXT, 2);
    return _cmocka_run_group_tests(argv[0], tests, test_count, NULL, NULL) ? 1 : 0;
}
