/*
 * peer_internal.h - what the files of a connection share.
 *
 *   peer.c        the connection: its life, its events, its states
 *   peer_read.c   bytes in: a request's head and body, until it is with its handler
 *   peer_write.c  bytes out: the response
 *
 * Threads: the loop's.
 */
#ifndef HTTP_PEER_INTERNAL_H
#define HTTP_PEER_INTERNAL_H

#include "http/server_internal.h"

/* STEP_CLOSED: the connection was closed and freed. */
typedef enum { STEP_ON, STEP_PAUSE, STEP_CLOSED } Step;
typedef enum { FILL_SOME, FILL_NONE, FILL_END, FILL_BROKEN } Fill;

/* peer.c */
size_t peer_space(const Server *server); /* bytes of a connection's buffer */
/* Queue the request for an executor. ERR_BUSY: too many wait already. */
must_check ErrorCode peer_queue(Peer *peer, Error *reterr);
Step                 peer_next(Peer *peer); /* the response was sent */

/* peer_read.c */
void peer_request_begin(Peer *peer);
Fill peer_fill(Peer *peer); /* read what has arrived into the buffer */
Step peer_step_head(Peer *peer);
Step peer_take_body(Peer *peer); /* the token is good: the body may come */
Step peer_step_body(Peer *peer);
void peer_body_end(Peer *peer);  /* its body no longer takes memory */
void peer_place_end(Peer *peer); /* it no longer counts for its key */
bool head_has_body(const Head *head);

/* peer_write.c */
void peer_name_request(Peer *peer);
Step peer_answer(Peer *peer); /* the response is filled: from here on it is being written */
Step peer_fail(Peer *peer, const Error *error, bool close);
Step peer_step_write(Peer *peer);
void peer_unsent_end(Peer *peer); /* its response no longer takes memory */
bool peer_takes(Peer *peer);      /* has the client taken enough of the response since its time began? */

#endif
