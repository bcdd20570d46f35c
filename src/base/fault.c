/*
 * fault.c - which point fails next. One thing is armed at a time: a new arm forgets the one before.
 *
 * The lock is a plain one and not the World's: a simulation must run the same with and without fault points.
 */
#include "base/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_SIZE 64

typedef struct {
    char        name[NAME_SIZE]; /* "": any point; "process.*": those that begin so */
    long        skip;            /* passes that go well before the first failure */
    long        count;           /* failures still to come; 0: disarmed */
    bool        kill;
    const char *last; /* the point that failed last; NULL: none since the last arm */
} FaultPlan;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards plan */
static FaultPlan       plan;
static pthread_once_t  environment_once = PTHREAD_ONCE_INIT;

static void plan_set(FaultPlan wish)
{
    pthread_mutex_lock(&mutex);
    plan = wish;
    pthread_mutex_unlock(&mutex);
}

/* A misspelled name must fail: otherwise the test would pass without a fault. */
static void die_of(const char *value)
{
    fprintf(stderr, "PAWL_FAULT must be name:fail or name:kill, then maybe :count or :count:skip, got \"%s\"\n", value);
    abort();
}

static void environment_read(void)
{
    const char *value = getenv("PAWL_FAULT");
    char        action[8];
    int         ends[] = {0, 0, 0, 0, 0}; /* where so many fields end */
    FaultPlan   wish   = {.count = 1};

    if (!value || !*value)
        return;
    int fields = sscanf(value, "%63[^:]:%7[^:]%n:%ld%n:%ld%n", wish.name, action, &ends[2], &wish.count, &ends[3],
                        &wish.skip, &ends[4]);

    if (fields < 2 || value[ends[fields]] || wish.count < 1 || wish.skip < 0)
        die_of(value);
    wish.kill = strcmp(action, "kill") == 0;
    if (!wish.kill && strcmp(action, "fail") != 0)
        die_of(value);
    plan_set(wish);
}

static void arm(FaultPlan wish)
{
    pthread_once(&environment_once, environment_read); /* first, so that it cannot undo this arm later */
    plan_set(wish);
}

/* Under the mutex. */
static bool plan_is_about(const char *name)
{
    size_t size = strlen(plan.name);

    if (size > 0 && plan.name[size - 1] == '*')
        return strncmp(plan.name, name, size - 1) == 0;
    return size == 0 || strcmp(plan.name, name) == 0;
}

/* Under the mutex. */
static bool plan_pass(const char *name)
{
    if (plan.count == 0 || !plan_is_about(name))
        return false;
    if (plan.skip > 0) {
        plan.skip--;
        return false;
    }
    plan.count--;
    plan.last = name;
    return true;
}

static bool hit_point(const char *name, bool is_counted)
{
    pthread_once(&environment_once, environment_read);
    pthread_mutex_lock(&mutex);
    bool hit    = (is_counted || *plan.name) && plan_pass(name);
    bool deadly = hit && plan.kill;
    pthread_mutex_unlock(&mutex);
    if (deadly)
        kill(getpid(), SIGKILL);
    return hit;
}

bool fault_hit(const char *name)
{
    return hit_point(name, /* is_counted= */ true);
}

bool fault_hit_named(const char *name)
{
    return hit_point(name, /* is_counted= */ false);
}

void fault_arm_nth(long n)
{
    arm((FaultPlan){.skip = n - 1, .count = n > 0 ? 1 : 0});
}

void fault_arm(const char *name, long count)
{
    FaultPlan wish = {.count = count > 0 ? count : 0};

    if ((size_t)snprintf(wish.name, sizeof wish.name, "%s", name) >= sizeof wish.name)
        abort();
    arm(wish);
}

bool fault_was_hit(void)
{
    return fault_last() != NULL;
}

const char *fault_last(void)
{
    pthread_mutex_lock(&mutex);
    const char *last = plan.last;
    pthread_mutex_unlock(&mutex);
    return last;
}
