/*
 * descriptors_test.c - clients never use up the descriptors that the database needs.
 */
#include "app/descriptors.h"

#include <sys/resource.h>

#include "test/harness/test.h"

TEST(descriptors_leave_some_to_the_database)
{
    assert_int_equal(descriptors_for_clients(1048576, 10, 4096), 4096);
    assert_int_equal(descriptors_for_clients(1024, 10, 4096), 1024 - 256 - 10);
    assert_int_equal(descriptors_for_clients(256, 10, 4096), 256 - 64 - 10);
    assert_int_equal(descriptors_for_clients(1024, 10, 100), 100);
    assert_int_equal(descriptors_for_clients(64, 100, 4096), 1);
}

TEST(descriptors_are_raised_to_the_hard_limit)
{
    struct rlimit before, lowered, after;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    lowered = (struct rlimit){256, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &lowered), 0);
    assert_true(descriptors_raise() >= 256);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &after), 0);
    assert_true(after.rlim_cur == before.rlim_max);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}
