/*
 * test.c - the list of self-registered tests and main().
 */
#include "test/harness/test.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"

#define TESTS_MAX 500
#define NAP_MS    5
#define STALL_MS  20 /* what wakes up later than this was not run */

static struct CMUnitTest tests[TESTS_MAX];
static size_t            test_count;
static atomic_int        stalled_ms, stalled_before_ms;

/* The real clock, whatever the world of the test is. */
static int64_t real_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static void *stalls_watch(void *context)
{
    for (int64_t before = real_ms(), now;; before = now) {
        nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000}, NULL);
        now = real_ms();
        if (now - before - NAP_MS > STALL_MS)
            atomic_fetch_add(&stalled_ms, (int)(now - before - NAP_MS));
    }
    return context;
}

/* Signals are for the threads of the tests. */
static void stalls_watch_start(void)
{
    sigset_t  all, before;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, stalls_watch, NULL) != 0)
        abort();
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int test_stalled_ms(void)
{
    return atomic_load(&stalled_ms) - atomic_load(&stalled_before_ms);
}

static int stalls_forget(void **state)
{
    (void)state;
    atomic_store(&stalled_before_ms, atomic_load(&stalled_ms));
    return 0;
}

void test_register(const char *name, CMUnitTestFunction function)
{
    const char *only = getenv("PAWL_TEST");

    if (only && !strstr(name, only))
        return;
    if (test_count == TESTS_MAX)
        abort();
    tests[test_count++] = (struct CMUnitTest){name, function, stalls_forget, NULL, NULL};
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

/* Tell cluster.sh whether PAWL_TEST matched something. */
static void filter_mark(const char *name)
{
    const char *folder = getenv("PAWL_TEST_RUN");
    char        path[PATH_MAX];
    FILE       *file;

    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/filter.%s", folder, name);
    file = fopen(path, "w");
    if (file)
        fclose(file);
}

/* A PAWL_TEST with a typing error must not look like a success. meson runs many programs with one PAWL_TEST, so there
 * it is enough that one of them matched, and cluster.sh judges. */
static int none_matched(const char *program)
{
    const char *only = getenv("PAWL_TEST");

    if (!getenv("PAWL_TEST_MANY")) {
        fprintf(stderr, "\"%s\" is part of no test's name in %s\n", only, program);
        return 1;
    }
    filter_mark("missed");
    printf("1..0 # SKIP \"%s\" is part of no test's name\n", only);
    return 0;
}

int main(int argc, char **argv)
{
    (void)argc;
    if (test_count == 0)
        return none_matched(argv[0]);
    filter_mark("matched");
    stalls_watch_start();
    qsort(tests, test_count, sizeof tests[0], by_name);
    setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 0);
    log_open(getenv("PAWL_LOG") ? LOG_DEBUG : LOG_OFF, LOG_TEXT, 2);
    return _cmocka_run_group_tests(argv[0], tests, test_count, NULL, NULL) ? 1 : 0;
}
