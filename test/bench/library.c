/*
 * library.c - what report.py measures of programs that use libpawl: it is one.
 *
 *     library_bench URL send COUNT CLIENTS [DELAY_MS]       arrays of 1,000 from each client
 *     library_bench URL handle COUNT CONCURRENCY            commands that are queued, by a handler that does nothing
 *     library_bench URL latency RATE SECONDS                send and handle in this program
 *     library_bench URL pace RATE SECONDS                   send only, for
 *     library_bench URL receive COUNT                       handle what pace sends; prints "ready" first
 *     library_bench URL processes COUNT CLIENTS             each client starts a process of three steps when one has ended
 *     library_bench URL resume RATE SECONDS                 responses to processes that wait for one
 *
 * Prints one line of JSON: rates in items per second, times as percentiles in ms. The first WARM items of an offered rate do not count.
 * A payload is [number, the sender's monotonic clock], which all processes of a machine share.
 */
#include <pawl/pawl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DOMAIN      "bench"
#define BATCH       1000
#define CLIENTS_MAX 1000
#define WARM        20
#define TIMES_MAX   1000000
#define TIMEOUT_MS  60000
#define LOOK_NS     50000
#define NS_PER_MS   1000000LL
#define NS_PER_S    1000000000LL
#define ID_SIZE     sizeof(((PawlSent *)0)->id)

static Pawl *pawl;

static void need(PawlStatus status, const PawlError *error)
{
    if (status == PAWL_OK)
        return;
    fprintf(stderr, "library_bench: %s\n", error->text);
    exit(1);
}

/* ---- time ---- */

static long long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void sleep_until(long long ns)
{
    struct timespec then = {.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) != 0)
        ;
}

static void look_pause(void)
{
    sleep_until(now_ns() + LOOK_NS);
}

typedef struct {
    pthread_mutex_t mutex; /* guards the rest */
    int             count;
    long long       ns[TIMES_MAX];
} Times;

/* Of the item with this number: not of the first ones, which open connections and prepare statements. */
static void times_add(Times *times, long long number, long long ns)
{
    pthread_mutex_lock(&times->mutex);
    if (number >= WARM && times->count < TIMES_MAX)
        times->ns[times->count++] = ns;
    pthread_mutex_unlock(&times->mutex);
}

static int ns_compare(const void *left, const void *right)
{
    long long a = *(const long long *)left, b = *(const long long *)right;

    return (a > b) - (a < b);
}

static void times_print(Times *times, const char *name, const char *before)
{
    qsort(times->ns, (size_t)times->count, sizeof *times->ns, ns_compare);
    for (int i = 0; i < 3; i++) {
        int percent = (int[]){50, 90, 99}[i], at = times->count * percent / 100;

        printf("%s\"%s_p%d\": %.3f", i ? ", " : before, name, percent,
               times->count ? (double)times->ns[at] / NS_PER_MS : 0);
    }
}

static Times sends   = {.mutex = PTHREAD_MUTEX_INITIALIZER}; /* calls that send a command or a response */
static Times arrived = {.mutex = PTHREAD_MUTEX_INITIALIZER}; /* from before the call until a handler has it */

static void rate_print(long long count, long long ns)
{
    printf("{\"per_s\": %.1f}\n", (double)count * NS_PER_S / (double)ns);
}

/* ---- the worker of this program ---- */

typedef struct {
    PawlWorker *worker;
    pthread_t   thread;
} Running;

static void *worker_run(void *context)
{
    PawlError error;

    need(pawl_worker_run(context, &error), &error);
    return NULL;
}

static Running running_start(const PawlWork *options)
{
    Running   running;
    PawlError error;

    need(pawl_worker_open(pawl, options, &running.worker, &error), &error);
    pthread_create(&running.thread, NULL, worker_run, running.worker);
    return running;
}

static long long completed(const Running *running)
{
    PawlCounts counts;

    pawl_worker_counts(running->worker, &counts);
    if (counts.retried + counts.failed + counts.rejected + counts.canceled + counts.lost > 0) {
        fprintf(stderr, "library_bench: not all were completed\n");
        exit(1);
    }
    return counts.completed;
}

static void running_wait(const Running *running, long long count)
{
    while (completed(running) < count)
        look_pause();
}

static void running_end(Running *running)
{
    pawl_worker_stop(running->worker);
    pthread_join(running->thread, NULL);
    pawl_worker_close(running->worker);
}

/* ---- threads that share a number of items ---- */

typedef struct {
    long long    count, delay_ms;
    atomic_llong taken;
    sem_t        ended; /* one of them */
} Share;

/* Up to `most` of what is left. */
static long long share_take(Share *share, long long most)
{
    long long first = atomic_fetch_add(&share->taken, most);

    return first >= share->count ? 0 : first + most > share->count ? share->count - first : most;
}

static void threads_start(pthread_t *threads, int count, void *(*run)(void *), Share *share)
{
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, run, share);
}

static void threads_join(const pthread_t *threads, int count)
{
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* ---- send, handle ---- */

static void *batches_send(void *context)
{
    static const char payload[] = "{\"to\": \"ann\", \"amount\": 100}";
    Share            *share     = context;
    PawlCommand      *commands  = calloc(BATCH, sizeof *commands);
    PawlError         error;

    for (int i = 0; i < BATCH; i++)
        commands[i] = (PawlCommand){.domain = DOMAIN, .type = "noop", .payload = payload, .delay_ms = share->delay_ms};
    for (long long count; (count = share_take(share, BATCH)) > 0;)
        need(pawl_send_many(pawl, commands, (int)count, TIMEOUT_MS, NULL, &error), &error);
    free(commands);
    return NULL;
}

static void mode_send(long long count, int clients, long long delay_ms)
{
    pthread_t threads[CLIENTS_MAX];
    Share     share = {.count = count, .delay_ms = delay_ms};
    long long start = now_ns();

    threads_start(threads, clients, batches_send, &share);
    threads_join(threads, clients);
    rate_print(count, now_ns() - start);
}

static PawlOutcome complete(PawlJob *job, void *context)
{
    (void)job;
    (void)context;
    return PAWL_JOB_COMPLETE;
}

static void mode_handle(long long count, int concurrency)
{
    PawlWork  options = {.domain = DOMAIN, .handler = complete, .concurrency = concurrency};
    long long start   = now_ns(), ns;
    Running   running = running_start(&options);

    running_wait(&running, count);
    ns = now_ns() - start;
    running_end(&running);
    rate_print(count, ns);
}

/* ---- from the send to the start of the handler ---- */

static void arrived_note(const char *payload)
{
    long long now = now_ns(), number, ns;

    if (sscanf(payload, "[%lld, %lld]", &number, &ns) == 2)
        times_add(&arrived, number, now - ns);
}

static PawlOutcome note(PawlJob *job, void *context)
{
    (void)context;
    arrived_note(job->payload);
    return PAWL_JOB_COMPLETE;
}

static void paced_send(int rate, int seconds)
{
    long long start = now_ns();

    for (long long i = 0; i < (long long)rate * seconds; i++) {
        char        payload[64];
        PawlCommand command = {.domain = DOMAIN, .type = "note", .payload = payload};
        PawlError   error;
        long long   begin;

        sleep_until(start + i * NS_PER_S / rate);
        begin = now_ns();
        snprintf(payload, sizeof payload, "[%lld, %lld]", i, begin);
        need(pawl_send(pawl, &command, TIMEOUT_MS, NULL, &error), &error);
        times_add(&sends, i, now_ns() - begin);
    }
}

static void mode_latency(int rate, int seconds)
{
    PawlWork options = {.domain = DOMAIN, .handler = note};
    Running  running = running_start(&options);

    paced_send(rate, seconds);
    running_wait(&running, (long long)rate * seconds);
    running_end(&running);
    times_print(&sends, "send", "{");
    times_print(&arrived, "start", ", ");
    puts("}");
}

static void mode_pace(int rate, int seconds)
{
    paced_send(rate, seconds);
    times_print(&sends, "send", "{");
    puts("}");
}

static void mode_receive(long long count)
{
    PawlWork options = {.domain = DOMAIN, .handler = note};
    Running  running = running_start(&options);

    puts("ready");
    fflush(stdout);
    running_wait(&running, count);
    running_end(&running);
    times_print(&arrived, "start", "{");
    puts("}");
}

/* ---- processes ---- */

static const char *const process_types[] = {"bench", NULL};

static PawlFlow three_steps(PawlRun *run, void *context)
{
    static const char *const names[] = {"first", "second", "third"};

    (void)context;
    for (int i = 0; i < 3; i++)
        PAWL_FLOW(pawl_run_step(run, &(PawlStep){.name = names[i], .body = complete}, NULL));
    return PAWL_FLOW_NEXT;
}

static void *processes_start(void *context)
{
    Share    *share = context;
    PawlStart start = {.type = process_types[0], .domain = DOMAIN};
    PawlError error;

    while (share_take(share, 1)) {
        need(pawl_process_start(pawl, &start, TIMEOUT_MS, NULL, &error), &error);
        while (sem_wait(&share->ended) != 0)
            ;
    }
    return NULL;
}

/* As many are in progress as there are clients: a client starts the next one when any has ended, which the worker's counts tell. */
static void mode_processes(long long count, int clients)
{
    PawlWork  options = {.domain = DOMAIN, .types = process_types, .process = three_steps, .concurrency = clients};
    Running   running = running_start(&options);
    Share     share   = {.count = count};
    pthread_t threads[CLIENTS_MAX];
    long long start = now_ns(), ns;

    sem_init(&share.ended, 0, 0);
    threads_start(threads, clients, processes_start, &share);
    for (long long seen = 0; seen < count; look_pause())
        for (long long done = completed(&running); seen < done; seen++)
            sem_post(&share.ended);
    ns = now_ns() - start;
    threads_join(threads, clients);
    running_end(&running);
    rate_print(count, ns);
}

/* The response is the sender's clock, and so is the result of the wait. */
static PawlFlow waits(PawlRun *run, void *context)
{
    const char *response = NULL;

    (void)context;
    PAWL_FLOW(pawl_run_wait(run, &(PawlWait){.name = "go"}, &response));
    arrived_note(response);
    return PAWL_FLOW_NEXT;
}

/* Until all of them wait: each was claimed, and none runs. */
static void waits_await(const Running *running, long long count)
{
    PawlCounts counts;

    do {
        look_pause();
        pawl_worker_counts(running->worker, &counts);
    } while (counts.claimed < count || counts.running + counts.waiting > 0);
}

static void waiting_start(char (*ids)[ID_SIZE], long long count)
{
    PawlError error;

    for (long long i = 0; i < count; i++) {
        PawlSent sent;

        need(pawl_process_start(pawl, &(PawlStart){.type = process_types[0], .domain = DOMAIN}, TIMEOUT_MS, &sent,
                                &error),
             &error);
        memcpy(ids[i], sent.id, ID_SIZE);
    }
}

static void paced_respond(char (*ids)[ID_SIZE], int rate, int seconds)
{
    long long start = now_ns();

    for (long long i = 0; i < (long long)rate * seconds; i++) {
        char       payload[64];
        PawlSignal response = {.process_id = ids[i], .domain = DOMAIN, .name = "go", .payload = payload, .key = "1"};
        PawlError  error;
        long long  begin;

        sleep_until(start + i * NS_PER_S / rate);
        begin = now_ns();
        snprintf(payload, sizeof payload, "[%lld, %lld]", i, begin);
        need(pawl_process_signal(pawl, &response, TIMEOUT_MS, NULL, &error), &error);
        times_add(&sends, i, now_ns() - begin);
    }
}

static void mode_resume(int rate, int seconds)
{
    PawlWork  options   = {.domain = DOMAIN, .types = process_types, .process = waits};
    long long count     = (long long)rate * seconds;
    char(*ids)[ID_SIZE] = calloc((size_t)count, sizeof *ids);
    Running running     = running_start(&options);

    waiting_start(ids, count);
    waits_await(&running, count);
    paced_respond(ids, rate, seconds);
    running_wait(&running, count);
    running_end(&running);
    free(ids);
    times_print(&sends, "response", "{");
    times_print(&arrived, "run", ", ");
    puts("}");
}

int main(int argc, char **argv)
{
    const char *mode  = argc > 3 ? argv[2] : "";
    long long   first = argc > 3 ? atoll(argv[3]) : 0, second = argc > 4 ? atoll(argv[4]) : 0;
    PawlError   error;

    if (first < 1 || first > TIMES_MAX * 10 || (second < 1 && strcmp(mode, "receive") != 0) || second > CLIENTS_MAX) {
        fprintf(stderr, "usage: library_bench URL MODE NUMBER NUMBER; see library.c\n");
        return 2;
    }
    need(pawl_open(argv[1], &pawl, &error), &error);
    if (strcmp(mode, "send") == 0)
        mode_send(first, (int)second, argc > 5 ? atoll(argv[5]) : 0);
    else if (strcmp(mode, "handle") == 0)
        mode_handle(first, (int)second);
    else if (strcmp(mode, "latency") == 0)
        mode_latency((int)first, (int)second);
    else if (strcmp(mode, "pace") == 0)
        mode_pace((int)first, (int)second);
    else if (strcmp(mode, "receive") == 0)
        mode_receive(first);
    else if (strcmp(mode, "processes") == 0)
        mode_processes(first, (int)second);
    else if (strcmp(mode, "resume") == 0)
        mode_resume((int)first, (int)second);
    else
        return 2;
    pawl_close(pawl);
    return 0;
}
