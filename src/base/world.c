/*
 * world.c - the real World: the kernel's clocks, pthread locks, ppoll().
 */
#include "base/world.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

static void die(const char *what, int error)
{
    fprintf(stderr, "%s failed: %s\n", what, strerrordesc_np(error));
    abort();
}

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

static Mono real_mono(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (Mono){now.tv_sec * NS_PER_S + now.tv_nsec};
}

static Wall real_wall(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (Wall){now.tv_sec * 1000000LL + now.tv_nsec / 1000};
}

static void real_sleep_until(Mono at)
{
    struct timespec until = timespec_of(at.ns > 0 ? at.ns : 0);

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static void real_lock(Mutex *mutex)
{
    int rc = pthread_mutex_lock(&mutex->native);

    if (rc != 0)
        die("pthread_mutex_lock", rc);
}

static void real_unlock(Mutex *mutex)
{
    int rc = pthread_mutex_unlock(&mutex->native);

    if (rc != 0)
        die("pthread_mutex_unlock", rc);
}

static bool real_wait(Cond *cond, Mutex *mutex, Mono until)
{
    struct timespec at = timespec_of(until.ns > 0 ? until.ns : 0);
    int             rc;

    if (until.ns == INT64_MAX)
        rc = pthread_cond_wait(&cond->native, &mutex->native);
    else
        rc = pthread_cond_timedwait(&cond->native, &mutex->native, &at);
    if (rc != 0 && rc != ETIMEDOUT)
        die("pthread_cond_timedwait", rc);
    return rc == 0;
}

static void real_wake(Cond *cond, bool all)
{
    if (all)
        pthread_cond_broadcast(&cond->native);
    else
        pthread_cond_signal(&cond->native);
}

static int socket_events(short revents, int wanted)
{
    int ready = 0;

    if (revents & POLLIN)
        ready |= SOCKET_READ;
    if (revents & POLLOUT)
        ready |= SOCKET_WRITE;
    /* A broken or closed socket counts as ready: the caller's read or write returns the error. */
    if (revents & (POLLERR | POLLHUP | POLLNVAL))
        ready |= wanted;
    return ready & wanted;
}

static int real_socket_wait(int fd, int events, Mono until)
{
    struct pollfd poll_fd = {
        .fd     = fd,
        .events = (short)((events & SOCKET_READ ? POLLIN : 0) | (events & SOCKET_WRITE ? POLLOUT : 0)),
    };

    for (;;) {
        int64_t         now  = real_mono().ns;
        struct timespec wait = timespec_of(until.ns > now ? until.ns - now : 0); /* too late: still poll once */
        int             rc   = ppoll(&poll_fd, 1, until.ns == INT64_MAX ? NULL : &wait, NULL);

        if (rc > 0)
            return socket_events(poll_fd.revents, events);
        if (rc == 0)
            return 0;
        if (errno != EINTR)
            die("ppoll", errno);
    }
}

static void real_socket_shut(int fd)
{
    (void)shutdown(fd, SHUT_RDWR); /* it fails only where the peer did the same before */
}

/* xorshift64* with a state per thread: no lock, and no two threads jitter in step. */
static unsigned real_random(void)
{
    static _Thread_local uint64_t state;

    while (state == 0) { /* zero is the one seed the generator never leaves */
        if (getrandom(&state, sizeof state, 0) < 0 && errno != EINTR)
            die("getrandom", errno);
    }
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (unsigned)((state * 0x2545F4914F6CDD1DULL) >> 32);
}

const World world_real = {
    .mono        = real_mono,
    .wall        = real_wall,
    .sleep_until = real_sleep_until,
    .lock        = real_lock,
    .unlock      = real_unlock,
    .wait        = real_wait,
    .wake        = real_wake,
    .socket_wait = real_socket_wait,
    .socket_shut = real_socket_shut,
    .random      = real_random,
};

const World *world = &world_real;
