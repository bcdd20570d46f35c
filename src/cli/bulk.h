/*
 * bulk.h - decide about all that match (--all): count, confirm, run, show the progress on a terminal.
 *
 * The operation is stored, so if this process ends, a monitor goes on with it.
 */
#ifndef CLI_BULK_H
#define CLI_BULK_H

#include "bus/bulk.h"
#include "cli/command.h"

/* plural: "commands". decided: "queued again", for "5 queued again". With --dry-run only the number is printed; without --yes nothing is done. ERR_CONFLICT:
 * some were refused. ERR_BUSY: some are locked by other transactions. */
must_check ErrorCode bulk_run(Call *call, const BulkNew *bulk, const char *plural, const char *decided, Error *reterr);

#endif
