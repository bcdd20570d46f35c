/*
 * kill_test.c - a process dies at a fault point by SIGKILL, its successor does the same work again: one row.
 */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "test/concurrency/keyed_insert.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

extern char **environ;

/* fault: PAWL_FAULT of the child; NULL: none. Returns what waitpid() tells. */
static int child_run(const TestDatabase *db, int number, const char *fault)
{
    const char *program = harness_setting("PAWL_TEST_INSERT");
    char        text[16], url[1024];
    char       *arguments[] = {(char[]){"insert"}, url, (char[]){"0"}, text, NULL};
    pid_t       pid;
    int         status;

    snprintf(url, sizeof url, "%s", database_url(db));
    snprintf(text, sizeof text, "%d", number);
    if (fault)
        setenv("PAWL_FAULT", fault, 1);
    assert_int_equal(0, posix_spawn(&pid, program, NULL, NULL, arguments, environ));
    unsetenv("PAWL_FAULT");
    assert_int_equal(pid, waitpid(pid, &status, 0));
    return status;
}

TEST(kill_at_every_point_leaves_one_row)
{
    static const struct {
        const char *fault;
        int64_t     rows; /* when it has died */
    } cases[] = {
        {"pg.connect:kill",       0},
        {"pg.query:kill",         0},
        {"pg.commit.before:kill", 0},
        {"pg.commit.after:kill",  1},
    };
    scoped(database_free) TestDatabase *db = database_new_empty();

    keyed_insert_prepare(database_url(db));
    for (int i = 0; i < (int)COUNT(cases); i++) {
        char sql[96];
        int  status = child_run(db, i, cases[i].fault);

        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        snprintf(sql, sizeof sql, "select count(*) from public.inserted_log where number = %d", i);
        assert_int_equal(cases[i].rows, database_get_i64(db, sql));
        assert_int_equal(0, child_run(db, i, NULL));
        assert_int_equal(1, database_get_i64(db, sql));
    }
}
