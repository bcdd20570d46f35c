/*
 * bound_lookup.h - what ids stand for, for requests of keys that are bound; see bound.h. Each waits for the database. Threads: any.
 */
#ifndef API_BOUND_LOOKUP_H
#define API_BOUND_LOOKUP_H

#include "api/api.h"

/* The {id} of the path. ERR_NOT_FOUND: no command of this id is within the binding. ERR_CONFLICT names the domains if several have one. */
must_check ErrorCode bound_pin_command(Api *api, Request *request, bool is_process, Error *reterr);
/* ERR_NOT_FOUND: it is not within the binding; if it is_new, it need not exist, and ERR_KEY_REUSED: another client has used its id. */
must_check ErrorCode bound_check_batch(Api *api, Request *request, const char *id, bool is_new, Error *reterr);
/* The {txn_id} of the path. ERR_NOT_FOUND. */
must_check ErrorCode bound_check_transaction(Api *api, Request *request, Error *reterr);

#endif
