/*
 * key.h - the key of a step: a UUID that follows from the process, its secret and the step.
 *
 * SQL functions, HTTP requests, wallet operations, commands and children are called with it, so that a step that runs again asks for the
 * same thing again. Without the secret no other client can compute a key and use it first. Threads: any.
 */
#ifndef PROCESS_KEY_H
#define PROCESS_KEY_H

#include "base/uuid.h"
#include "process/record.h"

typedef struct {
    const char *queue; /* the process's domain of the bus, "process:shop" */
    const char *process_id;
    const char *secret; /* of pawl.process */
} KeyOwner;

/* step: its kind does not matter; aside: of a step, how often it was set aside; of a compensation, which of these it undoes. ret_uuid has
 * UUID_TEXT_SIZE bytes. */
void step_key(const KeyOwner *owner, const RecordId *step, char *ret_uuid);
/* The id of the command or child that it sends for the number-th time, from 1. */
void step_command_id(const KeyOwner *owner, const RecordId *step, int number, char *ret_uuid);

#endif
