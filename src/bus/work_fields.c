/*
 * work_fields.c - see work_fields.h.
 */
#include "bus/work_fields.h"

#include <string.h>

#include "base/problem.h"
#include "bus/answers.h"
#include "bus/send.h"

#define CLAIM_LIMIT_MAX 1000
#define LEASE_S_MAX     86400
#define WAIT_S_MAX      60

/* ---- claim ---- */

static const Field claim_fields[] = {
    {"limit", FIELD_I64, offsetof(ClaimRequest, limit), .min = 1, .max = CLAIM_LIMIT_MAX, .help = "1 when absent"},
    {"lease_s", FIELD_REAL, offsetof(ClaimRequest, lease_s), .min = 1, .max = LEASE_S_MAX, .help = "30 when absent"},
    {"wait_s", FIELD_REAL, offsetof(ClaimRequest, wait_s), .min = 0, .max = WAIT_S_MAX,
     .help = "long poll; 0 when absent"},
    {"types", FIELD_TEXTS, offsetof(ClaimRequest, types), .min = 1, .max = 100, .length_max = SEND_TYPE_MAX},
    {"worker", FIELD_TEXT, offsetof(ClaimRequest, worker), .length_max = 200,
     .help = "name of the worker; the audit shows it after the key's name: shop (host-7)"},
};
const FieldTable claim_table = {"claim", claim_fields, COUNT(claim_fields), sizeof(ClaimRequest)};

/* ---- settle ---- */

static const Field settle_row_fields[] = {
    {"command_id", FIELD_UUID, offsetof(SettleRow, command_id), .required = true},
    {"lease", FIELD_I64, offsetof(SettleRow, lease), .required = true, .min = 1, .max = INT64_MAX,
     .help = "the token that the claim gave"},
    {"outcome", FIELD_TEXT, offsetof(SettleRow, outcome), .required = true, .words = outcome_names,
     .help =
         "complete: COMPLETED. retry: PENDING again after a delay, or IN_TSQ when its attempts are exhausted. fail: "
         "IN_TSQ, "
         "for an operator to decide; another attempt would not help. reject: FAILED, a business refusal that is final. "
         "snooze: PENDING again after a delay, and the attempt does not count; from 10,000 times or 30 days on it "
         "counts as a retry"},
    {"result", FIELD_JSON, offsetof(SettleRow, result), .help = "complete: what the handler returns; null when absent"},
    {"error", FIELD_TEXT, offsetof(SettleRow, error), .help = "retry, fail, reject, snooze: why"},
    {"delay_s", FIELD_REAL, offsetof(SettleRow, delay_s), .min = 0, .max = SEND_DELAY_S_MAX,
     .is_set = offsetof(SettleRow, delay_given),
     .help   = "retry: instead of the retry policy's delay; snooze: from 1 to 2592000, 10 when absent"},
};
static const FieldTable settle_row_table = {"settlement", settle_row_fields, COUNT(settle_row_fields),
                                            sizeof(SettleRow)};
static const Field      settle_fields[]  = {
    {"items", FIELD_ROWS, offsetof(SettleRequest, items), .required = true, .min = 1, .max = WORK_ITEMS_MAX,
     .rows = &settle_row_table},
};
const FieldTable settle_table = {"settle", settle_fields, COUNT(settle_fields), sizeof(SettleRequest)};

static Outcome outcome_find(const char *name)
{
    Outcome outcome = OUTCOME_COMPLETE;

    while (strcmp(outcome_names[outcome], name) != 0) /* the field table refuses all other words */
        outcome++;
    return outcome;
}

ErrorCode settle_rows_check(const SettleRequest *request, Error *reterr)
{
    const SettleRow *rows = request->items.items;

    for (int i = 0; i < request->items.count; i++)
        if (outcome_find(rows[i].outcome) == OUTCOME_SNOOZE && rows[i].delay_given &&
            (rows[i].delay_s < SNOOZE_S_MIN || rows[i].delay_s > SNOOZE_S_MAX))
            return fail(reterr, ERR_INVALID, "items[%d].delay_s of a snooze must be from %d to %d, got %g", i,
                        SNOOZE_S_MIN, SNOOZE_S_MAX, rows[i].delay_s);
    return OK;
}

SettleItem settle_row_item(const SettleRow *row, const char *domain)
{
    return (SettleItem){.token      = row->lease,
                        .outcome    = outcome_find(row->outcome),
                        .result     = row->result,
                        .error      = row->error,
                        .delay_ms   = row->delay_given ? (int64_t)(row->delay_s * 1000) : SETTLE_DELAY_DEFAULT,
                        .domain     = domain,
                        .command_id = row->command_id};
}

/* A failure that is no fault of the item may be over the next time. */
static const char *settle_verdict(const SettleItem *item)
{
    if (item->code != OK)
        return error_verdict(item->code) == VERDICT_FINAL ? "refused" : "busy";
    return item->settled ? "settled" : "lost";
}

void settled_write(Writer *writer, const SettleRow *rows, SettleItem *const *items, int count)
{
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++) {
        writer_object(writer, NULL);
        writer_text(writer, "command_id", rows[i].command_id);
        writer_bool(writer, "settled", items[i]->code == OK && items[i]->settled);
        writer_text(writer, "verdict", settle_verdict(items[i]));
        writer_text(writer, "status", items[i]->status);
        if (items[i]->code != OK)
            writer_text(writer, "error", problem_detail(&items[i]->error_text));
        writer_end(writer);
    }
    writer_end(writer);
    writer_end(writer);
}

/* ---- extend ---- */

static const Field extend_row_fields[] = {
    {"command_id", FIELD_UUID, offsetof(ExtendRow, command_id), .required = true},
    {"lease", FIELD_I64, offsetof(ExtendRow, lease), .required = true, .min = 1, .max = INT64_MAX,
     .help = "the token that the claim gave"},
};
static const FieldTable extend_row_table = {"lease", extend_row_fields, COUNT(extend_row_fields), sizeof(ExtendRow)};
static const Field      extend_fields[]  = {
    {"items",   FIELD_ROWS, offsetof(ExtendRequest, items),   .required = true, .min = 1, .max = WORK_ITEMS_MAX,
     .rows = &extend_row_table},
    {"lease_s", FIELD_REAL, offsetof(ExtendRequest, lease_s), .required = true, .min = 1, .max = LEASE_S_MAX,
     .help = "from now on"    },
};
const FieldTable extend_table = {"extend", extend_fields, COUNT(extend_fields), sizeof(ExtendRequest)};

const VerdictShape extended_shape = {"command_id", "extended", lease_verdicts};

/* ---- progress ---- */

static const Field progress_row_fields[] = {
    {"command_id", FIELD_UUID, offsetof(ProgressRow, command_id), .required = true},
    {"lease", FIELD_I64, offsetof(ProgressRow, lease), .required = true, .min = 1, .max = INT64_MAX,
     .help = "the token that the claim gave"},
    {"percent", FIELD_I64, offsetof(ProgressRow, percent), .max = 100, .is_set = offsetof(ProgressRow, has_percent),
     .help = "0 to 100; absent: not given"},
    {"text", FIELD_TEXT, offsetof(ProgressRow, text), .help = "1 to 200 characters; absent: not given"},
};
static const FieldTable progress_row_table = {"progress report", progress_row_fields, COUNT(progress_row_fields),
                                              sizeof(ProgressRow)};
static const Field      progress_fields[]  = {
    {"items", FIELD_ROWS, offsetof(ProgressRequest, items), .required = true, .min = 1, .max = WORK_ITEMS_MAX,
     .rows = &progress_row_table},
};
const FieldTable progress_table = {"progress", progress_fields, COUNT(progress_fields), sizeof(ProgressRequest)};

ErrorCode progress_items_read(const ProgressRequest *request, Arena *arena, ProgressItem **ret_items, Error *reterr)
{
    const ProgressRow *rows  = request->items.items;
    ProgressItem      *items = arena_array(arena, ProgressItem, request->items.count);

    for (int i = 0; i < request->items.count; i++) {
        items[i] = (ProgressItem){
            .token    = rows[i].lease,
            .progress = {.percent = rows[i].has_percent ? (int)rows[i].percent : PROGRESS_NONE,
                         .text    = rows[i].text,
                         .step    = rows[i].step}
        };
        if (progress_check(&items[i].progress, reterr) != OK) {
            error_prefix(reterr, "items[%d]", i);
            return ERR_INVALID;
        }
    }
    *ret_items = items;
    return OK;
}

const VerdictShape reported_shape = {"command_id", "reported", progress_verdicts};

/* ---- verdicts ---- */

void verdicts_write(Writer *writer, const VerdictShape *shape, const char *const *ids, const int *verdicts, int count)
{
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++) {
        writer_object(writer, NULL);
        writer_text(writer, shape->id, ids[i]);
        if (shape->done)
            writer_bool(writer, shape->done, verdicts[i] == 0);
        writer_text(writer, "verdict", shape->names[verdicts[i]]);
        writer_end(writer);
    }
    writer_end(writer);
    writer_end(writer);
}
