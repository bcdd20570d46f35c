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

#include "base/answer.h"
#include "base/reader.h"
#include "base/scan.h"
#include "base/value.h"
#include "bus/command.h"
#include "cli/command.h"
#include "client/client.h"

#define REMOTE_BODY_BYTES_MAX SCAN_BYTES_MAX

/* A value NULL leaves it out; the list ends with a NULL name. */
typedef struct {
    const char *name, *value;
} RemoteParameter;

/* A value as text, for a parameter. */
const char *remote_number(Arena *arena, int64_t value); /* NULL: 0, which is left out */

typedef struct {
    ClientMethod           method;
    const char            *path;     /* "/v1/domains/{}": each {} is the next of `names`, escaped */
    const char            *names[4]; /* in the path */
    const RemoteParameter *query;    /* NULL: none */
    const char            *body;     /* JSON; NULL: none */
    const char            *key;      /* in the header Idempotency-Key; NULL: none */
    int                    wait_ms;  /* so much longer than other requests it may take */
} RemoteRequest;

typedef struct {
    Value          body;
    ClientResponse response;    /* for client_header() */
    bool           is_replayed; /* the request had been answered before */
} RemoteReply;

/* The error of a problem document, with the document in *ret_reply; ERR_UNAVAILABLE: nothing answers at the URL; ERR_USAGE: what answers there is not pawl. */
must_check ErrorCode remote_send(Call *call, const RemoteRequest *request, Arena *arena, RemoteReply *ret_reply,
                                 Error *reterr);
/* The response as it is, with a NUL behind it. */
must_check ErrorCode remote_json(Call *call, const RemoteRequest *request, Arena *arena, const char **ret_json,
                                 Error *reterr);
/* A GET of one object, and of a page of `items`: rows as writer_row() writes them by the table. ret_next NULL: the list has no pages; 0: this is the last. */
must_check ErrorCode remote_row(Call *call, const RemoteRequest *request, const AnswerTable *table, Arena *arena,
                                void *row, Error *reterr);
must_check ErrorCode remote_rows(Call *call, const RemoteRequest *request, const AnswerTable *table, size_t row_size,
                                 Arena *arena, void **ret_rows, int *ret_count, int64_t *ret_next, Error *reterr);
/* A send: the id under this name, and whether it is new, into the item. *ret_note: what the daemon notes about it; NULL: nothing. */
must_check ErrorCode remote_put(Call *call, const RemoteRequest *request, const char *id, SendItem *item,
                                const char **ret_note, Error *reterr);
/* A decision about one command or process. */
must_check ErrorCode remote_decide(Call *call, const RemoteRequest *request, Decision *ret_made, Error *reterr);
/* A body as the daemon reads it by the same table. */
const char *remote_body(Arena *arena, const FieldTable *table, const void *request);

#endif
