/*
 * process_name.h - the process that the arguments of a command name: ID and --domain.
 */
#ifndef CLI_PROCESS_NAME_H
#define CLI_PROCESS_NAME_H

#include "cli/command.h"
#include "process/process.h"

/* ret_id has UUID_TEXT_SIZE bytes; *ret_name borrows it. */
must_check ErrorCode process_name_read(const Call *call, char *ret_id, ProcessName *ret_name, Error *reterr);

#endif
