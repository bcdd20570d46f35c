/*
 * finding.h - prints what a verification found.
 */
#ifndef CLI_FINDING_H
#define CLI_FINDING_H

#include "base/finding.h"
#include "cli/command.h"

/* A table of rows and problems. */
void findings_print(const Call *call, const Findings *findings);
/* ERR_CONFLICT with the number of findings, OK if there is none. */
must_check ErrorCode findings_verdict(const Findings *findings, Error *reterr);

#endif
