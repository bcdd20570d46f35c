/*
 * command_wallet_statement.c - the entries of a wallet from the oldest to the newest, between its two balances.
 *
 * Read and written page by page, so its length is not bounded by memory.
 */
#include <inttypes.h>

#include "base/writer.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/visible.h"
#include "wallet/entry.h"

#define PAGE_ENTRIES   1000
#define PAGE_BYTES_MAX (ARENA_BYTES_DEFAULT * 4) /* a thousand entries with the largest metadata */

typedef struct {
    EntryFilter filter;
    int64_t     since, until;     /* microseconds since 1970; 0: no limit */
    int64_t     opening, balance; /* before the first entry; after the last one so far */
    int64_t     in, out, count;
} Statement;

/* How a statement is written: its head, its pages, its foot. statement->count tells how many entries came before a page. */
typedef struct {
    void (*head)(const Statement *statement, Arena *arena);
    void (*page)(const Statement *statement, Arena *arena, const Entry *list, int count);
    void (*foot)(const Statement *statement, Arena *arena);
} Form;

/* ---- a table for people; each page has its head, as on paper ---- */

static void table_page(const Statement *statement, Arena *arena, const Entry *list, int count)
{
    static const char *const head[] = {"at", "kind", ">amount", "asset", ">balance", "other", "txn_id", NULL};
    Table                    table;

    table_init(&table, arena, head);
    table.is_cut = true;
    for (int i = 0; i < count; i++) {
        table_cell_time(&table, list[i].at);
        table_cell(&table, list[i].kind);
        table_cell_i64(&table, list[i].amount);
        table_cell(&table, statement->filter.asset);
        table_cell_i64(&table, list[i].balance);
        table_cell(&table, list[i].other);
        table_cell(&table, list[i].txn_id);
    }
    table_print(&table, "");
    printf("\n");
}

static void table_foot(const Statement *statement, Arena *arena)
{
    static const char *const head[] = {"owner", ">entries", ">opening", ">in", ">out", ">closing", "asset", NULL};
    Table                    table;

    table_init(&table, arena, head);
    table_cell(&table, statement->filter.owner);
    table_cell_i64(&table, statement->count);
    table_cell_i64(&table, statement->opening);
    table_cell_i64(&table, statement->in);
    table_cell_i64(&table, statement->out);
    table_cell_i64(&table, statement->balance);
    table_cell(&table, statement->filter.asset);
    table_print(&table, "");
}

/* ---- CSV, as RFC 4180 has it but for plain line ends ---- */

static void csv_head(const Statement *statement, Arena *arena)
{
    (void)statement;
    (void)arena;
    visible_data();
    printf(ENTRY_CSV_HEAD "\n");
}

static void csv_page(const Statement *statement, Arena *arena, const Entry *list, int count)
{
    scoped_text Text text = {0};

    (void)statement;
    (void)arena;
    text_init(&text, NULL, TEXT_MAX_BODY);
    for (int i = 0; i < count; i++) {
        text_clear(&text);
        entry_csv_write(&text, &list[i]);
        printf("%s\n", text_string(&text));
    }
}

/* ---- one JSON document, written as it comes ---- */

/* The members of an object without its braces, so that a document can go on over several pages. */
static void members_print(const Text *text)
{
    printf("%.*s", (int)text->length - 2, text_string(text) + 1);
}

static void json_head(const Statement *statement, Arena *arena)
{
    Text   text;
    Writer writer;

    text_init(&text, arena, TEXT_MAX_LINE);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    writer_text(&writer, "owner", statement->filter.owner);
    writer_text(&writer, "asset", statement->filter.asset);
    writer_time(&writer, "since", statement->since);
    writer_time(&writer, "until", statement->until);
    writer_i64(&writer, "opening", statement->opening);
    writer_end(&writer);
    printf("{");
    members_print(&text);
    printf(",\"entries\":[");
}

static void json_page(const Statement *statement, Arena *arena, const Entry *list, int count)
{
    scoped_text Text text = {0};

    (void)arena;
    text_init(&text, NULL, TEXT_MAX_BODY);
    for (int i = 0; i < count; i++) {
        Writer writer;

        text_clear(&text);
        writer_open(&writer, &text);
        entry_write(&writer, &list[i]);
        printf("%s%s", statement->count || i ? "," : "", text_string(&text));
    }
}

static void json_foot(const Statement *statement, Arena *arena)
{
    (void)arena;
    printf("],\"in\":%" PRId64 ",\"out\":%" PRId64 ",\"closing\":%" PRId64 "}\n", statement->in, statement->out,
           statement->balance);
}

/* ---- from the ledger ---- */

static ErrorCode statement_open(Call *call, Statement *statement, Error *reterr)
{
    const EntryFilter *filter   = &statement->filter;
    Deadline           deadline = deadline_in_ms(APP_COMMAND_MS);
    Wallet            *wallet;
    WalletPast         past = {0};
    int                count;

    TRY(wallet_get(call->pool, deadline, call->arena, &filter->owner, &filter->asset, 1, &wallet, &count, reterr));
    if (count == 0)
        return wallet_missing(filter->owner, filter->asset, reterr);
    /* A wallet that was not there yet had nothing. */
    if (statement->since > wallet->created_at)
        TRY(wallet_get_at(call->pool, deadline, call->arena, filter->owner, filter->asset,
                          moment_text(call->arena, statement->since - 1), &past, reterr));
    statement->opening = statement->balance = past.balance;
    return OK;
}

static void statement_add(Statement *statement, const Entry *list, int count)
{
    for (int i = 0; i < count; i++)
        *(list[i].amount < 0 ? &statement->out : &statement->in) += list[i].amount;
    statement->count += count;
    statement->balance     = list[count - 1].balance;
    statement->filter.seen = list[count - 1].number;
}

static ErrorCode statement_print(Call *call, Statement *statement, const Form *form, Error *reterr)
{
    int count;

    TRY(statement_open(call, statement, reterr));
    if (form->head)
        form->head(statement, call->arena);
    do {
        scoped(arena_free) Arena *arena = arena_new(PAGE_BYTES_MAX);
        Entry                    *list;

        TRY(statement_page(call->pool, deadline_in_ms(APP_COMMAND_MS), arena, &statement->filter, &list, &count,
                           reterr));
        if (count) {
            form->page(statement, arena, list, count);
            statement_add(statement, list, count);
        }
    } while (count == PAGE_ENTRIES);
    if (form->foot)
        form->foot(statement, call->arena);
    return OK;
}

ErrorCode command_wallet_statement(Call *call, Error *reterr)
{
    static const Form table = {NULL, table_page, table_foot}, csv = {csv_head, csv_page, NULL},
                      json = {json_head, json_page, json_foot};
    const char *asset      = call_flag(call, "--asset");
    Statement   statement  = {
           .filter = {.owner = call->arguments[0], .asset = asset ? asset : WALLET_ASSET_DEFAULT, .limit = PAGE_ENTRIES}
    };

    TRY(wallet_check_owner_seen("OWNER", statement.filter.owner, reterr) == OK ? OK : ERR_USAGE);
    TRY(wallet_check_asset("--asset", asset, reterr) == OK ? OK : ERR_USAGE);
    TRY(call_moment(call, "--since", &statement.since, reterr));
    TRY(call_moment(call, "--until", &statement.until, reterr));
    statement.filter.since = moment_text(call->arena, statement.since);
    statement.filter.until = moment_text(call->arena, statement.until);
    if (call_flag(call, "--csv") && call->json)
        return fail(reterr, ERR_USAGE, "--csv and --json are two forms: give one of them");
    TRY(call_open(call, APP_SCHEMA, reterr));
    return statement_print(call, &statement, call->json ? &json : call_flag(call, "--csv") ? &csv : &table, reterr);
}
