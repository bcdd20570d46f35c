/*
 * fixture.h - a server with routes that show what the module does, and a gate that holds handlers back.
 *
 *   GET  /live          at once           GET  /echo/{name}?limit=   the capture and the parameter
 *   POST /json          the body, back    GET  /echo/literal         wins over the capture
 *   POST /wait          waits for the gate GET /secret/{name}        tokens
 *   POST /secret-json   token and body    POST /secret-size          the size of a large one
 *   GET  /internal      fails             GET  /large                an answer larger than the socket's buffer
 *   POST /word          a word in the head, and at most 10 bytes of body
 *   GET  /assets/{path}  app.js with a gzip variant, a.css without, large.bin
 *   POST /secret-rest   as /rest, with a token; /secret-rest-freed frees its body before
 *   POST /rest          rests until the gate opens, then tells the size of its body; fails when that is "fail"
 */
#ifndef UNIT_HTTP_FIXTURE_H
#define UNIT_HTTP_FIXTURE_H

#include <stdatomic.h>

#include "base/sync.h"
#include "http/server.h"

#define RESTING_MAX 128

typedef struct {
    Server     *server;
    int         port;
    Mutex       mutex;
    Cond        opened;
    bool        open;                 /* guarded by mutex */
    atomic_int  waiting;              /* handlers at the gate */
    Request    *resting[RESTING_MAX]; /* guarded by mutex: to be woken when the gate opens */
    int         resting_count;
    TokenCheck *asked[RESTING_MAX]; /* guarded by mutex: lookups of "late", which end when the gate opens */
    int         asked_count;
    atomic_int  asking;
    atomic_int  ended;                        /* suspended requests that were answered */
    atomic_int  gone, delivered, undelivered; /* of /watch */
    atomic_int  written;                      /* handlers that took a body: what a malformed request must never reach */
} Fixture;

#define LARGE_BYTES ((size_t)4 << 20)

/* Of app.js; not what it would be when unpacked, so that tests can tell them apart. */
#define ASSET_PLAIN "console.log('hello')"
#define ASSET_GZIP  "\x1f\x8b\x08\0gzip"

/* options: listen, routes, app and auth are filled in. */
void fixture_init(Fixture *fixture, ServerOptions options);
void fixture_open_gate(Fixture *fixture);
void fixture_done(Fixture *fixture); /* opens the gate, frees the server */
/* Wait until *value is wanted; false: not within CLIENT_WAIT_MS. */
bool fixture_wait_for(atomic_int *value, int wanted);
bool fixture_wait_waiting(Fixture *fixture, int wanted);
bool fixture_wait_in_flight(Fixture *fixture, int wanted);

#define scoped_fixture __attribute__((cleanup(fixture_done)))

#endif
