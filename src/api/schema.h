/*
 * schema.h - the shapes of all responses, one table per shape; see http/answer.h.
 */
#ifndef API_SCHEMA_H
#define API_SCHEMA_H

#include "http/answer.h"

extern const AnswerTable answer_health, answer_update, answer_openapi, answer_alerts;
extern const AnswerTable answer_letter, answer_letters;
extern const AnswerTable answer_sent, answer_sent_batch, answer_command, answer_commands, answer_decision,
    answer_policies;
extern const AnswerTable answer_batch, answer_claimed, answer_settled, answer_extended;
extern const AnswerTable answer_process_started, answer_process_defined, answer_process, answer_processes,
    answer_process_signaled, answer_process_decision, answer_process_moved, answer_activations, answer_reports,
    answer_activations_extended;
extern const AnswerTable answer_wallet, answer_wallet_past, answer_wallets, answer_entries;
extern const AnswerTable answer_moved, answer_transfer, answer_frozen, answer_floor, answer_hold_placed,
    answer_captured, answer_voided, answer_refunded, answer_multi, answer_verdicts;
extern const AnswerTable answer_leaderboard, answer_player_history, answer_matches;
extern const AnswerTable answer_transaction, answer_hold, answer_verify;

#endif
