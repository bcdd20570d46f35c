/*
 * main.c - parse, run, and turn an error into one sentence and an exit code.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/command.h"

/* Where they were closed by whoever started us, the next socket would get their numbers, and what we print. */
static void standard_files_open(void)
{
    int file;

    do
        file = open("/dev/null", O_RDWR); /* the lowest number that is free */
    while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0)
        close(file);
}

static int finish(ErrorCode code, const Error *error)
{
    if (code != OK)
        fprintf(stderr, "pawl: %s\n", error->text[0] ? error->text : error_text(code));
    /* A full disk or a closed pipe behind standard output must not look like success. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == OK) {
        perror("pawl: cannot write to standard output");
        return EXIT_FAILURE;
    }
    return error_exit(code);
}

int main(int argc, char **argv)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    Call                      call    = {.arena = arena};
    const CliCommand         *command = NULL;
    Error                     error   = {0};
    ErrorCode                 code;

    standard_files_open();
    code = call_parse(argc, argv, &call, &command, &error);
    if (code == OK)
        code = command->run(&call, &error);
    return finish(code, &error);
}
