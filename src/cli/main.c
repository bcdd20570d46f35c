/*
 * main.c - parse, run, and turn an error into one sentence and an exit code.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/login.h"
#include "base/writer.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/visible.h"

/* If the parent process closed them, the next socket would get their numbers and receive what we print. */
static void standard_files_open(void)
{
    int file;

    do
        file = open("/dev/null", O_RDWR); /* the lowest number that is free */
    while (file >= 0 && file <= STDERR_FILENO);
    if (file >= 0)
        close(file);
}

/* As a problem document of HTTP has it, with the exit code instead of the status. The text is for the operator: whole. */
static void error_print_json(ErrorCode code, int status, const Error *error)
{
    scoped_text Text text = {0};
    Writer           writer;
    char             type[128];

    text_init(&text, NULL, TEXT_MAX_LINE);
    snprintf(type, sizeof type, "/problems/%s", error_type(&(Error){.code = code}));
    if (error->code == code)
        snprintf(type, sizeof type, "/problems/%s", error_type(error));
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    writer_text(&writer, "type", type);
    writer_text(&writer, "title", error_text(code));
    writer_text(&writer, "detail", error->text[0] ? error->text : error_text(code));
    writer_i64(&writer, "exit", status);
    writer_end(&writer);
    fprintf(stderr, "%s\n", text_string(&text));
}

static void error_print(bool json, ErrorCode code, int status, const Error *error)
{
    if (json)
        error_print_json(code, status, error);
    else
        fprintf(stderr, "pawl: %s\n", error->text[0] ? error->text : error_text(code));
}

/* Also if the command line cannot be parsed. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

/* A malformed argument is wrong usage, whether the parser, a module or the database refused it. An error that has a type of its own
 * (asset-mismatch) is about what is there. */
static int exit_status(const Call *call, ErrorCode code, const Error *error)
{
    bool malformed = code == ERR_INVALID && strcmp(error_type(error), error_type(&(Error){.code = code})) == 0;

    return error_exit(malformed && !call->reads_input ? ERR_USAGE : code);
}

static int finish(const Call *call, bool json, ErrorCode code, Error *error)
{
    int status;

    if (code == OK && print_failed())
        code = fail(error, ERR_LIMIT, "the output is too large to be printed");
    /* A full disk or a closed pipe behind standard output must not look like success. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == OK)
        code = fail(error, ERR_DENIED, "cannot write to standard output: %s", strerror(errno));
    status = exit_status(call, code, error);
    if (code != OK)
        error_print(json, code, status, error);
    return status;
}

int main(int argc, char **argv)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    Call                      call    = {.arena = arena};
    const CliCommand         *command = NULL;
    Error                     error   = {0};
    ErrorCode                 code;

    standard_files_open();
    visible_begin(wants_json(argc, argv));
    code = call_parse(argc, argv, &call, &command, &error);
    if (code == OK)
        code = command->run(&call, &error);
    if (code == ERR_DENIED && call.app && call.app->pool)
        login_explain(call.app->pool, deadline_in_ms(APP_COMMAND_MS), &error);
    if (call.app)
        app_close(call.app);
    return finish(&call, call.json || wants_json(argc, argv), code, &error);
}
