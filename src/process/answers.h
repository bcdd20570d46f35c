/*
 * answers.h - the shapes of responses about processes; see base/answer.h.
 */
#ifndef PROCESS_ANSWERS_H
#define PROCESS_ANSWERS_H

#include "base/answer.h"

extern const AnswerTable answer_process_started, answer_process_started_batch, answer_process_defined,
    answer_process_versions, answer_process, answer_process_line, answer_processes, answer_process_signaled,
    answer_process_decision, answer_process_moved, answer_activations, answer_reports, answer_activations_extended,
    answer_activations_progress;

#endif
