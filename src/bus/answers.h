/*
 * answers.h - the shapes of responses about commands and dead letters; see base/answer.h.
 */
#ifndef BUS_ANSWERS_H
#define BUS_ANSWERS_H

#include "base/answer.h"

extern const AnswerTable answer_sent, answer_sent_batch, answer_command, answer_command_line, answer_commands,
    answer_decision, answer_policies, answer_pause, answer_pauses, answer_limits;
extern const AnswerTable answer_batch, answer_batch_line, answer_batches, answer_claimed, answer_claimed_item,
    answer_settled, answer_extended, answer_progress_written;
extern const AnswerTable answer_domain_line, answer_domain, answer_domains, answer_stats;
extern const AnswerTable answer_bulk, answer_bulk_begun;
extern const AnswerTable answer_letter, answer_letters;
extern const AnswerTable answer_reply_queue, answer_reply_queues, answer_reply_message, answer_replies,
    answer_acknowledged;

/* Parts of the responses about processes, which are commands. */
extern const AnswerTable answer_event, answer_progress;
extern const char *const sent_states[], *const lease_verdicts[]; /* by LeaseVerdict; NULL-terminated */

#endif
