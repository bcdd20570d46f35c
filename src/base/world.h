/*
 * world.h - access to the operating system: time, locks, sleep, and waiting for a socket.
 *
 * In production every call goes to the kernel. A simulation installs its own World and decides who runs next and
 * what time it is, so pool, breaker and retry can be replayed from a seed. Installed once before threads start.
 */
#ifndef BASE_WORLD_H
#define BASE_WORLD_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/sync.h"

typedef enum { SOCKET_READ = 1, SOCKET_WRITE = 2 } SocketEvent;

typedef struct World {
    Mono (*mono)(void);
    Wall (*wall)(void);
    void (*sleep_until)(Mono at);
    void (*lock)(Mutex *mutex);
    void (*unlock)(Mutex *mutex);
    bool (*wait)(Cond *cond, Mutex *mutex, Mono until); /* false: until has passed */
    void (*wake)(Cond *cond, bool all);
    /* The events (SocketEvent bits) that are ready, 0: until has passed. */
    int (*socket_wait)(int fd, int events, Mono until);
    void (*socket_shut)(int fd); /* a thread that waits for it finds it closed */
    unsigned (*random)(void);
} World;

extern const World  world_real;
extern const World *world; /* &world_real until a test says otherwise */

static inline int world_socket_wait(int fd, int events, Deadline deadline)
{
    int ready;

    do
        ready = world->socket_wait(fd, events, deadline_look(deadline));
    while (!ready && deadline.cut && !deadline_passed(deadline));
    return ready;
}

static inline void world_socket_shut(int fd)
{
    world->socket_shut(fd);
}

/* For jitter only, never for secrets. */
static inline unsigned world_random(void)
{
    return world->random();
}

#endif
