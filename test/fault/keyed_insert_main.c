/*
 * keyed_insert_main.c - one insert in its own process, for parents that kill it: keyed_insert_main URL CALLER NUMBER
 *
 * Exits with the code that the command line has for the answer; 0: done.
 */
#include <stdio.h>
#include <stdlib.h>

#include "test/concurrency/keyed_insert.h"

#define DEADLINE_MS 60000

int main(int argc, char **argv)
{
    Error     error = {0};
    Pool     *pool  = NULL;
    ErrorCode code;

    if (argc != 4)
        return error_exit(ERR_USAGE);
    code = pool_new(&(PoolOptions){.conninfo = argv[1]}, &pool, &error);
    if (code == OK) {
        KeyedInsert insert = {.caller = (int)strtol(argv[2], NULL, 10), .number = (int)strtol(argv[3], NULL, 10)};

        code = keyed_insert_run(pool, deadline_in_ms(DEADLINE_MS), insert, &error);
        pool_free(pool);
    }
    if (code != OK)
        fprintf(stderr, "%s\n", error.text);
    return error_exit(code);
}
