/*
 * command_wallet_batch.c - many operations, one JSON object per line, posted in chunks or all together.
 *
 * Each line has its key (txn_id), so an interrupted run can be repeated: what was posted is reported as already posted.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/writer.h"
#include "cli/command.h"
#include "cli/posting.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "wallet/operation.h"

#define LINES_MAX       1000
#define CHUNK_BYTES_MAX ((size_t)16 << 20)
#define LINE_BYTES_MAX  65536
#define FIELDS_MAX      16

/* ---- one line ---- */

/* A line is read twice: first by the names of all fields, to find its kind; then by the table of that kind. */
typedef struct {
    const char *kind; /* NULL: transfer */
    const char *given[FIELDS_MAX];
} Names;

typedef struct {
    Field      fields[FIELDS_MAX];
    FieldTable table;
} NameTable;

static bool table_has(const FieldTable *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->fields[i].name, name) == 0)
            return true;
    return false;
}

/* The fields of all kinds. */
static void names_make(NameTable *ret_names)
{
    FieldTable *table = &ret_names->table;

    *table = (FieldTable){"operation", ret_names->fields, 0, sizeof(Names)};
    for (WalletKind kind = 0; kind < WALLET_KIND_COUNT; kind++)
        for (size_t i = 0; i < wallet_operation_lines[kind].count; i++) {
            const char *name = wallet_operation_lines[kind].fields[i].name;

            if (table_has(table, name))
                continue;
            assert(table->count < FIELDS_MAX);
            ret_names->fields[table->count] = (Field){name, FIELD_JSON, offsetof(Names, given[table->count])};
            table->count++;
        }
    ret_names->fields[0] = (Field){"kind", FIELD_TEXT, offsetof(Names, kind)}; /* the first one of each kind */
}

static ErrorCode kind_read(const FieldTable *names, const char *text, size_t size, Arena *arena, WalletKind *ret_kind,
                           Error *reterr)
{
    Names line;

    TRY(reader_object(text, size, names, arena, &line, reterr));
    *ret_kind = WALLET_TRANSFER;
    if (line.kind)
        TRY(wallet_kind_find("kind", line.kind, ret_kind, reterr));
    for (size_t i = 1; i < names->count; i++)
        if (line.given[i] && !table_has(&wallet_operation_lines[*ret_kind], names->fields[i].name))
            return fail(reterr, ERR_INVALID, "%s has no field \"%s\"", wallet_kind_names[*ret_kind],
                        names->fields[i].name);
    return OK;
}

static ErrorCode item_read(const FieldTable *names, const char *text, size_t size, Arena *arena, WalletItem *ret_item,
                           Error *reterr)
{
    WalletKind    kind;
    WalletRequest line;

    if (size > LINE_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "%zu bytes: at most %d are allowed", size, LINE_BYTES_MAX);
    TRY(kind_read(names, text, size, arena, &kind, reterr));
    TRY(reader_object(text, size, &wallet_operation_lines[kind], arena, &line, reterr));
    if (!line.txn_id) /* over HTTP it may be in a header */
        return fail(reterr, ERR_INVALID, "missing field \"txn_id\"");
    *ret_item = wallet_request_item(kind, &line);
    return wallet_check(ret_item, reterr);
}

/* ---- lines in chunks ---- */

typedef struct {
    Call             *call;
    FILE             *file;
    const FieldTable *names; /* of the fields of all kinds */
    bool              atomic;
    Progress          progress;
    int64_t           line; /* read so far */
    int64_t           posted, repeated, refused;
} Batch;

typedef struct {
    Arena       *arena;
    WalletItem **items;
    int64_t     *lines; /* the line number of each */
    int          count;
    size_t       bytes;
} Chunk;

static ErrorCode chunk_line(Batch *batch, Chunk *chunk, const char *text, size_t size, Error *reterr)
{
    WalletItem *item = arena_array(chunk->arena, WalletItem, 1);

    if (item_read(batch->names, text, size, chunk->arena, item, reterr) != OK) {
        int64_t first = chunk->count ? chunk->lines[0] : batch->line;
        Error   why   = *reterr;

        return fail(reterr, why.code, "line %" PRId64 ": %s; nothing from line %" PRId64 " on was posted", batch->line,
                    why.text, first);
    }
    chunk->bytes += size;
    chunk->lines[chunk->count]   = batch->line;
    chunk->items[chunk->count++] = item;
    return OK;
}

/* Up to most lines that are not empty, or CHUNK_BYTES_MAX; none: the end of the file. */
static ErrorCode chunk_read(Batch *batch, Chunk *chunk, int most, Error *reterr)
{
    char     *text  = NULL;
    size_t    space = 0;
    ssize_t   size;
    ErrorCode code = OK;

    chunk->items = arena_array(chunk->arena, WalletItem *, most);
    chunk->lines = arena_array(chunk->arena, int64_t, most);
    while (code == OK && chunk->count < most && chunk->bytes < CHUNK_BYTES_MAX &&
           (size = getline(&text, &space, batch->file)) >= 0) {
        batch->line++;
        while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
            size--;
        if (size)
            code = chunk_line(batch, chunk, text, (size_t)size, reterr);
    }
    free(text);
    return code == OK && ferror(batch->file) ? fail(reterr, ERR_DENIED, "cannot read the lines: %m") : code;
}

/* ---- verdicts ---- */

static int64_t decided(const Batch *batch)
{
    return batch->posted + batch->repeated + batch->refused;
}

static void chunk_count(Batch *batch, const Chunk *chunk)
{
    for (int i = 0; i < chunk->count; i++)
        if (chunk->items[i]->code != OK)
            batch->refused++;
        else if (chunk->items[i]->replayed)
            batch->repeated++;
        else
            batch->posted++;
}

static void chunk_json(const Batch *batch, const Chunk *chunk)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_BODY);
    for (int i = 0; i < chunk->count; i++) {
        Writer writer;

        text_clear(&text);
        writer_open(&writer, &text);
        writer_object(&writer, NULL);
        writer_i64(&writer, "line", chunk->lines[i]);
        posting_write(&writer, chunk->items[i]);
        writer_end(&writer);
        printf("%c%s", decided(batch) + i ? ',' : '[', text_string(&text));
    }
}

/* Only refusals: what was posted is counted. */
static void chunk_table(const Chunk *chunk)
{
    static const char *const head[] = {">line", "kind", "txn_id", "reason", NULL};
    Table                    table;
    int                      shown = 0;

    table_init(&table, chunk->arena, head);
    for (int i = 0; i < chunk->count; i++) {
        const WalletItem *item = chunk->items[i];

        if (item->code == OK)
            continue;
        table_cell_i64(&table, chunk->lines[i]);
        table_cell(&table, wallet_kind_names[item->kind]);
        table_cell(&table, item->txn_id);
        table_cell(&table, item->error.text);
        shown++;
    }
    if (shown)
        table_print(&table, "");
}

static ErrorCode chunk_post(Batch *batch, const Chunk *chunk, Error *reterr)
{
    int       refused;
    ErrorCode code = wallet_post_many(batch->call->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, chunk->arena,
                                      chunk->items, chunk->count, batch->atomic, &refused, reterr);

    if (code != OK) {
        error_prefix(reterr, "lines %" PRId64 " to %" PRId64, chunk->lines[0], chunk->lines[chunk->count - 1]);
        return code;
    }
    if (batch->atomic && refused >= 0)
        return fail(reterr, ERR_CONFLICT, "nothing was posted, because line %" PRId64 " was refused: %s",
                    chunk->lines[refused], chunk->items[refused]->error.text);
    if (batch->call->json)
        chunk_json(batch, chunk);
    else
        chunk_table(chunk);
    chunk_count(batch, chunk);
    progress_show(&batch->progress, decided(batch), "decided");
    return OK;
}

/* ---- all of them ---- */

static ErrorCode post_in_chunks(Batch *batch, Error *reterr)
{
    for (;;) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT * 8);
        Chunk                     chunk = {.arena = arena};

        TRY(chunk_read(batch, &chunk, LINES_MAX, reterr));
        if (chunk.count == 0)
            return OK;
        TRY(chunk_post(batch, &chunk, reterr));
    }
}

/* One transaction: all lines are read before anything is posted. */
static ErrorCode post_batch(Batch *batch, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT * 8);
    Chunk                     chunk = {.arena = arena};

    TRY(chunk_read(batch, &chunk, WALLET_BATCH_MAX + 1, reterr));
    if (chunk.count > WALLET_BATCH_MAX || chunk.bytes >= CHUNK_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "--atomic takes at most %d operations of %zu bytes together", WALLET_BATCH_MAX,
                    CHUNK_BYTES_MAX);
    return chunk.count ? chunk_post(batch, &chunk, reterr) : OK;
}

static ErrorCode batch_end(const Batch *batch, Error *reterr)
{
    int64_t total = decided(batch);

    if (!batch->call->json)
        printf("%" PRId64 " posted, %" PRId64 " already posted, %" PRId64 " refused\n", batch->posted, batch->repeated,
               batch->refused);
    if (batch->refused == 0)
        return OK;
    return fail(reterr, ERR_CONFLICT, "%" PRId64 " of %" PRId64 " operations were refused", batch->refused, total);
}

static ErrorCode batch_run(Batch *batch, Error *reterr)
{
    ErrorCode code;

    progress_begin(&batch->progress);
    code = batch->atomic ? post_batch(batch, reterr) : post_in_chunks(batch, reterr);
    progress_end(&batch->progress);
    if (batch->call->json && (decided(batch) || code == OK))
        printf("%s]\n", decided(batch) ? "" : "[");
    if (code == OK)
        return batch_end(batch, reterr);
    if (batch->posted)
        error_prefix(reterr, "%" PRId64 " posted, then", batch->posted);
    return code;
}

static ErrorCode file_post(Call *call, FILE *file, Error *reterr)
{
    NameTable names;
    Batch     batch = {.call = call, .atomic = call_flag(call, "--atomic"), .file = file, .names = &names.table};

    names_make(&names);
    TRY(call_open(call, APP_SCHEMA, reterr));
    return batch_run(&batch, reterr);
}

ErrorCode command_wallet_batch(Call *call, Error *reterr)
{
    const char *name = call->count ? call->arguments[0] : "-";
    FILE       *file;
    ErrorCode   code;

    call->reads_input = true;
    if (strcmp(name, "-") == 0)
        return file_post(call, stdin, reterr);
    file = fopen(name, "re");
    if (!file)
        return fail(reterr, ERR_USAGE, "FILE \"%.200s\" cannot be read: %m", name);
    code = file_post(call, file, reterr);
    (void)fclose(file); /* it was only read */
    return code;
}
