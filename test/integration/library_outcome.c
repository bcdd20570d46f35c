/*
 * library_outcome.c - a program that waits for outcomes through libpawl, in every way that the test "outcome_wait" needs.
 *
 *     library_outcome URL        prints what each call returned, one line each
 */
#include <pawl/pawl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 50
#define LONG_MS 60000

static Pawl       *pawl;
static PawlWorker *worker;
static char        ids[THREADS][37];
static atomic_int  completed;

static void need(PawlStatus status, const PawlError *error)
{
    if (status == PAWL_OK)
        return;
    printf("status %d: %s\n", (int)status, error->text);
    exit(1);
}

static const char *text(const char *value)
{
    return value ? value : "-";
}

static void print(const char *label, PawlStatus status, PawlEnded *ended)
{
    printf("%s: %d %d %s %s %s\n", label, (int)status, ended->has_ended, text(ended->status), text(ended->result),
           text(ended->error));
    pawl_ended_free(ended);
    pawl_ended_free(ended);
}

static void command_send(const char *domain, char *ret_id)
{
    PawlSent  sent;
    PawlError error;

    need(pawl_send(pawl, &(PawlCommand){.domain = domain, .type = "charge"}, 0, &sent, &error), &error);
    memcpy(ret_id, sent.id, sizeof sent.id);
}

static PawlOutcome handle(PawlJob *job, void *context)
{
    (void)context;
    pawl_job_result(job, "{\"n\": 1}");
    return PAWL_JOB_COMPLETE;
}

static void *work(void *context)
{
    PawlError error;

    (void)context;
    need(pawl_worker_run(worker, &error), &error);
    return NULL;
}

static void *wait_for(void *context)
{
    PawlEnded ended;

    if (pawl_wait(pawl, context, "shop", LONG_MS, &ended, NULL) == PAWL_OK && strcmp(ended.status, "COMPLETED") == 0)
        atomic_fetch_add(&completed, 1);
    pawl_ended_free(&ended);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread, waiters[THREADS];
    PawlEnded ended;
    PawlSent  process;
    PawlError error;
    char      id[37];

    (void)argc;
    need(pawl_open(argv[1], &pawl, &error), &error);
    for (int i = 0; i < THREADS; i++) {
        command_send("shop", ids[i]);
        pthread_create(&waiters[i], NULL, wait_for, ids[i]);
    }
    need(pawl_worker_open(pawl, &(PawlWork){.domain = "shop", .handler = handle}, &worker, &error), &error);
    pthread_create(&thread, NULL, work, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(waiters[i], NULL);
    print("in time", pawl_wait(pawl, ids[0], NULL, LONG_MS, &ended, &error), &ended);
    command_send("nobody", id);
    print("late", pawl_wait(pawl, id, NULL, 50, &ended, &error), &ended);
    printf("%s\n", strstr(error.text, "has not ended in time: it is PENDING") ? "says so" : error.text);
    print("another domain", pawl_wait(pawl, id, "shop", LONG_MS, &ended, &error), &ended);
    print("no process", pawl_process_wait(pawl, id, NULL, LONG_MS, &ended, &error), &ended);
    print("no id", pawl_wait(pawl, "seven", NULL, 0, &ended, &error), &ended);
    print("NULL", pawl_wait(pawl, NULL, NULL, 0, &ended, &error), &ended);
    print("negative", pawl_wait(pawl, id, NULL, -1, &ended, &error), &ended);
    need(pawl_process_start(pawl, &(PawlStart){.type = "buy"}, 0, &process, &error), &error);
    print("process", pawl_process_wait(pawl, process.id, "process", 50, &ended, &error), &ended);
    printf("threads: %d of %d\n", atomic_load(&completed), THREADS);
    pawl_worker_stop(worker);
    pthread_join(thread, NULL);
    pawl_worker_close(worker);
    pawl_close(pawl);
    return 0;
}
