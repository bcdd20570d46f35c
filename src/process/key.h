/*
 * key.h - the key of a step: a UUID that follows from the process, its secret and the name of the step's record.
 *
 * SQL functions, HTTP requests, wallet operations, commands and children are called with it, so that a step that runs again asks for the
 * same thing again. Without the secret no other client can compute a key and use it first. Threads: any.
 */
#ifndef PROCESS_KEY_H
#define PROCESS_KEY_H

#include "base/uuid.h"

typedef struct {
    const char *queue; /* the process's domain of the bus, "process:shop" */
    const char *process_id;
    const char *secret; /* of pawl.process; NULL: it was started before processes had one */
} KeyOwner;

/* ret_uuid has UUID_TEXT_SIZE bytes. */
void step_key(const KeyOwner *owner, const char *record, char *ret_uuid);
/* The id of the command or child that an attempt of a step sends. */
void step_command_id(const KeyOwner *owner, const char *record, int attempt, char *ret_uuid);

#endif
