/*
 * pipe.c - reads what fits, writes what may go.
 */
#include "test/harness/pipe.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS 1 /* between two slices */

int64_t pipe_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

bool pipe_read(Pipe *pipe, int delay_ms)
{
    ssize_t got = read(pipe->from, pipe->bytes + pipe->used, PIPE_BYTES - pipe->used);

    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0) {
        pipe->ended = true;
        return true;
    }
    if (pipe->used == 0)
        pipe->due_ms = pipe_now_ms() + delay_ms;
    size_t clear = pipe->coming < (size_t)got ? pipe->coming : (size_t)got;
    pipe->coming -= clear;
    pipe->used += (size_t)got;
    pipe->clear = pipe->is_inspected ? pipe->clear + clear : pipe->used;
    return true;
}

bool pipe_write(Pipe *pipe, int slice_bytes)
{
    size_t size = pipe->clear;

    if (slice_bytes && size > (size_t)slice_bytes)
        size = (size_t)slice_bytes;
    ssize_t put = send(pipe->to, pipe->bytes, size, MSG_NOSIGNAL);
    if (put < 0)
        return errno == EAGAIN || errno == EINTR;
    pipe->clear -= (size_t)put;
    pipe_drop(pipe, (size_t)put);
    if (slice_bytes)
        pipe->due_ms = pipe_now_ms() + SLICE_MS;
    return true;
}

bool pipe_is_due(const Pipe *pipe)
{
    return pipe->clear && pipe->due_ms <= pipe_now_ms();
}

void pipe_pass_end(Pipe *pipe)
{
    if (!pipe->ended || pipe->clear || pipe->closed)
        return;
    shutdown(pipe->to, SHUT_WR);
    pipe->closed = true;
}

void pipe_drop(Pipe *pipe, size_t size)
{
    pipe->used -= size;
    memmove(pipe->bytes, pipe->bytes + size, pipe->used);
}
