/*
 * answers.h - the shapes of responses about wallets; see base/answer.h.
 */
#ifndef WALLET_ANSWERS_H
#define WALLET_ANSWERS_H

#include "base/answer.h"

extern const AnswerTable answer_wallet, answer_wallet_past, answer_wallets, answer_entry, answer_entries;
extern const AnswerTable answer_moved, answer_transfer, answer_frozen, answer_floor, answer_hold_placed,
    answer_captured, answer_voided, answer_refunded, answer_multi, answer_verdicts;
extern const AnswerTable answer_transaction, answer_hold, answer_verify;
extern const AnswerTable answer_wallet_line, answer_wallet_lines, answer_hold_line, answer_hold_lines, answer_transaction_line,
    answer_transaction_lines;

#endif
