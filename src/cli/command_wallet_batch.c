/*
 * command_wallet_batch.c - many operations, one JSON object per line, posted in bites or all together.
 *
 * Each line has its key (txn_id), so a run that was interrupted is simply run again: what was posted is told again.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/writer.h"
#include "cli/command.h"
#include "cli/posting.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "wallet/post.h"

#define LINES_AT_ONCE  1000
#define BITE_BYTES_MAX ((size_t)16 << 20)
#define LINE_BYTES_MAX 65536

/* ---- one line ---- */

typedef struct {
    const char *kind, *txn_id, *owner, *from, *to, *asset, *hold, *transaction, *metadata;
    int64_t     amount, expires_in_s, floor;
    bool        has_floor;
    ReaderArray legs;
} Line;

static const Field line_fields[] = {
    {"kind", FIELD_TEXT, offsetof(Line, kind)},
    {"txn_id", FIELD_UUID, offsetof(Line, txn_id), .required = true},
    {"metadata", FIELD_JSON, offsetof(Line, metadata)},
#define COMMON_FIELDS 3  /* these every kind has */
    {"owner", FIELD_TEXT, offsetof(Line, owner)},
    {"from", FIELD_TEXT, offsetof(Line, from)},
    {"to", FIELD_TEXT, offsetof(Line, to)},
    {"amount", FIELD_I64, offsetof(Line, amount), .min = 1, .max = WALLET_AMOUNT_MAX},
    {"asset", FIELD_TEXT, offsetof(Line, asset)},
    {"hold", FIELD_UUID, offsetof(Line, hold)},
    {"transaction", FIELD_UUID, offsetof(Line, transaction)},
    {"expires_in_s", FIELD_I64, offsetof(Line, expires_in_s), .min = 1, .max = WALLET_EXPIRES_IN_S_MAX},
    {"floor", FIELD_I64, offsetof(Line, floor), .is_set = offsetof(Line, has_floor)},
    {"legs", FIELD_ROWS, offsetof(Line, legs), .min = WALLET_LEGS_MIN, .max = WALLET_LEGS_MAX,
     .rows = &wallet_leg_table},
};
static const FieldTable line_table = {"operation", line_fields, COUNT(line_fields), sizeof(Line)};

static bool line_has(const Line *line, const Field *field)
{
    const void *value = (const char *)line + field->offset;

    if (field->type == FIELD_I64)
        return *(const int64_t *)value != 0;
    if (field->type == FIELD_ROWS)
        return ((const ReaderArray *)value)->count != 0;
    return *(const char *const *)value != NULL;
}

static ErrorCode line_check(const Line *line, WalletKind kind, Error *reterr)
{
    for (size_t i = COMMON_FIELDS; i < COUNT(line_fields); i++)
        if (line_has(line, &line_fields[i]) && !wallet_kind_has_field(kind, line_fields[i].name))
            return fail(reterr, ERR_INVALID, "%s has no field \"%s\"", wallet_kind_names[kind], line_fields[i].name);
    if (kind == WALLET_FLOOR && !line->has_floor)
        return fail(reterr, ERR_INVALID, "missing field \"floor\"");
    return OK;
}

static ErrorCode item_read(const char *text, size_t size, Arena *arena, WalletItem *item, Error *reterr)
{
    Line       line;
    WalletKind kind = WALLET_TRANSFER; /* unless it says so */

    if (size > LINE_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "%zu bytes: at most %d are allowed", size, LINE_BYTES_MAX);
    TRY(reader_object(text, size, &line_table, arena, &line, reterr));
    if (line.kind)
        TRY(wallet_kind_find("kind", line.kind, &kind, reterr));
    TRY(line_check(&line, kind, reterr));
    *item = (WalletItem){
        .kind         = kind,
        .txn_id       = line.txn_id,
        .owner        = line.owner ? line.owner : line.from,
        .other        = line.to,
        .asset        = line.asset,
        .ref          = line.hold ? line.hold : line.transaction,
        .amount       = line.amount,
        .expires_in_s = line.expires_in_s,
        .floor        = line.floor,
        .legs         = {line.legs.items, line.legs.count},
        .metadata     = line.metadata
    };
    return wallet_check(item, reterr);
}

/* ---- lines in bites ---- */

typedef struct {
    Call    *call;
    App     *app;
    FILE    *file;
    bool     atomic;
    Progress progress;
    int64_t  line; /* read so far */
    int64_t  posted, repeated, refused;
} Batch;

typedef struct {
    Arena       *arena;
    WalletItem **items;
    int64_t     *lines; /* where each of them stands */
    int          count;
    size_t       bytes;
} Bite;

static ErrorCode bite_line(Batch *batch, Bite *bite, const char *text, size_t size, Error *reterr)
{
    WalletItem *item = arena_array(bite->arena, WalletItem, 1);

    if (item_read(text, size, bite->arena, item, reterr) != OK) {
        error_prefix(reterr, "line %" PRId64, batch->line);
        return reterr->code;
    }
    bite->bytes += size;
    bite->lines[bite->count]   = batch->line;
    bite->items[bite->count++] = item;
    return OK;
}

/* Up to most lines that are not empty, or BITE_BYTES_MAX; none: the end of the file. */
static ErrorCode bite_read(Batch *batch, Bite *bite, int most, Error *reterr)
{
    char     *text = NULL;
    size_t    room = 0;
    ssize_t   size;
    ErrorCode code = OK;

    bite->items = arena_array(bite->arena, WalletItem *, most);
    bite->lines = arena_array(bite->arena, int64_t, most);
    while (code == OK && bite->count < most && bite->bytes < BITE_BYTES_MAX &&
           (size = getline(&text, &room, batch->file)) >= 0) {
        batch->line++;
        while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
            size--;
        if (size)
            code = bite_line(batch, bite, text, (size_t)size, reterr);
    }
    free(text);
    return code == OK && ferror(batch->file) ? fail(reterr, ERR_DENIED, "cannot read the lines: %m") : code;
}

/* ---- verdicts ---- */

static int64_t decided(const Batch *batch)
{
    return batch->posted + batch->repeated + batch->refused;
}

static void bite_count(Batch *batch, const Bite *bite)
{
    for (int i = 0; i < bite->count; i++)
        if (bite->items[i]->code != OK)
            batch->refused++;
        else if (bite->items[i]->replayed)
            batch->repeated++;
        else
            batch->posted++;
}

static void bite_json(const Batch *batch, const Bite *bite)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_BODY);
    for (int i = 0; i < bite->count; i++) {
        Writer writer;

        text_clear(&text);
        writer_open(&writer, &text);
        writer_object(&writer, NULL);
        writer_i64(&writer, "line", bite->lines[i]);
        posting_write(&writer, bite->items[i]);
        writer_end(&writer);
        printf("%c%s", decided(batch) + i ? ',' : '[', text_string(&text));
    }
}

/* People want to see what did not happen. */
static void bite_table(const Bite *bite)
{
    static const char *const head[] = {">line", "kind", "txn_id", "why not", NULL};
    Table                    table;
    int                      shown = 0;

    table_init(&table, bite->arena, head);
    for (int i = 0; i < bite->count; i++) {
        const WalletItem *item = bite->items[i];

        if (item->code == OK)
            continue;
        table_cell_i64(&table, bite->lines[i]);
        table_cell(&table, wallet_kind_names[item->kind]);
        table_cell(&table, item->txn_id);
        table_cell(&table, item->error.text);
        shown++;
    }
    if (shown)
        table_print(&table, "");
}

static ErrorCode bite_post(Batch *batch, const Bite *bite, Error *reterr)
{
    int       refused;
    ErrorCode code = wallet_post_many(batch->app->pool, deadline_in_ms(APP_COMMAND_MS), bite->arena, bite->items,
                                      bite->count, batch->atomic, &refused, reterr);

    if (code != OK) {
        error_prefix(reterr, "lines %" PRId64 " to %" PRId64, bite->lines[0], bite->lines[bite->count - 1]);
        return code;
    }
    if (batch->atomic && refused >= 0)
        return fail(reterr, ERR_CONFLICT, "nothing was posted, because line %" PRId64 " was refused: %s",
                    bite->lines[refused], bite->items[refused]->error.text);
    if (batch->call->json)
        bite_json(batch, bite);
    else
        bite_table(bite);
    bite_count(batch, bite);
    progress_show(&batch->progress, decided(batch), "decided");
    return OK;
}

/* ---- all of them ---- */

static ErrorCode post_in_bites(Batch *batch, Error *reterr)
{
    for (;;) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT * 8);
        Bite                      bite  = {.arena = arena};

        TRY(bite_read(batch, &bite, LINES_AT_ONCE, reterr));
        if (bite.count == 0)
            return OK;
        TRY(bite_post(batch, &bite, reterr));
    }
}

/* One transaction: all lines are read before anything is posted. */
static ErrorCode post_together(Batch *batch, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT * 8);
    Bite                      bite  = {.arena = arena};

    TRY(bite_read(batch, &bite, WALLET_BATCH_MAX + 1, reterr));
    if (bite.count > WALLET_BATCH_MAX || bite.bytes >= BITE_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "--atomic takes at most %d operations of %zu bytes together", WALLET_BATCH_MAX,
                    BITE_BYTES_MAX);
    return bite.count ? bite_post(batch, &bite, reterr) : OK;
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
    code = batch->atomic ? post_together(batch, reterr) : post_in_bites(batch, reterr);
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
    scoped(app_close) App *app   = NULL;
    Batch                  batch = {.call = call, .atomic = call_flag(call, "--atomic"), .file = file};

    TRY(app_open(&call->given, APP_SCHEMA, &app, reterr));
    batch.app = app;
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
