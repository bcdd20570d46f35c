/*
 * answers.c - see answers.h.
 */
#include "wallet/answers.h"

#include "base/finding.h"
#include "wallet/entry.h"
#include "wallet/list.h"

#include "base/answer_field.h"

/* clang-format off */
/* ---- wallets ---- */

#define FLOOR(Row) I64("floor", AT(Row, floor), .optional = true, .help = "how far below zero it may go; @system has none")

static const AnswerField wallet_fields[] = {
    TEXT("owner", AT(Wallet, owner)), TEXT("asset", AT(Wallet, asset)), I64("balance", AT(Wallet, balance)),
    I64("held", AT(Wallet, held)), I64("available", AT(Wallet, available)), FLOOR(Wallet), I64("version", AT(Wallet, version)),
    BOOL("frozen", AT(Wallet, frozen)), JSON("metadata", AT(Wallet, metadata), .nullable = true),
    TIME("created_at", AT(Wallet, created_at))};
TABLE(wallet, "Wallet");
static const AnswerField wallet_past_fields[] = {
    TEXT("owner", AT(WalletPast, owner)), TEXT("asset", AT(WalletPast, asset)), TIME("at"),
    I64("balance", AT(WalletPast, balance)), I64("held", AT(WalletPast, held)), I64("available", AT(WalletPast, available)),
    FLOOR(WalletPast), I64("version", AT(WalletPast, version))};
TABLE(wallet_past, "WalletPast");
static const AnswerField wallets_fields[] = {ROWS("items", wallet)};
TABLE(wallets, "Wallets");

static const AnswerField entry_fields[] = {
    UUID("txn_id", AT(Entry, txn_id)), TEXT("kind", AT(Entry, kind)), I64("amount", AT(Entry, amount)),
    I64("balance", AT(Entry, balance)), I64("held", AT(Entry, held)), I64("version", AT(Entry, version)),
    TEXT("other", AT(Entry, other), .nullable = true), JSON("metadata", AT(Entry, metadata), .nullable = true),
    TIME("at", AT(Entry, at))};
TABLE(entry, "Entry");
static const AnswerField entries_fields[] = {
    TEXT("owner"), TEXT("asset"), ROWS("items", entry),
    TEXT("next_cursor", .nullable = true, .help = "null: there is no more")};
TABLE(entries, "Entries");

/* ---- postings ---- */

#define STATE I64("balance_before"), I64("balance"), I64("held"), I64("available"), I64("version")

static const AnswerField moved_fields[] = {
    UUID("txn_id"), TEXT("owner"), TEXT("asset"), I64("amount"), STATE, TIME("at")};
TABLE(moved, "Moved");
static const AnswerField transfer_fields[] = {
    UUID("txn_id"), TEXT("from"), TEXT("to"), TEXT("asset"), I64("amount"), STATE, TIME("at")};
TABLE(transfer, "Transfer");
static const AnswerField frozen_fields[] = {
    UUID("txn_id"), TEXT("owner"), TEXT("asset"), STATE, BOOL("frozen"), TIME("at")};
TABLE(frozen, "Frozen");
static const AnswerField floor_fields[] = {
    UUID("txn_id"), TEXT("owner"), TEXT("asset"), STATE, I64("floor"), TIME("at")};
TABLE(floor, "Floor");
static const AnswerField hold_placed_fields[] = {
    UUID("txn_id"), TEXT("owner"), TEXT("asset"), I64("amount"), STATE, TIME("expires_at", .nullable = true), TIME("at")};
TABLE(hold_placed, "HoldPlaced");
static const AnswerField captured_fields[] = {
    UUID("txn_id"), UUID("hold"), TEXT("owner"), TEXT("to"), TEXT("asset"), I64("amount"), STATE, TIME("at")};
TABLE(captured, "Captured");
static const AnswerField voided_fields[] = {
    UUID("txn_id"), UUID("hold"), TEXT("owner"), TEXT("asset"), I64("amount"), STATE, TIME("at")};
TABLE(voided, "Voided");
static const AnswerField refunded_fields[] = {
    UUID("txn_id"), UUID("refund_of"), TEXT("owner"), TEXT("asset"), I64("amount"), STATE, TIME("at")};
TABLE(refunded, "Refunded");

static const AnswerField leg_fields[] = {
    TEXT("owner"), TEXT("asset"), I64("amount"), I64("balance"), I64("held"), I64("version")};
static TABLE(leg, "Leg");
static const AnswerField multi_fields[] = {UUID("txn_id"), I64("amount"), ROWS("entries", leg), TIME("at")};
TABLE(multi, "Posted");

#define MAYBE(name) I64(name, .optional = true)
static const AnswerField verdict_fields[] = {
    BOOL("posted"), UUID("txn_id"), TEXT("from", .optional = true), TEXT("to", .optional = true),
    TEXT("asset", .optional = true), MAYBE("amount"), MAYBE("balance_before"), MAYBE("balance"), MAYBE("held"),
    MAYBE("available"), MAYBE("version"), TIME("at", .optional = true), TEXT("type", .optional = true, .help = "of the problem"),
    I64("status", .optional = true), TEXT("detail", .optional = true)};
static TABLE(verdict, "Verdict");
static const AnswerField verdicts_fields[] = {I64("posted"), I64("refused"), ROWS("items", verdict)};
TABLE(verdicts, "Verdicts");

/* ---- transactions, holds, proof ---- */

static const AnswerField hold_part_fields[] = {
    I64("amount"), I64("captured"), TEXT("status", .words = hold_statuses), TIME("expires_at", .optional = true)};
static TABLE(hold_part, "HoldState");
static const AnswerField transaction_fields[] = {
    UUID("txn_id"), TEXT("kind"), TEXT("status", .words = transaction_statuses), TEXT("owner", .optional = true),
    TEXT("other", .optional = true), TEXT("asset", .optional = true), I64("amount", .optional = true),
    UUID("ref", .optional = true), JSON("metadata", .optional = true), TEXT("refusal", .optional = true, .help = "its SQLSTATE"),
    TEXT("reason", .optional = true), I64("refunded", .optional = true),
    {"hold", ANSWER_OBJECT, .optional = true, .table = &answer_hold_part}, TIME("at"), ROWS("entries", leg)};
TABLE(transaction, "Transaction");
static const AnswerField hold_fields[] = {
    UUID("txn_id"), TEXT("owner"), TEXT("asset"), I64("amount"), I64("captured"), I64("remaining"),
    TEXT("status", .words = hold_statuses), JSON("metadata", .optional = true), I64("refunded", .optional = true),
    TIME("expires_at", .optional = true), TIME("at")};
TABLE(hold, "Hold");

/* ---- lists ---- */

static const AnswerField wallet_line_fields[] = {
    TEXT("owner", AT(WalletLine, owner)), TEXT("asset", AT(WalletLine, asset)), I64("balance", AT(WalletLine, balance)),
    I64("held", AT(WalletLine, held)), I64("available", AT(WalletLine, available)), FLOOR(WalletLine),
    I64("version", AT(WalletLine, version)), BOOL("frozen", AT(WalletLine, frozen)), TIME("created_at", AT(WalletLine, created_at))};
TABLE(wallet_line, "WalletLine");
static const AnswerField wallet_lines_fields[] = {ROWS("items", wallet_line), NEXT_CURSOR};
TABLE(wallet_lines, "WalletLines");
static const AnswerField hold_line_fields[] = {
    UUID("txn_id", AT(HoldLine, txn_id)), TEXT("owner", AT(HoldLine, owner)), TEXT("asset", AT(HoldLine, asset)),
    I64("amount", AT(HoldLine, amount)), I64("captured", AT(HoldLine, captured)),
    I64("remaining", AT(HoldLine, remaining), .help = "what is still reserved"),
    TEXT("status", AT(HoldLine, status), .words = hold_statuses), TIME("expires_at", AT(HoldLine, expires_at), .nullable = true),
    TIME("at", AT(HoldLine, at))};
TABLE(hold_line, "HoldLine");
static const AnswerField hold_lines_fields[] = {ROWS("items", hold_line), NEXT_CURSOR};
TABLE(hold_lines, "HoldLines");
static const AnswerField transaction_line_fields[] = {
    UUID("txn_id", AT(TransactionLine, txn_id)), TEXT("kind", AT(TransactionLine, kind)),
    TEXT("status", AT(TransactionLine, status), .words = transaction_statuses), TEXT("owner", AT(TransactionLine, owner)),
    TEXT("other", AT(TransactionLine, other), .nullable = true), TEXT("asset", AT(TransactionLine, asset)),
    I64("amount", AT(TransactionLine, amount)),
    UUID("ref", AT(TransactionLine, ref), .nullable = true, .help = "the hold that it ends, or the transaction that it refunds"),
    TEXT("refusal", AT(TransactionLine, refusal), .nullable = true, .help = "its problem type"),
    TEXT("reason", AT(TransactionLine, reason), .nullable = true), TIME("at", AT(TransactionLine, at))};
TABLE(transaction_line, "TransactionLine");
static const AnswerField transaction_lines_fields[] = {ROWS("items", transaction_line), NEXT_CURSOR};
TABLE(transaction_lines, "TransactionLines");

static const AnswerField verify_fields[] = {
    BOOL("ok"), I64("rows"), I64("seals"), I64("unsealed"), I64("took_ms"), ROWS("findings", finding),
    BOOL("more", .help = "there are more findings than are shown")};
TABLE(verify, "Verification");
/* clang-format on */
