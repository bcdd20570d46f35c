/*
 * doctor.h - checks of settings, server, schema and stored state, each with advice.
 *
 * A table of checks, run in order; one that cannot run because an earlier one failed is skipped. Nothing is changed.
 */
#ifndef APP_DOCTOR_H
#define APP_DOCTOR_H

#include <stdint.h>

#include "app/settings.h"
#include "base/arena.h"
#include "base/error.h"

typedef enum { FINDING_OK, FINDING_WARN, FINDING_FAIL, FINDING_SKIPPED } FindingState;

typedef struct {
    const char  *check; /* "clock" */
    FindingState state;
    const char  *text;   /* what was found */
    const char  *advice; /* what to do; NULL when there is nothing to do */
} Finding;

#define DOCTOR_FINDINGS_MAX 16

const char *finding_state_text(FindingState state);
#define DOCTOR_LONG_TX_MS 300000
/* long_tx_ms: from this age on an open transaction is worth a warning. Fills at most DOCTOR_FINDINGS_MAX findings and
 * says how many. The first that failed decides the exit code: OK, or what its check returned. */
ErrorCode doctor_run(const SettingsGiven *given, int64_t long_tx_ms, Arena *arena, Finding *ret_list, int *ret_count,
                     Error *reterr);

#endif
