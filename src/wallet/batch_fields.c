/*
 * batch_fields.c - see batch_fields.h.
 */
#include "wallet/batch_fields.h"

static const Field batch_fields[] = {
    {"atomic", FIELD_BOOL, offsetof(WalletBatchRequest, atomic), .help = "all or none; false when absent"},
    {"items", FIELD_ROWS, offsetof(WalletBatchRequest, items), .required = true, .min = 1, .max = WALLET_BATCH_MAX,
     .rows = &wallet_operation_tables[WALLET_TRANSFER]},
};
const FieldTable wallet_batch_table = {"transfers", batch_fields, COUNT(batch_fields), sizeof(WalletBatchRequest)};

static void verdict_write(Writer *writer, const WalletItem *item)
{
    writer_object(writer, NULL);
    writer_bool(writer, "posted", item->code == OK);
    if (item->code == OK) {
        wallet_posted_write(writer, item);
    } else {
        writer_i64(writer, "status", error_http(item->code));
        wallet_refusal_write(writer, item);
    }
    writer_end(writer);
}

void wallet_verdicts_write(Writer *writer, WalletItem *const *items, int count)
{
    int64_t posted = 0;

    for (int i = 0; i < count; i++)
        posted += items[i]->code == OK;
    writer_i64(writer, "posted", posted);
    writer_i64(writer, "refused", count - posted);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        verdict_write(writer, items[i]);
    writer_end(writer);
}
