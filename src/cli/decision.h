/*
 * decision.h - an operator's decision about one command or process: who decides, and what came of it.
 */
#ifndef CLI_DECISION_H
#define CLI_DECISION_H

#include "bus/command.h"
#include "cli/command.h"

/* Who decides: --operator, else the user of this process. */
const char *call_operator(const Call *call);
/* After a commit: notify the workers of the domains that a column `wake` joins, best effort. NULL: none. */
void wake_domains(const Call *call, const char *domains);
/* noun: "command" or "process". A refusal is an error. */
must_check ErrorCode decision_print(Call *call, const char *noun, const char *id, const Decision *decision,
                                    Error *reterr);

#endif
