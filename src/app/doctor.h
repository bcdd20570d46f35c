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

typedef enum { CHECK_OK, CHECK_WARN, CHECK_FAIL, CHECK_SKIPPED } CheckState;

typedef struct {
    const char *check; /* "clock" */
    CheckState  state;
    const char *text;   /* what was found */
    const char *advice; /* what to do; NULL when there is nothing to do */
} CheckResult;

#define DOCTOR_CHECKS_MAX 24

const char *check_state_text(CheckState state);
#define DOCTOR_LONG_TX_MS 300000
/* long_tx_ms: from this age on an open transaction is worth a warning. Fills at most DOCTOR_CHECKS_MAX results and
 * says how many. The first that failed decides the exit code: OK, or what its check returned. */
ErrorCode doctor_run(const SettingsGiven *given, int64_t long_tx_ms, Arena *arena, CheckResult *ret_list,
                     int *ret_count, Error *reterr);

#endif
