/*
 * command_send.c - send one command, or one per line of standard input.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/reader.h"
#include "base/writer.h"
#include "bus/send.h"
#include "bus/waker.h"
#include "cli/command.h"
#include "cli/decision.h"
#include "cli/outcome.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/source.h"

#define LINES_MAX   1000
#define LINES_BYTES ((size_t)4 << 20) /* the line that reaches it is the last one of its batch */
#define OUTAGE_MS   500

ErrorCode send_turn_take(const Call *call, SendItem *item, Error *reterr)
{
    int64_t priority;

    TRY(call_duration(call, "--delay", 0, &item->delay_ms, reterr));
    TRY(call_number("--priority", call_flag(call, "--priority"), 0, SEND_PRIORITY_MAX, SEND_DEFAULT, &priority,
                    reterr));
    item->priority = (int)priority;
    return OK;
}

static ErrorCode item_read(const Call *call, SendItem *ret_item, Error *reterr)
{
    const char *id, *batch;
    int64_t     attempts;

    TRY(call_uuid(call, "--id", &id, reterr));
    TRY(call_uuid(call, "--batch", &batch, reterr));
    TRY(call_number("--max-attempts", call_flag(call, "--max-attempts"), 1, SEND_ATTEMPTS_MAX, SEND_DEFAULT, &attempts,
                    reterr));
    *ret_item = (SendItem){.domain         = call->arguments[0],
                           .type           = call->arguments[1],
                           .command_id     = id,
                           .max_attempts   = (int)attempts,
                           .reply_to       = call_flag(call, "--reply-to"),
                           .correlation_id = call_flag(call, "--correlation-id"),
                           .batch_id       = batch,
                           .order_key      = call_flag(call, "--order-key"),
                           .unique_key     = call_flag(call, "--unique"),
                           .unique_for     = call_flag(call, "--unique-for"),
                           .on_duplicate   = call_flag(call, "--on-duplicate"),
                           .actor          = call_operator(call),
                           .is_keyed       = call_flag(call, "--key") != NULL};
    return send_turn_take(call, ret_item, reterr);
}

/* Best effort: without a notification workers find it when they poll. */
static void wake(const Call *call, SendItem *const *items, int count)
{
    scoped(waker_free) Waker *waker = waker_new(call->pool);

    for (int i = 0; i < count; i++)
        waker_notify_sent(waker, items[i]);
}

/* ---- one command ---- */

ErrorCode key_take(Call *call, const char *flag, const char **id, Error *reterr)
{
    const char *key = call_flag(call, "--key"), *key_id;

    if (!key || call->is_remote) /* the daemon makes the id */
        return OK;
    TRY(send_key_id(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, key, &key_id, reterr));
    if (call_flag(call, flag) && strcmp(*id, key_id) != 0)
        return fail(reterr, ERR_USAGE, "--key and %s differ: give one of them", flag);
    *id = key_id;
    return OK;
}

void domain_note(Call *call, const char *prefix, const char *domain)
{
    const char *nearest;
    bool        is_new;

    if (!domain || call->is_remote ||
        send_domain_nearest(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena,
                            arena_print(call->arena, "%s%s", prefix, domain), &is_new, &nearest, NULL) != OK ||
        !is_new)
        return;
    if (nearest)
        nearest = strncmp(nearest, prefix, strlen(prefix)) == 0 ? nearest + strlen(prefix) : NULL;
    if (nearest || isatty(STDERR_FILENO))
        fprintf(stderr, "note: nothing was sent to domain \"%s\" before%s%s%s\n", domain,
                nearest ? ", did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

static void sent_print(const SendItem *item)
{
    printf("{\"command_id\":\"%s\",\"status\":\"%s\",\"created\":%s", item->first_id,
           item->status ? item->status : "UNKNOWN", item->is_new ? "true" : "false");
    if (item->duplicate)
        printf(",\"duplicate\":\"%s\"", item->duplicate);
    printf("}\n");
}

static ErrorCode send_one(Call *call, SendItem *item, Error *reterr)
{
    int64_t wait_ms;

    TRY(wait_take(call, &wait_ms, reterr));
    TRY(send_check(item, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    domain_note(call, "", item->domain);
    TRY(key_take(call, "--id", &item->command_id, reterr));
    TRY(source_send(call, item, reterr));
    if (!call->json)
        printf("%s\n", item->first_id);
    else if (!wait_ms)
        sent_print(item);
    if (item->duplicate)
        fprintf(stderr, "note: not sent: this command has the unique key, and was %s\n", item->duplicate);
    return wait_ms ? wait_print(call, "command", "", item, wait_ms, reterr) : OK;
}

/* ---- one per line ---- */

typedef struct {
    const SendLines *given;
    const Call      *call;
    Progress         progress;
    int64_t          sent, line;
} Lines;

static const char *id_make(Arena *arena)
{
    char *id = arena_array(arena, char, UUID_TEXT_SIZE);

    uuid_new(id);
    return id;
}

static ErrorCode line_check(const Lines *lines, const SendItem *item, Error *reterr)
{
    if (lines->given->check)
        TRY(lines->given->check(item->payload, reterr));
    return send_check(item, reterr);
}

/* Up to LINES_MAX lines or LINES_BYTES, each with its id; *ret_count 0: the end of the input. */
static ErrorCode lines_read(Lines *lines, Arena *arena, SendItem **items, int *ret_count, Error *reterr)
{
    char     *text  = NULL;
    size_t    space = 0, bytes = 0;
    ssize_t   size;
    int       count = 0;
    ErrorCode code  = OK;

    while (code == OK && count < LINES_MAX && bytes < LINES_BYTES && (size = getline(&text, &space, stdin)) >= 0) {
        lines->line++;
        bytes += (size_t)size;
        while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
            text[--size] = '\0';
        if (size == 0)
            continue;
        items[count]             = arena_array(arena, SendItem, 1);
        *items[count]            = *lines->given->model;
        items[count]->command_id = id_make(arena);
        items[count]->payload    = arena_bytes(arena, text, (size_t)size);
        code = strlen(items[count]->payload) == (size_t)size ? line_check(lines, items[count], reterr)
                                                             : fail(reterr, ERR_INVALID, "payload holds a NUL byte");
        if (code != OK)
            error_prefix(reterr, "line %lld", (long long)lines->line);
        count++;
    }
    free(text);
    if (code == OK && ferror(stdin))
        code = fail(reterr, ERR_DENIED, "cannot read standard input: %s", strerror(errno));
    *ret_count = count;
    return code;
}

/* Waits out a restart of the database, because the user cannot know which lines to send again. Lines keep their ids, so
 * none becomes two commands. */
static ErrorCode lines_put(const Call *call, SendItem **items, int count, Error *reterr)
{
    for (Deadline deadline = deadline_in_ms(APP_COMMAND_MS);;) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT * 8);
        ErrorCode                 code  = send_many(call->pool, deadline, arena, items, count, reterr);
        bool                      again = code == ERR_UNAVAILABLE || code == ERR_UNKNOWN;

        if (!again || deadline_left_ms(deadline) <= OUTAGE_MS)
            return code;
        clock_sleep_ms(OUTAGE_MS);
    }
}

static ErrorCode lines_send(Lines *lines, Error *reterr)
{
    for (;;) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT * 8);
        SendItem                 *items[LINES_MAX];
        int                       count;

        TRY(lines_read(lines, arena, items, &count, reterr));
        if (count == 0)
            return OK;
        TRY(lines_put(lines->call, items, count, reterr));
        lines->sent += count;
        progress_show(&lines->progress, lines->sent, lines->given->word);
        wake(lines->call, items, count);
    }
}

ErrorCode send_lines_check(Call *call, int count, Error *reterr)
{
    call->reads_input = true;
    if (call->count > count)
        return fail(reterr, ERR_USAGE, "--lines reads payloads from standard input, not from arguments");
    if (call_flag(call, "--id") || call_flag(call, "--key"))
        return fail(reterr, ERR_USAGE, "%s names one, --lines sends many", call_flag(call, "--id") ? "--id" : "--key");
    if (call_flag(call, "--wait"))
        return fail(reterr, ERR_USAGE, "--wait waits for one, --lines sends many");
    return OK;
}

ErrorCode send_lines(Call *call, const SendLines *given, Error *reterr)
{
    Lines     lines = {.given = given, .call = call};
    ErrorCode code;

    progress_begin(&lines.progress);
    code = lines_send(&lines, reterr);
    progress_end(&lines.progress);
    if (code != OK)
        error_prefix(reterr, "%lld %s", (long long)lines.sent, given->word);
    else if (call->json)
        printf("{\"%s\":%lld}\n", given->word, (long long)lines.sent);
    else
        printf("%lld %s\n", (long long)lines.sent, given->word);
    return code;
}

static ErrorCode send_each_line(Call *call, const SendItem *model, Error *reterr)
{
    TRY(send_lines_check(call, /* count= */ 2, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_must_be_database(call, "--lines", reterr));
    domain_note(call, "", model->domain);
    return send_lines(call, &(SendLines){.model = model, .word = "sent"}, reterr);
}

ErrorCode command_send(Call *call, Error *reterr)
{
    SendItem item;

    TRY(item_read(call, &item, reterr));
    if (call_flag(call, "--lines"))
        return send_each_line(call, &item, reterr);
    TRY(call_payload(call, 2, &item.payload, reterr));
    return send_one(call, &item, reterr);
}
