/*
 * library_bus.c - a program that uses the bus through libpawl in every way that the test "library" needs.
 *
 *     library_bus URL SCENARIO        prints what each call returned, one line each; the test reads the database
 */
#include <pawl/pawl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define THE_ID       "0198c0de-0000-7000-8000-00000000000a"
#define OTHER_ID     "0198c0de-0000-7000-8000-00000000000b"
#define STORM_EACH   50
#define STORM_COUNT  4
#define KEY_COUNT    5
#define KEY_EACH     40

static Pawl *pawl;

static void need(PawlStatus status, const PawlError *error)
{
    if (status == PAWL_OK)
        return;
    printf("status %d: %s\n", (int)status, error->text);
    exit(1);
}

static void sent_print(const char *label, PawlStatus status, const PawlSent *sent)
{
    printf("%s: %d %s %s %s\n", label, (int)status, sent->is_new ? "new" : "known", sent->status ? sent->status : "-",
           sent->error.text);
}

/* ---- sending ---- */

static void one_send(const char *label, PawlCommand command)
{
    PawlSent   sent;
    PawlError  error;
    PawlStatus status = pawl_send(pawl, &command, 0, &sent, &error);

    if (status != error.status || status != sent.error.status || strcmp(error.text, sent.error.text) != 0)
        printf("%s: the two errors differ\n", label);
    sent_print(label, status, &sent);
}

static void scenario_send(void)
{
    PawlCommand full  = {.domain         = "shop",
                         .type           = "charge",
                         .payload        = "{\"order\": 7}",
                         .command_id     = THE_ID,
                         .delay_ms       = 3600000,
                         .priority       = 9,
                         .max_attempts   = 5,
                         .reply_to       = "answers",
                         .correlation_id = "order-7",
                         .actor          = "ann"};
    PawlCommand other = full;

    one_send("full", full);
    one_send("again", full);
    other.payload = "{\"order\": 8}";
    one_send("other payload", other);
    one_send("defaults", (PawlCommand){.domain = "shop", .type = "plain"});
    one_send("lowest", (PawlCommand){.domain = "shop", .type = "lowest", .priority = PAWL_PRIORITY_LOWEST});
    one_send("no domain", (PawlCommand){.type = "charge"});
    one_send("bad json", (PawlCommand){.domain = "shop", .type = "charge", .payload = "{\"order\": 7"});
    one_send("bad priority", (PawlCommand){.domain = "shop", .type = "charge", .priority = 10});
    one_send("bad id", (PawlCommand){.domain = "shop", .type = "charge", .command_id = "seven"});
    one_send("no batch", (PawlCommand){.domain = "shop", .type = "charge", .batch_id = OTHER_ID});
}

static void scenario_many(void)
{
    const PawlCommand list[] = {
        {.domain = "shop",  .type = "a", .command_id = THE_ID },
        {.domain = "shop",  .type = "b", .payload = "nothing" },
        {.domain = "shop",  .type = "c", .payload = "1e999999"},
        {.domain = "shop",  .type = "d", .command_id = THE_ID },
        {.domain = "other", .type = "e", .payload = "[1, 2]"  },
        {.domain = "shop",  .type = "f", .batch_id = OTHER_ID },
        {.domain = "shop",  .type = "a", .command_id = THE_ID },
    };
    PawlSent   sent[COUNT(list)];
    PawlError  error;
    PawlStatus status = pawl_send_many(pawl, list, COUNT(list), 0, sent, &error);

    for (size_t i = 0; i < COUNT(list); i++)
        sent_print(list[i].type, sent[i].error.status, &sent[i]);
    printf("all: %d %s\n", (int)status, error.text);
    printf("good: %d\n", (int)pawl_send_many(pawl, list, 1, 0, NULL, NULL));
    printf("none: %d\n", (int)pawl_send_many(pawl, list, 0, 0, NULL, NULL));
}

static void keyed_print(const char *label, PawlStatus status, const PawlSent *sent)
{
    printf("%s: %d %s %s %s %s\n", label, (int)status, sent->id, sent->is_new ? "new" : "known",
           sent->duplicate ? sent->duplicate : "-", sent->error.text);
}

static PawlStatus keys_body(PawlTx *tx, void *context)
{
    PawlCommand command = {.domain = "shop", .type = "a", .payload = "1", .key = "order-1"};
    PawlStart   start   = {.type = "order", .key = "order-1"};
    PawlSent    sent;

    (void)context;
    keyed_print("tx send", pawl_tx_send(tx, &command, &sent), &sent);
    keyed_print("tx start", pawl_tx_process_start(tx, &start, &sent), &sent);
    return PAWL_OK;
}

/* Text keys of sends and starts, and unique keys: alone, of many, in a transaction. */
static void scenario_keys(void)
{
    PawlCommand list[] = {
        {.domain = "shop", .type = "a", .payload = "1", .key = "order-1"},
        {.domain = "shop", .type = "a", .payload = "1", .key = "order-1", .command_id = THE_ID},
        {.domain = "shop", .type = "a", .key = ""},
        {.domain = "shop", .type = "u", .payload = "1", .unique_key = "k", .unique_for = "1h", .delay_ms = 60000},
        {.domain = "shop", .type = "u", .payload = "2", .unique_key = "k", .on_duplicate = "replace"},
        {.domain = "shop", .type = "u", .unique_key = "k", .on_duplicate = "drop"},
    };
    PawlStart start = {.type = "order", .key = "order-1"};
    PawlSent  sent[COUNT(list)];

    for (size_t i = 0; i < COUNT(list); i++)
        keyed_print("send", pawl_send(pawl, &list[i], 0, &sent[i], NULL), &sent[i]);
    pawl_send_many(pawl, list, COUNT(list), 0, sent, NULL);
    for (size_t i = 0; i < COUNT(list); i++)
        keyed_print("many", sent[i].error.status, &sent[i]);
    keyed_print("start", pawl_process_start(pawl, &start, 0, &sent[0], NULL), &sent[0]);
    pawl_process_start_many(pawl, &start, 1, 0, &sent[0], NULL);
    keyed_print("starts", sent[0].error.status, &sent[0]);
    need(pawl_transaction(pawl, NULL, keys_body, NULL, NULL), NULL);
}

typedef struct {
    PawlStatus  end; /* what the body returns after sending */
    const char *type;
} Outbox;

static PawlStatus outbox_body(PawlTx *tx, void *context)
{
    const Outbox *outbox  = context;
    PawlCommand   command = {.domain = "shop", .type = outbox->type, .command_id = THE_ID};
    PawlSent      sent;
    PawlStatus    status = pawl_query(tx, "insert into mine default values", 0, NULL, NULL);

    if (status != PAWL_OK)
        return status;
    status = pawl_tx_send(tx, &command, &sent);
    sent_print(outbox->type, status, &sent);
    if (status != PAWL_OK && strcmp(pawl_tx_error(tx)->text, sent.error.text) != 0)
        printf("the two errors differ\n");
    return outbox->end == PAWL_OK ? PAWL_OK : status == PAWL_OK ? outbox->end : status;
}

static void outbox_run(PawlStatus end, const char *type)
{
    PawlTransaction options = {.keyed = true};
    PawlError       error;
    PawlStatus      status = pawl_transaction(pawl, &options, outbox_body, &(Outbox){end, type}, &error);

    printf("end: %d %s\n", (int)status, error.text);
}

/* Several in one call, good and bad; all of them if the body commits. */
static PawlStatus many_body(PawlTx *tx, void *context)
{
    const PawlCommand list[] = {
        {.domain = "many", .type = "a"},
        {.domain = "many", .type = "b", .payload = "nothing"},
        {.domain = "more", .type = "c", .priority = 7}
    };
    PawlSent          sent[COUNT(list)];
    const PawlStatus *end    = context;
    PawlStatus        status = pawl_tx_send_many(tx, list, COUNT(list), sent);

    for (size_t i = 0; i < COUNT(list); i++)
        sent_print(list[i].type, sent[i].error.status, &sent[i]);
    if (strcmp(pawl_tx_error(tx)->text, sent[1].error.text) != 0)
        printf("the two errors differ\n");
    return *end == PAWL_OK ? PAWL_OK : status;
}

static void many_run(PawlStatus end)
{
    PawlError  error;
    PawlStatus status = pawl_transaction(pawl, &(PawlTransaction){.keyed = true}, many_body, &end, &error);

    printf("end: %d %s\n", (int)status, error.text);
}

static void scenario_outbox_many(void)
{
    many_run(PAWL_REFUSED);
    many_run(PAWL_OK);
}

static void scenario_outbox(void)
{
    outbox_run(PAWL_REFUSED, "rolled-back");
    outbox_run(PAWL_OK, "committed");
    outbox_run(PAWL_OK, "committed");
    outbox_run(PAWL_OK, "refused-and-swallowed");
    outbox_run(PAWL_REFUSED, "refused");
    outbox_run(PAWL_OK, "bad type");
}

/* One command whose answer may be lost. */
static void scenario_one(void)
{
    one_send("one", (PawlCommand){.domain = "shop", .type = "one"});
}

static sem_t begun;

static PawlStatus slow_body(PawlTx *tx, void *context)
{
    (void)context;
    sem_post(&begun);
    return pawl_query(tx, "select pg_sleep(0.2)", 0, NULL, NULL);
}

static void *slow_run(void *context)
{
    PawlStatus *ret_status = context;

    *ret_status = pawl_transaction(pawl, &(PawlTransaction){.name = "slow"}, slow_body, NULL, NULL);
    return NULL;
}

/* Closed while another thread is inside a call. */
static void scenario_close(void)
{
    PawlStatus status = PAWL_FAILED;
    pthread_t  thread;

    pthread_create(&thread, NULL, slow_run, &status);
    sem_wait(&begun);
    pawl_close(pawl);
    pawl = NULL;
    pthread_join(thread, NULL);
    printf("slow: %d\n", (int)status);
}

/* ---- handlers ---- */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static PawlOutcome job_complete(PawlJob *job)
{
    char text[256];

    snprintf(text, sizeof text, "{\"attempt\": %d, \"of\": %d, \"payload\": %s}", job->attempt, job->max_attempts,
             job->payload);
    pawl_job_result(job, text);
    memset(text, 'x', sizeof text); /* it was copied */
    return PAWL_JOB_COMPLETE;
}

static PawlOutcome job_retry(PawlJob *job)
{
    pawl_job_error(job, "not yet: %d", job->attempt);
    job->retry_in_ms = 1;
    return PAWL_JOB_RETRY;
}

static PawlOutcome job_fail(PawlJob *job)
{
    pawl_job_error(job, "bad bytes \xC3(, \xF0\x9F");
    return PAWL_JOB_FAIL;
}

static PawlOutcome job_snooze(PawlJob *job)
{
    static bool has_snoozed;

    if (has_snoozed)
        return PAWL_JOB_COMPLETE;
    has_snoozed = true;
    pawl_job_error(job, "not open yet");
    job->retry_in_ms = 1000;
    return PAWL_JOB_SNOOZE;
}

static PawlOutcome job_reject(PawlJob *job)
{
    pawl_job_result(job, "{}"); /* of no use: it was not completed */
    pawl_job_error(job, "%s", "not today \xC3\xA9");
    return PAWL_JOB_REJECT;
}

/* Its second attempt says what was refused in the first one, and what that one has reported. */
static PawlOutcome job_progress(PawlJob *job)
{
    const char *last = pawl_job_last_progress(job);
    static char refused[400], result[800];

    if (!last) {
        snprintf(refused, sizeof refused, "%s; %s; %s", pawl_job_progress(job, 101, NULL),
                 pawl_job_progress(job, -1, NULL), pawl_job_progress(job, 5, ""));
        if (pawl_job_progress(job, 40, "page 4") || pawl_job_progress(job, -1, "page 5"))
            return PAWL_JOB_FAIL;
        return job_retry(job);
    }
    snprintf(result, sizeof result, "{\"last\": %s, \"refused\": \"%s\"}", last, refused);
    pawl_job_result(job, result);
    return PAWL_JOB_COMPLETE;
}

static PawlOutcome job_silent(PawlJob *job)
{
    (void)job;
    return PAWL_JOB_FAIL;
}

static PawlOutcome job_bad_result(PawlJob *job)
{
    pawl_job_result(job, "{\"a\": ");
    return PAWL_JOB_COMPLETE;
}

static PawlOutcome job_large_result(PawlJob *job)
{
    size_t size = (size_t)5 << 20;
    char  *text = malloc(size);

    memset(text, '1', size - 1);
    text[size - 1] = '\0';
    pawl_job_result(job, text);
    free(text);
    return PAWL_JOB_COMPLETE;
}

static PawlOutcome job_mistake(PawlJob *job)
{
    (void)job;
    return (PawlOutcome)(int)PAWL_TRY_AGAIN;
}

static PawlOutcome job_hang(PawlJob *job)
{
    sem_post(&begun);
    while (!pawl_job_is_stopped(job))
        nap();
    return job_retry(job);
}

static PawlOutcome job_reject_late(PawlJob *job)
{
    (void)job_hang(job);
    return job_reject(job);
}

static PawlOutcome job_silent_late(PawlJob *job)
{
    while (!pawl_job_is_stopped(job))
        nap();
    return PAWL_JOB_RETRY;
}

static const struct {
    const char *type;
    PawlOutcome (*handle)(PawlJob *job);
} jobs[] = {
    {"complete",     job_complete    },
    {"retry",        job_retry       },
    {"fail",         job_fail        },
    {"reject",       job_reject      },
    {"snooze",       job_snooze      },
    {"progress",     job_progress    },
    {"silent",       job_silent      },
    {"bad-result",   job_bad_result  },
    {"large-result", job_large_result},
    {"mistake",      job_mistake     },
    {"hang",         job_hang        },
    {"reject-late",  job_reject_late },
    {"silent-late",  job_silent_late }
};

static PawlOutcome handle(PawlJob *job, void *context)
{
    (void)context;
    for (size_t i = 0; i < COUNT(jobs); i++)
        if (strcmp(jobs[i].type, job->type) == 0)
            return jobs[i].handle(job);
    pawl_job_error(job, "no such type in domain %s", job->domain);
    return PAWL_JOB_FAIL;
}

/* What is done in the transaction after the effect was written, and what is said then. */
static const struct {
    const char *type, *sql;
    PawlOutcome well, ill;
} statements[] = {
    {"write",     "select 1",             PAWL_JOB_COMPLETE, PAWL_JOB_RETRY   },
    {"reject",    "select 1",             PAWL_JOB_REJECT,   PAWL_JOB_RETRY   },
    {"give-up",   "select 1",             PAWL_JOB_FAIL,     PAWL_JOB_RETRY   },
    {"later",     "select 1",             PAWL_JOB_RETRY,    PAWL_JOB_RETRY   },
    {"broken",    "select 1 / 0",         PAWL_JOB_COMPLETE, PAWL_JOB_FAIL    },
    {"swallowed", "select 1 / 0",         PAWL_JOB_COMPLETE, PAWL_JOB_COMPLETE},
    {"ended",     "rollback",             PAWL_JOB_COMPLETE, PAWL_JOB_RETRY   },
    {"deadlock",  "select stumble()",     PAWL_JOB_COMPLETE, PAWL_JOB_RETRY   },
    {"slow",      "select pg_sleep(600)", PAWL_JOB_COMPLETE, PAWL_JOB_RETRY   }
};

static PawlOutcome handle_in_tx(PawlJob *job, PawlTx *tx, void *context)
{
    PawlCommand note   = {.domain = "notes", .type = "note"};
    PawlStatus  status = pawl_query(tx, "insert into effect (id) values ($1)", 1, &job->command_id, NULL);

    (void)context;
    if (status == PAWL_OK)
        status = pawl_tx_send(tx, &note, NULL);
    if (status != PAWL_OK)
        return PAWL_JOB_RETRY;
    if (strcmp(job->type, "reject-late") == 0)
        return job_reject_late(job);
    pawl_job_result(job, "\"done\"");
    job->retry_in_ms = 1;
    for (size_t i = 0; i < COUNT(statements); i++)
        if (strcmp(statements[i].type, job->type) == 0)
            return pawl_query(tx, statements[i].sql, 0, NULL, NULL) == PAWL_OK ? statements[i].well : statements[i].ill;
    return PAWL_JOB_FAIL;
}

/* ---- working ---- */

static PawlWorker *worker_open(const PawlWork *options)
{
    PawlWorker *worker;
    PawlError   error;

    need(pawl_worker_open(pawl, options, &worker, &error), &error);
    return worker;
}

static void *worker_main(void *context)
{
    PawlError error;

    need(pawl_worker_run(context, &error), &error);
    return NULL;
}

static void worker_end(PawlWorker *worker)
{
    PawlCounts counts;

    pawl_worker_counts(worker, &counts);
    printf("%lld claimed, %lld completed, %lld retried, %lld failed, %lld rejected, %lld lost, %d running\n",
           counts.claimed, counts.completed, counts.retried + counts.released, counts.failed, counts.rejected,
           counts.lost, counts.running);
    pawl_worker_close(worker);
}

static void work(const PawlWork *options)
{
    PawlWorker *worker = worker_open(options);

    worker_main(worker);
    worker_end(worker);
}

/* Crashes or stops the whole program. */
static PawlOutcome handle_or_end(PawlJob *job, void *context)
{
    (void)context;
    if (strcmp(job->type, "crash") == 0)
        abort();
    if (strcmp(job->type, "freeze") == 0)
        raise(SIGSTOP);
    return PAWL_JOB_COMPLETE;
}

static void scenario_crash(void)
{
    work(&(PawlWork){.domain = "shop", .handler = handle_or_end, .lease_ms = 1000, .drain = true});
}

static void scenario_work(void)
{
    work(&(PawlWork){.domain = "shop", .handler = handle, .drain = true});
}

/* Per key: the number of the command that may run next, and whether one runs. */
static struct {
    int  next;
    bool is_running;
} keys[KEY_COUNT];
static pthread_mutex_t keys_lock = PTHREAD_MUTEX_INITIALIZER;
static int             out_of_order;

/* The first attempt of every third one fails: those behind it must wait for the second. */
static PawlOutcome handle_in_order(PawlJob *job, void *context)
{
    int  key, number;
    bool fails;

    (void)context;
    if (sscanf(job->payload, "[%d, %d]", &key, &number) != 2)
        return PAWL_JOB_FAIL;
    fails = number % 3 == 0 && job->attempt == 1;
    pthread_mutex_lock(&keys_lock);
    out_of_order += keys[key].is_running || keys[key].next != number;
    keys[key].is_running = true;
    pthread_mutex_unlock(&keys_lock);
    nap();
    pthread_mutex_lock(&keys_lock);
    keys[key].is_running = false;
    keys[key].next += fails ? 0 : 1;
    pthread_mutex_unlock(&keys_lock);
    return fails ? job_retry(job) : PAWL_JOB_COMPLETE;
}

static PawlStatus keyed_body(PawlTx *tx, void *context)
{
    return pawl_tx_send_many(tx, context, KEY_COUNT * KEY_EACH / 2, NULL);
}

/* Half of them one call, half in a transaction of the program. */
static void scenario_order(void)
{
    static char payloads[KEY_COUNT * KEY_EACH][16], names[KEY_COUNT][8], too_long[202];
    PawlCommand list[KEY_COUNT * KEY_EACH];
    PawlError   error;

    for (int i = 0; i < KEY_COUNT * KEY_EACH; i++) {
        snprintf(payloads[i], sizeof payloads[i], "[%d, %d]", i % KEY_COUNT, i / KEY_COUNT);
        snprintf(names[i % KEY_COUNT], sizeof names[0], "key %d", i % KEY_COUNT);
        list[i] = (PawlCommand){.domain       = "keyed",
                                .type         = "count",
                                .payload      = payloads[i],
                                .max_attempts = 9,
                                .priority     = 1 + i % 9,
                                .order_key    = names[i % KEY_COUNT]};
    }
    need(pawl_send_many(pawl, list, KEY_COUNT * KEY_EACH / 2, 0, NULL, &error), &error);
    need(pawl_transaction(pawl, &(PawlTransaction){.keyed = false}, keyed_body, list + KEY_COUNT * KEY_EACH / 2,
                          &error),
         &error);
    work(&(PawlWork){.domain = "keyed", .handler = handle_in_order, .concurrency = 8, .drain = true});
    printf("out of order: %d\n", out_of_order);
    memset(too_long, 'k', sizeof too_long - 1);
    one_send("long key", (PawlCommand){.domain = "keyed", .type = "count", .order_key = too_long});
    one_send("empty key", (PawlCommand){.domain = "keyed", .type = "count", .order_key = ""});
    one_send("chained",
             (PawlCommand){.domain = "chained", .type = "t", .order_key = "k", .reply_to = "command:next/t"});
    one_send("bad chain", (PawlCommand){.domain = "chained", .type = "t", .reply_to = "command:process:shop/t"});
}

static void scenario_types(void)
{
    const char *types[] = {"complete", NULL};
    PawlWorker *worker  = worker_open(&(PawlWork){.domain = "shop", .types = types, .handler = handle});
    PawlCounts  counts  = {0};
    pthread_t   thread;

    types[0] = "fail"; /* they were copied */
    pthread_create(&thread, NULL, worker_main, worker);
    while (counts.completed < 3) {
        nap();
        pawl_worker_counts(worker, &counts);
    }
    pawl_worker_stop(worker);
    pthread_join(thread, NULL);
    worker_end(worker);
}

static void scenario_work_in_tx(void)
{
    work(&(PawlWork){.domain = "shop", .tx_handler = handle_in_tx, .drain = true});
}

static void scenario_timeout(void)
{
    work(&(PawlWork){.domain = "shop", .handler = handle, .timeout_ms = 200, .drain = true});
}

static void scenario_timeout_in_tx(void)
{
    work(&(PawlWork){.domain = "shop", .tx_handler = handle_in_tx, .timeout_ms = 2000, .drain = true});
}

/* Two hang, more wait for their turn; the stop comes from this thread. */
static void scenario_stop(void)
{
    PawlWorker *worker = worker_open(
        &(PawlWork){.domain = "shop", .handler = handle, .concurrency = 2, .lease_ms = 60000, .stop_ms = 1});
    pthread_t thread;
    PawlError error;

    pthread_create(&thread, NULL, worker_main, worker);
    sem_wait(&begun);
    sem_wait(&begun);
    pawl_worker_stop(worker);
    pawl_worker_stop(worker); /* twice is once */
    pthread_join(thread, NULL);
    printf("again: %d %s\n", (int)pawl_worker_run(worker, &error), error.text);
    worker_end(worker);

    worker = worker_open(&(PawlWork){.domain = "shop", .handler = handle});
    pawl_worker_stop(worker); /* before it begins */
    worker_main(worker);
    worker_end(worker);
    pawl_worker_close(worker_open(&(PawlWork){.domain = "shop", .handler = handle})); /* never run */
}

/* Works until a line comes on standard input. */
static void scenario_wait(void)
{
    PawlWorker *worker = worker_open(&(PawlWork){.domain = "shop", .handler = handle});
    pthread_t   thread;

    pthread_create(&thread, NULL, worker_main, worker);
    (void)getchar();
    pawl_worker_stop(worker);
    pthread_join(thread, NULL);
    worker_end(worker);
}

static void scenario_options(void)
{
    const PawlWork list[] = {
        {.handler = handle},
        {.domain = "shop"},
        {.domain = "shop", .handler = handle, .tx_handler = handle_in_tx},
        {.domain = "shop", .handler = handle, .concurrency = 1001},
        {.domain = "shop", .handler = handle, .lease_ms = 99},
        {.domain = "shop", .handler = handle, .timeout_ms = -1},
    };
    PawlWorker *worker = NULL;
    PawlError   error;

    for (size_t i = 0; i < COUNT(list); i++)
        printf("%d %s\n", (int)pawl_worker_open(pawl, &list[i], &worker, &error), error.text);
    worker = worker_open(&(PawlWork){.domain = "no domain", .handler = handle});
    printf("%d %s\n", (int)pawl_worker_run(worker, &error), error.text);
    pawl_worker_close(worker);
}

/* ---- in a child of fork() ---- */

/* Which session runs it. */
static PawlStatus session_body(PawlTx *tx, void *context)
{
    PawlResult result;
    PawlStatus status = pawl_query(tx, "select pg_backend_pid()", 0, NULL, &result);

    if (status == PAWL_OK)
        snprintf(context, 20, "%s", result.values[0]);
    return status;
}

static void child_line(const char *name, PawlStatus status, const PawlError *error)
{
    printf("%s: %d %s\n", name, (int)status, error->text);
}

static void child_calls(PawlWorker *worker)
{
    PawlCommand   command   = {.domain = "shop", .type = "complete"};
    PawlOperation operation = {.kind = PAWL_TOPUP, .txn_id = THE_ID, .owner = "ann", .amount = 1};
    PawlWork      work      = {.domain = "shop", .handler = handle};
    PawlCounts    counts;
    PawlWorker   *other = NULL;
    PawlSent      sent;
    PawlPosted    posted;
    PawlBalance   balance;
    PawlError     error;
    char          session[20];

    child_line("ping", pawl_ping(pawl, 1000, &error), &error);
    child_line("transaction", pawl_transaction(pawl, &(PawlTransaction){0}, session_body, session, &error), &error);
    child_line("send", pawl_send(pawl, &command, 0, &sent, &error), &sent.error);
    child_line("send_many", pawl_send_many(pawl, &command, 1, 0, NULL, &error), &error);
    child_line("start", pawl_process_start(pawl, &(PawlStart){.type = "t"}, 0, &sent, &error), &sent.error);
    child_line("signal", pawl_process_signal(pawl, &(PawlSignal){.process_id = THE_ID, .name = "s"}, 0, NULL, &error),
               &error);
    child_line("wallet_open", pawl_wallet_open(pawl, &(PawlWallet){.owner = "ann"}, 0, NULL, &error), &error);
    child_line("wallet_get", pawl_wallet_get(pawl, "ann", NULL, 0, &balance, &error), &error);
    child_line("post", pawl_post(pawl, &operation, 0, &posted, &error), &posted.error);
    child_line("post_many", pawl_post_many(pawl, &operation, 1, 0, NULL, &error), &error);
    child_line("worker_open", pawl_worker_open(pawl, &work, &other, &error), &error);
    child_line("worker_run", pawl_worker_run(worker, &error), &error);
    pawl_worker_counts(worker, &counts);
    pawl_worker_stop(worker);
    pawl_worker_close(worker);
    pawl_close(pawl);
}

static void child_end(void)
{
    fflush(stdout);
    _exit(0);
}

static void child_wait(pid_t child)
{
    int status;

    waitpid(child, &status, 0);
    printf("child: %s %d\n", WIFEXITED(status) ? "exited" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* Two children while a transaction is open: one looks around in it and ends, one returns from its body. */
static PawlStatus fork_body(PawlTx *tx, void *context)
{
    PawlOperation operation = {.kind = PAWL_TOPUP, .txn_id = THE_ID, .owner = "ann", .amount = 1};
    PawlStatus    status    = pawl_query(tx, "insert into mine default values", 0, NULL, NULL);
    pid_t         child;

    fflush(stdout);
    if ((child = fork()) == 0) {
        child_line("query", pawl_query(tx, "insert into mine default values", 0, NULL, NULL), pawl_tx_error(tx));
        child_line("tx_send", pawl_tx_send(tx, &(PawlCommand){.domain = "shop", .type = "complete"}, NULL),
                   pawl_tx_error(tx));
        child_line("tx_start", pawl_tx_process_start(tx, &(PawlStart){.type = "t"}, NULL), pawl_tx_error(tx));
        child_line("tx_post", pawl_tx_post(tx, &operation, NULL), pawl_tx_error(tx));
        child_end();
    }
    child_wait(child);
    fflush(stdout);
    if ((child = fork()) == 0) {
        dup2(STDOUT_FILENO, STDERR_FILENO);
        return PAWL_OK;
    }
    child_wait(child);
    (void)context;
    return status;
}

static void scenario_fork(void)
{
    PawlWorker *worker = worker_open(&(PawlWork){.domain = "shop", .handler = handle});
    char        before[20], after[20];
    PawlError   error;
    pid_t       child;

    need(pawl_transaction(pawl, &(PawlTransaction){0}, session_body, before, &error), &error);
    fflush(stdout);
    if ((child = fork()) == 0) {
        child_calls(worker);
        child_end();
    }
    child_wait(child);
    need(pawl_transaction(pawl, &(PawlTransaction){0}, fork_body, NULL, &error), &error);
    need(pawl_transaction(pawl, &(PawlTransaction){0}, session_body, after, &error), &error);
    printf("session: %s\n", strcmp(before, after) == 0 ? "the same" : "another");
    pawl_worker_close(worker);
}

/* ---- statements that cannot be sent ---- */

static PawlStatus query_body(PawlTx *tx, void *context)
{
    static const char *many[65536];
    char              *session = context;

    child_line("null", pawl_query(tx, NULL, 0, NULL, NULL), pawl_tx_error(tx));
    child_line("negative", pawl_query(tx, "select 1", -1, NULL, NULL), pawl_tx_error(tx));
    child_line("too many", pawl_query(tx, "select 1", COUNT(many), many, NULL), pawl_tx_error(tx));
    child_line("no array", pawl_query(tx, "select $1", 1, NULL, NULL), pawl_tx_error(tx));
    return session_body(tx, session);
}

static void scenario_query(void)
{
    char      before[20], after[20];
    PawlError error;

    need(pawl_transaction(pawl, &(PawlTransaction){0}, session_body, before, &error), &error);
    need(pawl_transaction(pawl, &(PawlTransaction){0}, query_body, after, &error), &error);
    printf("session: %s\n", strcmp(before, after) == 0 ? "the same" : "another");
}

/* ---- all at once ---- */

static void *storm_send(void *context)
{
    PawlCommand list[STORM_EACH];

    (void)context;
    for (int i = 0; i < STORM_EACH; i++) {
        list[i] = (PawlCommand){.domain = i % 2 ? "shop" : "bank", .type = i % 2 ? "complete" : "write"};
        need(pawl_send(pawl, &list[i], 0, NULL, NULL), &(PawlError){.text = "one"});
    }
    need(pawl_send_many(pawl, list, STORM_EACH, 0, NULL, NULL), &(PawlError){.text = "many"});
    return NULL;
}

static void *storm_watch(void *context)
{
    PawlWorker *const *workers   = context;
    PawlCounts         counts[2] = {{0}, {0}};

    while (counts[0].completed + counts[1].completed < 2LL * STORM_EACH * STORM_COUNT)
        for (int i = 0; i < 2; i++)
            pawl_worker_counts(workers[i], &counts[i]);
    for (int i = 0; i < 2; i++)
        pawl_worker_stop(workers[i]);
    return NULL;
}

/* Senders and two workers, one of them with transactions, in one process. */
static void scenario_storm(void)
{
    PawlWorker *workers[] = {worker_open(&(PawlWork){.domain = "shop", .handler = handle}),
                             worker_open(&(PawlWork){.domain = "bank", .tx_handler = handle_in_tx})};
    pthread_t   threads[STORM_COUNT + 3];
    int         count = 0;

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[count++], NULL, worker_main, workers[i]);
    for (int i = 0; i < STORM_COUNT; i++)
        pthread_create(&threads[count++], NULL, storm_send, NULL);
    pthread_create(&threads[count++], NULL, storm_watch, workers);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++)
        worker_end(workers[i]);
}

/* ---- what a program sends and handles itself ---- */

/* How many commands have begun in the transaction that sent them. */
static PawlStatus started_body(PawlTx *tx, void *context)
{
    PawlResult result;
    PawlStatus status = pawl_query(
        tx, "select count(*) from pawl.outcome o join pawl.command c using (id) where o.started_at = c.created_at", 0,
        NULL, &result);

    if (status == PAWL_OK)
        *(int *)context = (int)strtol(result.values[0], NULL, 10);
    return status;
}

static void scenario_start(void)
{
    PawlWorker *worker = worker_open(&(PawlWork){.domain = "shop", .handler = handle});
    PawlCounts  counts = {0};
    PawlError   error;
    pthread_t   thread;
    int         started = 0;

    pthread_create(&thread, NULL, worker_main, worker);
    for (int sent = 1; started == 0; sent++) {
        need(pawl_send(pawl, &(PawlCommand){.domain = "shop", .type = "complete"}, 0, NULL, &error), &error);
        while (counts.completed < sent)
            pawl_worker_counts(worker, &counts);
        need(pawl_transaction(pawl, &(PawlTransaction){0}, started_body, &started, &error), &error);
    }
    pawl_worker_stop(worker);
    pthread_join(thread, NULL);
    printf("%d started, %d claimed\n", started, (int)counts.claimed - started);
    pawl_worker_close(worker);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"send",          scenario_send         },
    {"keys",          scenario_keys         },
    {"many",          scenario_many         },
    {"outbox",        scenario_outbox       },
    {"outbox-many",   scenario_outbox_many  },
    {"one",           scenario_one          },
    {"close",         scenario_close        },
    {"work",          scenario_work         },
    {"crash",         scenario_crash        },
    {"types",         scenario_types        },
    {"order",         scenario_order        },
    {"work-in-tx",    scenario_work_in_tx   },
    {"timeout",       scenario_timeout      },
    {"timeout-in-tx", scenario_timeout_in_tx},
    {"stop",          scenario_stop         },
    {"wait",          scenario_wait         },
    {"options",       scenario_options      },
    {"fork",          scenario_fork         },
    {"query",         scenario_query        },
    {"storm",         scenario_storm        },
    {"start",         scenario_start        }
};

int main(int argc, char **argv)
{
    PawlError error;

    sem_init(&begun, 0, 0);
    need(pawl_open(argv[1], &pawl, &error), &error);
    for (size_t i = 0; argc == 3 && i < COUNT(scenarios); i++)
        if (strcmp(scenarios[i].name, argv[2]) == 0)
            scenarios[i].run();
    pawl_close(pawl);
    return 0;
}
