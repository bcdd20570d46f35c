/*
 * sync.c - locks and threads. What may block goes through the World; what only sets up does not.
 */
#include "base/sync.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/world.h"

#define THREAD_NAME_SIZE 16 /* the kernel's limit, with the NUL */

/* A lock that fails is a bug or a machine without memory; going on would be worse than a restart. */
static void must_succeed(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s failed: %s\n", what, strerrordesc_np(rc));
    abort();
}

void mutex_init(Mutex *mutex)
{
    *mutex = (Mutex){0};
    must_succeed(pthread_mutex_init(&mutex->native, NULL), "pthread_mutex_init");
}

void mutex_done(Mutex *mutex)
{
    must_succeed(pthread_mutex_destroy(&mutex->native), "pthread_mutex_destroy");
}

void mutex_lock(Mutex *mutex)
{
    world->lock(mutex);
}

void mutex_unlock(Mutex *mutex)
{
    world->unlock(mutex);
}

void cond_init(Cond *cond)
{
    pthread_condattr_t attributes;

    *cond = (Cond){0};
    must_succeed(pthread_condattr_init(&attributes), "pthread_condattr_init");
    /* Deadlines are monotonic: a wait must not end early, or never, because the wall clock was set. */
    must_succeed(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), "pthread_condattr_setclock");
    must_succeed(pthread_cond_init(&cond->native, &attributes), "pthread_cond_init");
    pthread_condattr_destroy(&attributes);
}

void cond_done(Cond *cond)
{
    must_succeed(pthread_cond_destroy(&cond->native), "pthread_cond_destroy");
}

bool cond_wait(Cond *cond, Mutex *mutex, Deadline deadline)
{
    return world->wait(cond, mutex, deadline_look(deadline)) || (deadline.cut && !deadline_passed(deadline));
}

void cond_signal(Cond *cond)
{
    world->wake(cond, /* all= */ false);
}

void cond_broadcast(Cond *cond)
{
    world->wake(cond, /* all= */ true);
}

bool thread_try_start(const char *name, ThreadBody *body, void *context, pthread_t *ret_thread)
{
    char     short_name[THREAD_NAME_SIZE];
    sigset_t all, before;
    int      code;

    snprintf(short_name, sizeof short_name, "%.*s", THREAD_NAME_SIZE - 1, name);
    /* A thread inherits the mask, so it is never open to a signal, not even for its first instruction. */
    sigfillset(&all);
    must_succeed(pthread_sigmask(SIG_SETMASK, &all, &before), "pthread_sigmask");
    code = FAULT_NAMED(name) ? EAGAIN : pthread_create(ret_thread, NULL, body, context);
    must_succeed(pthread_sigmask(SIG_SETMASK, &before, NULL), "pthread_sigmask");
    if (code == 0)
        pthread_setname_np(*ret_thread, short_name); /* for debuggers; a failure changes nothing */
    errno = code;
    return code == 0;
}

pthread_t thread_start(const char *name, ThreadBody *body, void *context)
{
    pthread_t thread;

    if (!thread_try_start(name, body, context, &thread)) {
        fprintf(
            stderr,
            "pawl: cannot start the thread \"%s\": %s; raise the limit of processes (ulimit -u) or of address space "
            "(ulimit -v)\n",
            name, strerrordesc_np(errno));
        _exit(1);
    }
    return thread;
}

void thread_join(pthread_t thread)
{
    must_succeed(pthread_join(thread, NULL), "pthread_join");
}
