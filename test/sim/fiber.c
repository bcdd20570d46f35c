/*
 * fiber.c - fibers on ucontext, the seeded scheduler, and the World that pool and friends run in.
 *
 * thread_start(), thread_join() and pthread_detach() are wrapped by the linker, so the janitor and the threads that
 * cancel statements are fibers as well.
 */
#include "test/sim/fiber.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/sync.h"
#include "base/world.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#define FIBERS_MAX 64
#define STACK_SIZE ((size_t)256 << 10)
#define TURNS_MAX  1000000 /* without time passing: a fiber spins */

typedef enum {
    FIBER_FREE,
    FIBER_READY,
    FIBER_SLEEPS,
    FIBER_LOCKS,
    FIBER_WAITS,
    FIBER_READS,
    FIBER_JOINS,
    FIBER_ENDED
} State;

typedef struct Fiber Fiber;
struct Fiber {
    ucontext_t   context;
    char        *stack;
    void        *fake_stack; /* the address sanitizer's */
    State        state;
    char         name[16];
    ThreadBody  *body;
    void        *argument;
    bool         detached;
    Mono         until;
    Mutex       *mutex;
    const Cond  *cond;
    bool         signalled;
    int          fd;
    const Fiber *joined;
};

static Fiber          fibers[FIBERS_MAX];
static int            fibers_used; /* fibers[0..fibers_used) may be in use */
static Fiber         *current;
static ucontext_t     outer;
static const void    *outer_stack;
static size_t         outer_size;
static Mono           now;
static long           turns; /* since time last moved */
static uint64_t       seed_given, random_state;
static const Outside *outside;

bool sim_tracing;

/* ---- chance ---- */

unsigned sim_random(void)
{
    uint64_t z = (random_state += 0x9E3779B97F4A7C15ULL);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return (unsigned)((z ^ (z >> 31)) >> 32);
}

int sim_between(int least, int most)
{
    return least + (int)(sim_random() % (unsigned)(most - least + 1));
}

bool sim_chance(int permille)
{
    return sim_between(1, 1000) <= permille;
}

/* ---- words ---- */

Mono sim_now(void)
{
    return now;
}

void sim_trace(const char *format, ...)
{
    va_list values;

    if (!sim_tracing)
        return;
    printf("%10.3f ms  %-10s ", (double)now.ns / 1e6, current ? current->name : "-");
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
}

void sim_fail(const char *format, ...)
{
    va_list values;

    fflush(stdout);
    fprintf(stderr, "sim: seed %llu, %.3f ms, in \"%s\": ", (unsigned long long)seed_given, (double)now.ns / 1e6,
            current ? current->name : "-");
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fprintf(stderr, "\nsim: to see it again: sim --seed %llu --trace\n", (unsigned long long)seed_given);
    _exit(1);
}

/* ---- scheduler ---- */

static bool can_run(const Fiber *fiber)
{
    switch (fiber->state) {
    case FIBER_READY:
        return true;
    case FIBER_SLEEPS:
        return !mono_before(now, fiber->until);
    case FIBER_LOCKS:
        return !fiber->mutex->owner;
    case FIBER_WAITS:
        return !fiber->mutex->owner && (fiber->signalled || !mono_before(now, fiber->until));
    case FIBER_READS:
        return !mono_before(now, fiber->until) || !mono_before(now, outside->socket_ready(fiber->fd));
    case FIBER_JOINS:
        return fiber->joined->state == FIBER_ENDED;
    case FIBER_FREE:
    case FIBER_ENDED:
        break;
    }
    return false;
}

/* When the clock alone lets it run. */
static Mono wakes_at(const Fiber *fiber)
{
    Mono ready;

    switch (fiber->state) {
    case FIBER_SLEEPS:
    case FIBER_WAITS:
        return fiber->until;
    case FIBER_READS:
        ready = outside->socket_ready(fiber->fd);
        return mono_before(ready, fiber->until) ? ready : fiber->until;
    case FIBER_READY:
    case FIBER_LOCKS:
    case FIBER_JOINS:
    case FIBER_FREE:
    case FIBER_ENDED:
        break;
    }
    return NEVER;
}

static void time_pass(void)
{
    Mono next = outside->next_event();

    for (int i = 0; i < fibers_used; i++)
        if (mono_before(wakes_at(&fibers[i]), next))
            next = wakes_at(&fibers[i]);
    if (next.ns == INT64_MAX) {
        for (int i = 0; i < fibers_used; i++)
            if (fibers[i].state != FIBER_FREE && fibers[i].state != FIBER_ENDED)
                fprintf(stderr, "sim: \"%s\" is stuck in state %d\n", fibers[i].name, (int)fibers[i].state);
        sim_fail("deadlock: nobody can run and nothing will happen");
    }
    if (mono_before(now, next))
        now = next, turns = 0;
    outside->tick();
}

/* NULL: all have ended. */
static Fiber *pick(void)
{
    for (;;) {
        Fiber *able[FIBERS_MAX];
        int    count = 0, alive = 0;

        for (int i = 0; i < fibers_used; i++) {
            alive += fibers[i].state != FIBER_FREE && fibers[i].state != FIBER_ENDED;
            if (can_run(&fibers[i]))
                able[count++] = &fibers[i];
        }
        if (count > 0)
            return able[count == 1 ? 0 : sim_between(0, count - 1)];
        if (alive == 0)
            return NULL;
        if (++turns > TURNS_MAX)
            sim_fail("nothing happens, again and again");
        time_pass();
    }
}

static void jump(ucontext_t *from, ucontext_t *to, void **fake_stack, const void *stack, size_t size)
{
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(fake_stack, stack, size);
#else
    (void)fake_stack, (void)stack, (void)size;
#endif
    swapcontext(from, to);
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(fake_stack ? *fake_stack : NULL, NULL, NULL);
#endif
}

/* Let the seed decide who goes on; returns when it is our turn again. */
static void turn(void)
{
    Fiber *self = current, *next;

    outside->look();
    if (++turns > TURNS_MAX)
        sim_fail("%d turns and no time has passed: a fiber spins", TURNS_MAX);
    next = pick();
    if (next && (next->state == FIBER_LOCKS || next->state == FIBER_WAITS))
        next->mutex->owner = next;
    if (next == self) {
        self->state = FIBER_READY;
        return;
    }
    current = next;
    if (next)
        next->state = FIBER_READY;
    /* A fiber that has ended gives its fake stack back: NULL. */
    void **fake_stack = self->state == FIBER_ENDED ? NULL : &self->fake_stack;
    if (next)
        jump(&self->context, &next->context, fake_stack, next->stack, STACK_SIZE);
    else
        jump(&self->context, &outer, fake_stack, outer_stack, outer_size);
}

static void block(State state)
{
    current->state = state;
    turn();
}

static void fiber_main(void)
{
#ifdef WITH_ASAN
    const void *stack;
    size_t      size;

    __sanitizer_finish_switch_fiber(NULL, &stack, &size);
    if (!outer_stack) /* the first fiber ever is entered from outside */
        outer_stack = stack, outer_size = size;
#endif
    current->body(current->argument);
    block(FIBER_ENDED);
}

static Fiber *fiber_start(const char *name, ThreadBody *body, void *argument)
{
    Fiber *fiber = fibers;

    while (fiber < fibers + FIBERS_MAX && fiber->state != FIBER_FREE &&
           !(fiber->state == FIBER_ENDED && fiber->detached && fiber != current))
        fiber++;
    if (fiber == fibers + FIBERS_MAX)
        sim_fail("more than %d threads", FIBERS_MAX);
    if (fiber >= fibers + fibers_used)
        fibers_used = (int)(fiber - fibers) + 1;
    char *stack = fiber->stack;
    if (!stack)
        stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED)
        sim_fail("no memory for a stack");
    *fiber = (Fiber){.stack = stack, .state = FIBER_READY, .body = body, .argument = argument};
    snprintf(fiber->name, sizeof fiber->name, "%s", name);
    getcontext(&fiber->context);
    fiber->context.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_SIZE};
    makecontext(&fiber->context, fiber_main, 0);
    return fiber;
}

/* ---- the World ---- */

static Mono sim_mono(void)
{
    return now;
}

static Wall sim_wall(void)
{
    return (Wall){now.ns / 1000};
}

static void sim_sleep_until(Mono at)
{
    current->until = at;
    block(FIBER_SLEEPS);
}

static void sim_lock(Mutex *mutex)
{
    if (mutex->owner == current)
        sim_fail("locks a mutex that it holds");
    current->mutex = mutex;
    block(FIBER_LOCKS);
}

static void sim_unlock(Mutex *mutex)
{
    if (mutex->owner != current)
        sim_fail("unlocks a mutex that it does not hold");
    mutex->owner = NULL;
    block(FIBER_READY);
}

static bool sim_wait(Cond *cond, Mutex *mutex, Mono until)
{
    if (mutex->owner != current)
        sim_fail("waits without holding the mutex");
    mutex->owner       = NULL;
    current->mutex     = mutex;
    current->cond      = cond;
    current->until     = until;
    current->signalled = sim_chance(10); /* POSIX allows it to wake up for no reason */
    block(FIBER_WAITS);
    current->cond = NULL;
    return current->signalled;
}

static void sim_wake(Cond *cond, bool all)
{
    Fiber *sleepers[FIBERS_MAX];
    int    count = 0;

    for (int i = 0; i < fibers_used; i++)
        if (fibers[i].state == FIBER_WAITS && fibers[i].cond == cond && !fibers[i].signalled)
            sleepers[count++] = &fibers[i];
    if (count > 0 && !all) {
        sleepers[0] = sleepers[sim_between(0, count - 1)];
        count       = 1;
    }
    for (int i = 0; i < count; i++)
        sleepers[i]->signalled = true;
}

static void sim_socket_shut(int fd)
{
    outside->socket_shut(fd);
}

static int sim_socket_wait(int fd, int events, Mono until)
{
    current->fd    = fd;
    current->until = until;
    block(FIBER_READS);
    return mono_before(now, outside->socket_ready(fd)) ? 0 : events;
}

static const World sim_world = {
    .mono        = sim_mono,
    .wall        = sim_wall,
    .sleep_until = sim_sleep_until,
    .lock        = sim_lock,
    .unlock      = sim_unlock,
    .wait        = sim_wait,
    .wake        = sim_wake,
    .socket_wait = sim_socket_wait,
    .socket_shut = sim_socket_shut,
    .random      = sim_random,
};

pthread_t __wrap_thread_start(const char *name, ThreadBody *body, void *context);
bool      __wrap_thread_try_start(const char *name, ThreadBody *body, void *context, pthread_t *ret_thread);
void      __wrap_thread_join(pthread_t thread);
int       __wrap_pthread_detach(pthread_t thread);

pthread_t __wrap_thread_start(const char *name, ThreadBody *body, void *context)
{
    return (pthread_t)(uintptr_t)fiber_start(name, body, context);
}

bool __wrap_thread_try_start(const char *name, ThreadBody *body, void *context, pthread_t *ret_thread)
{
    *ret_thread = __wrap_thread_start(name, body, context);
    return true;
}

void __wrap_thread_join(pthread_t thread)
{
    Fiber *fiber = (Fiber *)(uintptr_t)thread;

    current->joined = fiber;
    block(FIBER_JOINS);
    fiber->state = FIBER_FREE;
}

int __wrap_pthread_detach(pthread_t thread)
{
    ((Fiber *)(uintptr_t)thread)->detached = true;
    return 0;
}

void sim_run(uint64_t seed, const Outside *given, void *(*body)(void *), void *context)
{
    void *fake_stack = NULL;

    seed_given   = seed;
    random_state = seed * 0x9E3779B97F4A7C15ULL;
    now          = (Mono){NS_PER_S};
    turns        = 0;
    outside      = given;
    world        = &sim_world;
    for (int i = 0; i < FIBERS_MAX; i++)
        fibers[i].state = FIBER_FREE;
    fibers_used = 0;
    current     = fiber_start("main", body, context);
    jump(&outer, &current->context, &fake_stack, current->stack, STACK_SIZE);
    world = &world_real;
}
