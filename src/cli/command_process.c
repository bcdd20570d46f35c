/*
 * command_process.c - processes: define types and list definitions, start, signal, show and list processes, decide about them, and move them to newer versions.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/uuid.h"
#include "base/writer.h"
#include "bus/waker.h"
#include "cli/command.h"
#include "cli/decision.h"
#include "cli/print.h"
#include "cli/process_timeline.h"
#include "cli/progress.h"
#include "process/definition.h"
#include "process/diagram.h"
#include "process/process_fields.h"

#define PAGE_ROWS 100

/* ---- define ---- */

/* One byte more than allowed, so that the parser sees a file that is too large. */
static ErrorCode file_read(Call *call, FILE *file, Value *ret_text, Error *reterr)
{
    char  *bytes = arena_alloc(call->arena, DEFINITION_BYTES_MAX + 1);
    size_t size  = fread(bytes, 1, DEFINITION_BYTES_MAX + 1, file);

    if (ferror(file))
        return fail(reterr, ERR_USAGE, "FILE \"%.200s\" cannot be read: %m", call->arguments[0]);
    *ret_text = (Value){bytes, size};
    return OK;
}

static ErrorCode argument_read(Call *call, Value *ret_text, Error *reterr)
{
    FILE     *file;
    ErrorCode code;

    if (strcmp(call->arguments[0], "-") == 0)
        return file_read(call, stdin, ret_text, reterr);
    file = fopen(call->arguments[0], "re");
    if (!file)
        return fail(reterr, ERR_USAGE, "FILE \"%.200s\" cannot be read: %m", call->arguments[0]);
    code = file_read(call, file, ret_text, reterr);
    (void)fclose(file); /* it was only read */
    return code;
}

static void definition_json(Call *call, const Definition *definition, const char *diagram)
{
    Text   text;
    Writer writer;

    text_init(&text, call->arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    writer_text(&writer, "domain", definition->domain);
    writer_text(&writer, "type", definition->type);
    writer_i64(&writer, "steps", definition->count);
    writer_i64(&writer, "compensations", definition->compensation_count);
    if (diagram)
        writer_text(&writer, "diagram", diagram);
    writer_end(&writer);
    print_json(&text);
}

static void definition_show(Call *call, const Definition *definition)
{
    Text diagram;

    text_init(&diagram, call->arena, TEXT_MAX_BODY);
    if (call_flag(call, "--diagram"))
        diagram_print(definition, &diagram);
    if (call->json)
        definition_json(call, definition, diagram.length ? text_string(&diagram) : NULL);
    else if (diagram.length)
        printf("%s", text_string(&diagram));
    else
        printf("%s %s is valid: %d step%s, %d compensation%s\n", definition->domain, definition->type,
               definition->count, definition->count == 1 ? "" : "s", definition->compensation_count,
               definition->compensation_count == 1 ? "" : "s");
}

static ErrorCode definition_store(Call *call, const Definition *definition, Error *reterr)
{
    scoped(app_close) App *app = NULL;
    ProcessDefined         defined;
    Text                   text;
    Writer                 writer;

    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(process_define(app->pool, deadline_in_ms(APP_COMMAND_MS), definition, call_operator(call), &defined, reterr));
    if (call->json) {
        text_init(&text, call->arena, TEXT_MAX_BODY);
        writer_open(&writer, &text);
        process_defined_write(&writer, definition, &defined);
        print_json(&text);
        return OK;
    }
    printf("%s %s version %d\n", definition->domain, definition->type, defined.version);
    if (!defined.is_new)
        fprintf(stderr, "this is the newest version already: nothing was stored\n");
    return OK;
}

ErrorCode command_process_define(Call *call, Error *reterr)
{
    bool              is_stdin = strcmp(call->arguments[0], "-") == 0;
    const Definition *definition;
    Value             text;

    TRY(argument_read(call, &text, reterr));
    call->reads_input               = true; /* from here on it is the file that is wrong, not the command line */
    scoped(arena_free) Arena *arena = arena_new(DEFINITION_ARENA_BYTES(DEFINITION_BYTES_MAX));
    TRY(definition_parse(is_stdin ? "standard input" : call->arguments[0], text.bytes, text.size, arena, &definition,
                         reterr));
    if (!call_flag(call, "--check") && !call_flag(call, "--diagram"))
        return definition_store(call, definition, reterr);
    definition_show(call, definition);
    return OK;
}

static const ListColumn version_columns[] = {
    {"domain",  NULL, CELL_TEXT, offsetof(ProcessVersion, domain)    },
    {"type",    NULL, CELL_TEXT, offsetof(ProcessVersion, type)      },
    {"version", NULL, CELL_I32,  offsetof(ProcessVersion, version)   },
    {"stored",  NULL, CELL_TIME, offsetof(ProcessVersion, created_at)},
    {"by",      NULL, CELL_TEXT, offsetof(ProcessVersion, author)    },
};

static void version_row_write(Writer *writer, const void *row)
{
    process_version_write(writer, row);
}

static const ListShape version_shape = {version_columns, COUNT(version_columns), sizeof(ProcessVersion),
                                        "no definitions", version_row_write};

/* The file of one version. */
static ErrorCode version_print(Call *call, App *app, ProcessVersionFilter *filter, Error *reterr)
{
    ProcessVersion *list;
    const char     *source;
    int             count;
    Text            text;
    Writer          writer;

    if (!filter->type)
        return fail(reterr, ERR_USAGE, "TYPE is missing: --version is about one type");
    filter->limit = 2;
    TRY(process_versions(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, filter, &list, &count, reterr));
    if (count == 0)
        return fail(reterr, ERR_NOT_FOUND, "type \"%.100s\" has no version %d%s%s%s", filter->type,
                    (int)filter->version, filter->domain ? " in domain \"" : "", filter->domain ? filter->domain : "",
                    filter->domain ? "\"" : "");
    if (count > 1)
        return fail(reterr, ERR_CONFLICT, "domains \"%s\" and \"%s\" have a type \"%s\": name one with --domain",
                    list[1].domain, list[0].domain, filter->type);
    TRY(process_version_source(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, list, &source, reterr));
    if (!call->json) {
        printf("%s%s", source, strlen(source) && source[strlen(source) - 1] == '\n' ? "" : "\n");
        return OK;
    }
    text_init(&text, call->arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    writer_text(&writer, "domain", list->domain);
    writer_text(&writer, "type", list->type);
    writer_i64(&writer, "version", list->version);
    writer_text(&writer, "source", source);
    writer_end(&writer);
    print_json(&text);
    return OK;
}

ErrorCode command_process_definitions(Call *call, Error *reterr)
{
    scoped(app_close) App *app    = NULL;
    ProcessVersionFilter   filter = {.domain = call_flag(call, "--domain"),
                                     .type   = call->count ? call->arguments[0] : NULL};
    int64_t                left;
    List                   list;

    TRY(call_number("--version", call_flag(call, "--version"), 1, PROCESS_VERSION_MAX, 0, &filter.version, reterr));
    TRY(call_number("--limit", call_flag(call, "--limit"), 1, PROCESS_LIST_MAX, 100, &left, reterr));
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    if (filter.version)
        return version_print(call, app, &filter, reterr);

    ProcessVersion *rows;
    int             count;

    filter.limit = (int)left;
    TRY(process_versions(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, &filter, &rows, &count, reterr));
    list_begin(&list, &version_shape, call->arena, call->json);
    list_rows(&list, rows, count);
    list_end(&list);
    return OK;
}

/* ---- start and signal ---- */

/* A process of a type that no file defines is not refused: a program may run it. But a misspelled type should not wait unnoticed. */
static void type_warn(Call *call, const App *app)
{
    const char  *domain = call_flag(call, "--domain") ? call_flag(call, "--domain") : PROCESS_DOMAIN_DEFAULT;
    const char  *type   = call->arguments[0];
    ProcessKnown known;

    if (process_is_defined(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, domain, type, &known, NULL) != OK ||
        known.is_defined)
        return;
    if (known.elsewhere)
        fprintf(stderr,
                "type \"%s\" has no definition in domain \"%s\": a program must run it; domain \"%s\" has one%s\n",
                type, domain, known.elsewhere, call_flag(call, "--domain") ? "" : ": is --domain missing?");
    else
        fprintf(
            stderr,
            "type \"%s\" is not defined in domain \"%s\": the process waits until a program runs it, or until a file "
            "defines it (pawl process define FILE)\n",
            type, domain);
}

ErrorCode command_process_start(Call *call, Error *reterr)
{
    scoped(app_close) App *app = NULL;
    SendItem               item, *items[] = {&item};
    const char            *id, *state;

    TRY(call_uuid(call, "--id", &id, reterr));
    TRY(call_payload(call, 1, &state, reterr));
    TRY(process_start_item(call->arena, call->arguments[0], state, id, call_flag(call, "--domain"), &item, reterr));
    item.actor = call_operator(call);
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(send_many(app->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, items, 1, reterr));
    if (item.code != OK) {
        *reterr = item.error;
        return item.code;
    }
    if (item.is_new)
        wake_domains(app, item.domain);
    if (call->json)
        printf("{\"process_id\":\"%s\",\"created\":%s}\n", item.id, item.is_new ? "true" : "false");
    else
        printf("%s\n", item.id);
    type_warn(call, app);
    return OK;
}

static ErrorCode name_read(const Call *call, char *ret_id, ProcessName *ret_name, Error *reterr)
{
    if (!uuid_parse(call->arguments[0], ret_id))
        return fail(reterr, ERR_USAGE, "ID must be a UUID, got \"%.60s\"", call->arguments[0]);
    *ret_name = (ProcessName){ret_id, call_flag(call, "--domain")};
    return OK;
}

static void signaled_print(Call *call, const ProcessName *name, const ProcessSignal *signal, const char *verdict)
{
    Text   text;
    Writer writer;

    if (!call->json) {
        printf("%s %s\n", name->id, verdict);
        return;
    }
    text_init(&text, call->arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    process_signaled_write(&writer, name->id, signal, verdict);
    print_json(&text);
}

ErrorCode command_process_signal(Call *call, Error *reterr)
{
    scoped(app_close) App *app = NULL;
    char                   id[UUID_TEXT_SIZE], key[UUID_TEXT_SIZE];
    ProcessName            name;
    ProcessSignal signal = {.name = call->arguments[1], .key = call_flag(call, "--key"), .actor = call_operator(call)};
    ProcessSignaled signaled;

    TRY(name_read(call, id, &name, reterr));
    TRY(call_payload(call, 2, &signal.payload, reterr));
    uuid_new(key);
    signal.key = signal.key ? signal.key : key;
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(process_signal(app->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, call->arena, name, &signal,
                       &signaled, reterr));
    if (strcmp(signaled.verdict, "RESUMED") == 0)
        wake_domains(app, signaled.queue);
    signaled_print(call, &name, &signal, signaled.verdict);
    return OK;
}

/* ---- show and list ---- */

ErrorCode command_process_show(Call *call, Error *reterr)
{
    scoped(app_close) App    *app   = NULL;
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT * 8); /* a long process has a long history */
    char                      id[UUID_TEXT_SIZE];
    ProcessName               name;
    const char               *json;

    TRY(name_read(call, id, &name, reterr));
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(process_show(app->pool, deadline_in_ms(APP_COMMAND_MS), arena, name, &json, reterr));
    if (call->json)
        printf("%s\n", json);
    else
        TRY(process_timeline_print(json, arena, reterr));
    return OK;
}

static void row_write(Writer *writer, const void *row)
{
    process_row_write(writer, row);
}

static const ListColumn list_columns[] = {
    {"id",      NULL, CELL_TEXT, offsetof(Process, process_id)},
    {"domain",  NULL, CELL_TEXT, offsetof(Process, domain)    },
    {"type",    NULL, CELL_TEXT, offsetof(Process, type)      },
    {"status",  NULL, CELL_TEXT, offsetof(Process, status)    },
    {"step",    NULL, CELL_TEXT, offsetof(Process, step)      },
    {"started", NULL, CELL_TIME, offsetof(Process, created_at)},
    {"error",   NULL, CELL_TEXT, offsetof(Process, error)     },
};
static const ListShape list_shape = {list_columns, COUNT(list_columns), sizeof(Process), "no processes", row_write};

ErrorCode command_process_list(Call *call, Error *reterr)
{
    scoped(app_close) App *app    = NULL;
    ProcessFilter          filter = {.domain = call_flag(call, "--domain"),
                                     .type   = call_flag(call, "--type"),
                                     .status = call_flag(call, "--status"),
                                     .step   = call_flag(call, "--step"),
                                     .text   = call_flag(call, "--text")};
    int64_t                left;
    List                   list;

    TRY(call_number("--limit", call_flag(call, "--limit"), 1, PROCESS_LIST_MAX, 100, &left, reterr));
    TRY(call_duration(call, "--older", 0, &filter.older_ms, reterr));
    TRY(process_status_check(filter.status, reterr) == OK ? OK : ERR_USAGE);
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    list_begin(&list, &list_shape, call->arena, call->json);
    do {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        Process                  *rows;
        int                       count;

        filter.limit = left < PAGE_ROWS ? (int)left : PAGE_ROWS;
        TRY(process_list(app->pool, deadline_in_ms(APP_COMMAND_MS), arena, &filter, &rows, &count, &filter.before,
                         reterr));
        list_rows(&list, rows, count);
        left -= count;
    } while (left > 0 && filter.before);
    list_end(&list);
    return OK;
}

/* ---- decide ---- */

static ErrorCode decide_one(Call *call, App *app, const ProcessDecision *decision, Error *reterr)
{
    char        id[UUID_TEXT_SIZE];
    ProcessName name;
    const char *ids[] = {id}, *domains[] = {call_flag(call, "--domain")};
    Decision   *made;

    TRY(name_read(call, id, &name, reterr));
    TRY(process_decide(app->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, call->arena,
                       (CommandNames){ids, domains, 1}, decision, &made, reterr));
    wake_domains(app, made->wake);
    return decision_print(call, "process", id, made, reterr);
}

static ErrorCode decide(Call *call, const ProcessDecision *decision, Error *reterr)
{
    scoped(app_close) App *app = NULL;

    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    return decide_one(call, app, decision, reterr);
}

/* ---- all that match ---- */

#define REFUSALS_SHOWN 10
#define CHUNK          500

/* What is done to all processes that match: a decision, or a move to a version. */
typedef struct {
    const ProcessDecision *decision; /* NULL: move */
    int                    version;
    const char            *reason;
    /* What came of it. */
    int64_t matched, decided, known, refused;
} Bulk;

static ErrorCode bulk_filter(Call *call, const char *status, ProcessFilter *ret_filter, Error *reterr)
{
    const char *given = call_flag(call, "--status");

    if (given && status && strcmp(given, status) != 0)
        return fail(reterr, ERR_USAGE, "--status must be %s here, got \"%.40s\"", status, given);
    *ret_filter = (ProcessFilter){.domain = call_flag(call, "--domain"),
                                  .type   = call_flag(call, "--type"),
                                  .status = given ? given : status,
                                  .step   = call_flag(call, "--step"),
                                  .text   = call_flag(call, "--text"),
                                  .limit  = CHUNK};
    TRY(call_duration(call, "--older", 0, &ret_filter->older_ms, reterr));
    return process_status_check(ret_filter->status, reterr) == OK ? OK : ERR_USAGE;
}

/* The first refusals are shown, all are counted. */
static void bulk_count(Bulk *bulk, ErrorCode code, bool is_new, const Error *error)
{
    if (code == OK) {
        bulk->decided += is_new;
        bulk->known += !is_new;
    } else if (++bulk->refused <= REFUSALS_SHOWN) {
        fprintf(stderr, "%s\n", error->text);
    }
}

static ErrorCode bulk_decide(App *app, Arena *arena, CommandNames names, Bulk *bulk, Error *reterr)
{
    Decision *made;

    TRY(process_decide(app->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, arena, names, bulk->decision, &made,
                       reterr));
    if (names.count)
        wake_domains(app, made->wake);
    for (int i = 0; i < names.count; i++) {
        Error     error = {0};
        ErrorCode code  = decision_check("process", names.ids[i], &made[i], &error);

        bulk_count(bulk, code, made[i].is_new, &error);
    }
    return OK;
}

static ErrorCode bulk_move(Call *call, App *app, Arena *arena, CommandNames names, Bulk *bulk, Error *reterr)
{
    ProcessMoved *moved;

    TRY(process_move(app->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, arena, names, bulk->version,
                     call_operator(call), bulk->reason, &moved, reterr));
    for (int i = 0; i < names.count; i++) {
        Error     error = {0};
        ErrorCode code  = process_moved_check(names.ids[i], bulk->version, &moved[i], &error);

        bulk_count(bulk, code, moved[i].is_new, &error);
        if (moved[i].is_new && (i == 0 || strcmp(names.domains[i], names.domains[i - 1]) != 0))
            wake_domains(app, moved[i].domains);
    }
    return OK;
}

/* One chunk: what has ended by now is left out. */
static ErrorCode bulk_chunk(Call *call, App *app, ProcessFilter *filter, Bulk *bulk, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT * 8);
    Process                  *list;
    const char               *ids[CHUNK], *domains[CHUNK];
    CommandNames              names = {ids, domains, 0};
    int                       count;

    TRY(process_list(app->pool, deadline_in_ms(APP_COMMAND_MS), arena, filter, &list, &count, &filter->before, reterr));
    for (int i = 0; i < count; i++) {
        if (command_status_constant(list[i].status) && strcmp(list[i].status, "PENDING") != 0 &&
            strcmp(list[i].status, "IN_PROGRESS") != 0)
            continue; /* COMPLETED, FAILED, CANCELED */
        if (strcmp(list[i].status, "COMPENSATED") == 0)
            continue;
        ids[names.count]       = list[i].process_id;
        domains[names.count++] = list[i].domain;
    }
    bulk->matched += names.count;
    if (names.count == 0 || call_flag(call, "--dry-run"))
        return OK;
    return bulk->decision ? bulk_decide(app, arena, names, bulk, reterr)
                          : bulk_move(call, app, arena, names, bulk, reterr);
}

static void bulk_print(Call *call, const Bulk *bulk)
{
    Text   text;
    Writer writer;

    if (call->json) {
        text_init(&text, call->arena, TEXT_MAX_LINE);
        writer_open(&writer, &text);
        writer_object(&writer, NULL);
        writer_i64(&writer, "matched", bulk->matched);
        writer_i64(&writer, "decided", bulk->decided);
        writer_i64(&writer, "known", bulk->known);
        writer_i64(&writer, "refused", bulk->refused);
        writer_end(&writer);
        print_json(&text);
    } else if (call_flag(call, "--dry-run")) {
        printf("%" PRId64 " match\n", bulk->matched);
    } else {
        printf("%" PRId64 " %s", bulk->decided, bulk->decision ? "decided" : "moved");
        if (bulk->known)
            printf(", %" PRId64 " %s", bulk->known,
                   bulk->decision ? "had been decided before" : "had this version already");
        if (bulk->refused)
            printf(", %" PRId64 " refused", bulk->refused);
        printf("\n");
    }
}

/* status: the only one that the decision is about; NULL: any that has not ended. */
static ErrorCode bulk_run(Call *call, const char *status, Bulk *bulk, Error *reterr)
{
    scoped(app_close) App *app = NULL;
    ProcessFilter          filter;
    Progress               progress;

    if (call->count)
        return fail(reterr, ERR_USAGE, "give one ID or --all, not both");
    if (!call_flag(call, "--yes") && !call_flag(call, "--dry-run"))
        return fail(reterr, ERR_USAGE,
                    "nothing was done: add --yes to decide about all that match, or --dry-run to count them");
    TRY(bulk_filter(call, status, &filter, reterr));
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    progress_begin(&progress);
    do {
        TRY(bulk_chunk(call, app, &filter, bulk, reterr));
        progress_show(&progress, bulk->matched, "processes");
    } while (filter.before);
    progress_end(&progress);
    bulk_print(call, bulk);
    return bulk->refused ? fail(reterr, ERR_CONFLICT, "%" PRId64 " of %" PRId64 " processes were refused",
                                bulk->refused, bulk->matched)
                         : OK;
}

static ErrorCode decide_some(Call *call, const char *status, const ProcessDecision *decision, Error *reterr)
{
    if (call_flag(call, "--all"))
        return bulk_run(call, status, &(Bulk){.decision = decision}, reterr);
    if (call->count == 0)
        return fail(reterr, ERR_USAGE, "ID is missing: name one process, or all that match a filter with --all");
    return decide(call, decision, reterr);
}

ErrorCode command_process_retry(Call *call, Error *reterr)
{
    ProcessDecision decision = {.action = PROCESS_RETRY,
                                .actor  = call_operator(call),
                                .reason = call_flag(call, "--reason"),
                                .from   = call_flag(call, "--from")};

    return decide_some(call, "WAITING_FOR_TSQ", &decision, reterr);
}

ErrorCode command_process_cancel(Call *call, Error *reterr)
{
    ProcessDecision decision = {.action = call_flag(call, "--compensate") ? PROCESS_COMPENSATE : PROCESS_CANCEL,
                                .actor  = call_operator(call),
                                .reason = call_flag(call, "--reason")};

    return decide_some(call, /* status= */ NULL, &decision, reterr);
}

ErrorCode command_process_complete(Call *call, Error *reterr)
{
    ProcessDecision decision = {.action = PROCESS_COMPLETE,
                                .actor  = call_operator(call),
                                .reason = call_flag(call, "--reason"),
                                .result = call_flag(call, "--result")};

    if (decision.result && reader_check(decision.result, strlen(decision.result), reterr) != OK) {
        error_prefix(reterr, "--result");
        return ERR_USAGE;
    }
    return decide_some(call, "WAITING_FOR_TSQ", &decision, reterr);
}

/* ---- move ---- */

static ErrorCode move_one(Call *call, int version, Error *reterr)
{
    scoped(app_close) App *app = NULL;
    char                   id[UUID_TEXT_SIZE];
    ProcessName            name;
    ProcessMoved          *moved;
    Text                   text;
    Writer                 writer;

    TRY(name_read(call, id, &name, reterr));
    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    TRY(process_move(app->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, call->arena,
                     (CommandNames){&name.id, &name.domain, 1}, version, call_operator(call),
                     call_flag(call, "--reason"), &moved, reterr));
    TRY(process_moved_check(id, version, moved, reterr));
    if (moved->is_new)
        wake_domains(app, moved->domains);
    if (call->json) {
        text_init(&text, call->arena, TEXT_MAX_BODY);
        writer_open(&writer, &text);
        process_moved_write(&writer, id, version, moved);
        print_json(&text);
        return OK;
    }
    if (moved->is_new)
        printf("%s moved from version %d to %d\n", id, moved->from_version, version);
    else
        printf("%s has version %d already%s%s\n", id, version, moved->operator? ", moved by " : "",
               moved->operator? moved->operator: "");
    return OK;
}

ErrorCode command_process_move(Call *call, Error *reterr)
{
    int64_t version;

    TRY(call_number("--to", call_flag(call, "--to"), 1, PROCESS_VERSION_MAX, 0, &version, reterr));
    if (!version)
        return fail(reterr, ERR_USAGE, "--to is missing: name the version to move to");
    if (call_flag(call, "--all"))
        return bulk_run(call, /* status= */ NULL,
                        &(Bulk){.version = (int)version, .reason = call_flag(call, "--reason")}, reterr);
    if (call->count == 0)
        return fail(reterr, ERR_USAGE, "ID is missing: name one process, or all that match a filter with --all");
    return move_one(call, (int)version, reterr);
}
