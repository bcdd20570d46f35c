/*
 * handle.h - libcurl handles that are kept, each with at most one open connection, so that the next request to the same
 * origin needs no new one.
 *
 * Invariants
 *   1. A handle is used by one request at a time. Connections are not shared between handles: libcurl allows that to
 *      one thread at a time only.
 *   2. At most idle_max handles are kept while unused.
 * Threads: any. Ownership: handle_take() lends a handle, handle_give() takes it back; handles_done() frees those that
 * are kept.
 */
#ifndef CLIENT_HANDLE_H
#define CLIENT_HANDLE_H

#include <curl/curl.h>

#include "base/sync.h"
#include "client/client.h"
#include "client/target.h"

typedef struct {
    CURL *curl;
    char  host[TARGET_HOST_SIZE]; /* of its connection; "": none */
    int   port;
} Handle;

typedef struct {
    Mutex  mutex; /* guards all below */
    int    idle_max, count;
    Handle idle[CLIENT_IDLE_MAX]; /* the last one was used last */
} Handles;

void handles_init(Handles *handles, int idle_max);
void handles_done(Handles *handles);
/* One that was connected to this target, else a new one. No option is set. */
CURL *handle_take(Handles *handles, const Target *target);
/* When idle_max are kept, the one unused for longest is freed. */
void handle_give(Handles *handles, CURL *curl, const Target *target);

#endif
