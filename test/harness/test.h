/*
 * test.h - a test registers itself: TEST(breaker_opens_after_five_failures) { ... }
 *
 * cmocka's asserts jump, so they belong to the main thread: workers record, the main thread judges. Output is TAP.
 * PAWL_TEST=substring runs only the tests whose name contains it; if there is none, that is a failure.
 */
#ifndef HARNESS_TEST_H
#define HARNESS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* cmocka has a fail() too; ours stays. */
#pragma push_macro("fail")
#undef fail
#include <cmocka.h>
#pragma pop_macro("fail")
#undef fail_msg /* it is made of cmocka's fail() */
#define fail_msg(...)              \
    ({                             \
        print_error(__VA_ARGS__);  \
        print_error("\n");         \
        _fail(__FILE__, __LINE__); \
        __builtin_unreachable();   \
    })

#define TEST(name)                                                 \
    static void                              name(void **state);   \
    __attribute__((constructor)) static void name##_register(void) \
    {                                                              \
        test_register(#name, name);                                \
    }                                                              \
    static void name(__attribute__((unused)) void **state)

void test_register(const char *name, CMUnitTestFunction function);

/* Assert that a call returned OK, or this code, and show the error's text when it did not. */
#define assert_ok(expression)         assert_code(OK, expression)
#define assert_code(code, expression) test_assert_code((code), (expression), &error, #expression, __FILE__, __LINE__)
void test_assert_code(ErrorCode expected, ErrorCode actual, const Error *error, const char *what, const char *file,
                      int line);
/* For how long this machine did not run a thread that was ready, in this test so far: what an upper bound of a time
 * must add. A bound holds on a busy machine then, and is as tight as before on one that is not. */
int test_stalled_ms(void);
/* Assert that a text contains another. */
#define assert_contains(text, part) test_assert_contains((text), (part), __FILE__, __LINE__)
void test_assert_contains(const char *text, const char *part, const char *file, int line);

#endif
