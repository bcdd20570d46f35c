/*
 * remote.h - commands over HTTP: with PAWL_URL, or --url, a command is a request to a daemon, and needs no rights on the database.
 *
 *     TRY(remote_send(call, &(RemoteRequest){CLIENT_GET, "/v1/commands/{}", {id}, .query = query}, &reply, reterr));
 *
 * A response's problem document becomes the error that the module would have given: its text, and by its type the exit code. So a command prints
 * and exits as it does against the database.
 *
 * Invariants
 *   1. The token is in the header Authorization only, never in a message. A redirect is not followed.
 *   2. A request is sent once.
 * Threads: the command's. Ownership: replies live in the arena that was given.
 */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "base/scan.h"
#include "base/value.h"
#include "cli/command.h"
#include "client/client.h"

#define REMOTE_BODY_BYTES_MAX SCAN_BYTES_MAX

/* A value NULL leaves it out; the list ends with a NULL name. */
typedef struct {
    const char *name, *value;
} RemoteParameter;

typedef struct {
    ClientMethod           method;
    const char            *path;     /* "/v1/domains/{}": each {} is the next of `names`, escaped */
    const char            *names[4]; /* in the path */
    const RemoteParameter *query;    /* NULL: none */
    const char            *body;     /* JSON; NULL: none */
    int                    wait_ms;  /* so much longer than other requests it may take */
} RemoteRequest;

/* The JSON of a 2xx response in *ret_body. The error of a problem document; ERR_UNAVAILABLE: nothing answers at the URL; ERR_USAGE: what answers there is
 * not pawl, or PAWL_URL is not set. */
must_check ErrorCode remote_send(Call *call, const RemoteRequest *request, Arena *arena, Value *ret_body,
                                 Error *reterr);

#endif
