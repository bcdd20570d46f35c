/*
 * pipe.h - one direction of a proxied connection: a buffer between two sockets.
 *
 * Bytes are forwarded when they are clear (the inspector has let them pass) and due (their delay is over).
 */
#ifndef HARNESS_PIPE_H
#define HARNESS_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIPE_BYTES 65536

typedef struct {
    int     from, to;
    bool    is_inspected; /* bytes wait to be made clear; else they are so at once */
    char    bytes[PIPE_BYTES];
    size_t  used;
    size_t  clear;  /* at the front, may be forwarded */
    size_t  coming; /* not yet here, but clear when they arrive: the rest of a message already looked at */
    int64_t due_ms; /* not before this moment */
    bool    ended;  /* `from` has no more to say */
    bool    closed; /* and `to` was shut down */
} Pipe;

/* Milliseconds of the real clock, whatever World is installed. */
int64_t pipe_now_ms(void);
/* Both return false when the connection is broken. */
bool pipe_read(Pipe *pipe, int delay_ms);
bool pipe_write(Pipe *pipe, int slice_bytes);
bool pipe_is_due(const Pipe *pipe);
/* When one side has finished and all was forwarded, tell the other one. */
void pipe_pass_end(Pipe *pipe);
/* Forget bytes at the front. */
void pipe_drop(Pipe *pipe, size_t size);

#endif
