/*
 * fault_test.c - points fail when they are armed, in this process and by the environment of a child.
 */
#include "test/harness/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"

TEST(fault_disarmed_points_do_nothing)
{
    fault_arm_nth(0);
    for (int i = 0; i < 100; i++)
        assert_false(fault_hit("any"));
    assert_false(fault_was_hit());
    assert_null(fault_last());
}

TEST(fault_nth_pass_fails_once_over_all_points)
{
    fault_arm_nth(3);
    assert_false(fault_hit("a"));
    assert_false(fault_hit("b"));
    assert_false(fault_was_hit());
    assert_true(fault_hit("c"));
    assert_true(fault_was_hit());
    assert_string_equal(fault_last(), "c");
    assert_false(fault_hit("a"));
    fault_arm_nth(1);
    assert_false(fault_was_hit());
    assert_true(fault_hit("a"));
    fault_arm_nth(0);
}

TEST(fault_by_name_fails_count_times)
{
    fault_arm("b", 2);
    assert_false(fault_hit("a"));
    assert_true(fault_hit("b"));
    assert_false(fault_hit("bb"));
    assert_true(fault_hit("b"));
    assert_false(fault_hit("b"));
    assert_string_equal(fault_last(), "b");
    fault_arm("b", 0);
    assert_false(fault_hit("b"));
    assert_false(fault_was_hit());
}

/* The loop of every fault test: it visits each point once, then ends. */
TEST(fault_loop_ends_when_no_fault_is_met)
{
    int runs = 0, hits = 0;

    do {
        fault_arm_nth(++runs);
        for (int i = 0; i < 5; i++)
            hits += fault_hit("step");
    } while (fault_was_hit());
    fault_arm_nth(0);
    assert_int_equal(runs, 6);
    assert_int_equal(hits, 5);
}

/* In a child whose environment was not read yet: the status is the number of failures in three passes. */
static int child_status(const char *value)
{
    int status = 0;

    pid_t child = fork();
    if (child == 0) {
        setenv("PAWL_FAULT", value, 1);
        execl("/proc/self/exe", "unit_base", (char *)NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Runs before main() in the child: nobody has asked the environment yet. */
__attribute__((constructor)) static void child_main(void)
{
    int hits = 0;

    if (!getenv("PAWL_FAULT"))
        return;
    signal(SIGABRT, SIG_DFL);
    close(STDERR_FILENO);
    for (int i = 0; i < 3; i++)
        hits += fault_hit("child.point") + 10 * fault_hit("child.other");
    _exit(hits);
}

TEST(fault_environment_arms_one_point)
{
    static const struct {
        const char *value;
        int         exit;
        int         signal;
    } rows[] = {
        {"child.point:fail",       1,  0      },
        {"child.point:fail:2",     2,  0      },
        {"child.point:fail:9",     3,  0      },
        {"child.nowhere:fail",     0,  0      },
        {"child.point:kill",       0,  SIGKILL},
        {"child.nowhere:kill",     0,  0      },
        {"",                       0,  0      },
        {"child.point",            0,  SIGABRT},
        {"child.point:explode",    0,  SIGABRT},
        {"child.point:fail:",      0,  SIGABRT},
        {"child.point:fail:x",     0,  SIGABRT},
        {"child.point:fail:0",     0,  SIGABRT},
        {"child.point:fail:1x",    0,  SIGABRT},
        {":fail",                  0,  SIGABRT},
        {"child.point:fail:9:1",   2,  0      },
        {"child.point:fail:1:3",   0,  0      },
        {"child.*:fail:9",         33, 0      },
        {"child.o*:fail:9",        30, 0      },
        {"child.point:fail:1:x",   0,  SIGABRT},
        {"child.point:fail:1:-1",  0,  SIGABRT},
        {"child.point:fail:1:1:1", 0,  SIGABRT},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        int status = child_status(rows[i].value);
        if (rows[i].signal) {
            assert_true(WIFSIGNALED(status));
            assert_int_equal(WTERMSIG(status), rows[i].signal);
        } else {
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), rows[i].exit);
        }
    }
}
