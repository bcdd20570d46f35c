/*
 * process.c - an order as a process in C: reserves, waits for an approval, rests, charges, ships; undone if it is refused.
 *
 *     cc process.c $(pkg-config --cflags --libs pawl) -o process
 *     ./process postgresql://app@db/shop &
 *     pawl process start c-order '{"item": "lamp", "amount": 5}' --domain c-shop
 *     pawl process signal ID approval '{"approved": true}'
 *     pawl work bank --exec cat --drain          (handles the command charge; then the order ends as COMPLETED)
 *
 * The function is called from its beginning whenever the process continues; what is recorded is not run again. Kill it at any moment and
 * start it again: each step has its effect once, because it is committed with the step's record (tx_body).
 */
#include <signal.h>

#include "common.h"

static PawlWorker *worker;

/* One row per step and order; the context is what is noted. */
static PawlOutcome note(PawlJob *job, PawlTx *tx, void *context)
{
    const char *values[] = {job->command_id, context};

    if (pawl_query(tx, "insert into noted (id, what) values ($1, $2)", 2, values, NULL) != PAWL_OK)
        return PAWL_JOB_RETRY;
    pawl_job_result(job, "{\"noted\": true}");
    return PAWL_JOB_COMPLETE;
}

/* PostgreSQL reads the JSON: a text in it that contains "true" is no approval. */
static PawlOutcome approval_check(PawlJob *job, PawlTx *tx, void *context)
{
    PawlResult result;

    (void)context;
    if (pawl_query(tx, "select 1 where $1::jsonb @> '{\"approved\": true}'", 1, &job->payload, &result) != PAWL_OK)
        return PAWL_JOB_RETRY;
    if (result.rows == 1)
        return PAWL_JOB_COMPLETE;
    pawl_job_error(job, "it was not approved");
    return PAWL_JOB_REJECT;
}

static PawlStep step(const char *name, char *what)
{
    return (PawlStep){.name = name, .tx_body = note, .context = what};
}

static PawlFlow order_go(PawlRun *run)
{
    static char shipped[] = "shipped";
    PawlStep    ship      = step("ship", shipped);
    PawlStep    decide    = {.name = "decide", .tx_body = approval_check};
    PawlCall    charge    = {.name = "charge", .domain = "bank", .type = "charge", .payload = pawl_run_input(run)};
    PawlWait    approval  = {.name = "approval", .timeout_ms = 86400000};

    PAWL_FLOW(pawl_run_wait(run, &approval, &decide.input)); /* NULL, the JSON null: it did not come in time */
    PAWL_FLOW(pawl_run_step(run, &decide, NULL));
    PAWL_FLOW(pawl_run_sleep(run, "rest", 1000));
    PAWL_FLOW(pawl_run_command(run, &charge, NULL));
    return pawl_run_step(run, &ship, NULL);
}

static PawlFlow order(PawlRun *run, void *context)
{
    static char reserved[] = "reserved", released[] = "released";
    PawlStep    reserve = step("reserve", reserved), release = step("release", released);
    long long   began;
    char        result[64];
    PawlFlow    flow;

    (void)context;
    PAWL_FLOW(pawl_run_time(run, "began", &began));
    PAWL_FLOW(pawl_run_step(run, &reserve, NULL));
    flow = order_go(run);
    if (flow == PAWL_FLOW_FAILED) { /* also when an operator cancels it */
        pawl_run_reason(run, "%s", pawl_run_error(run));
        PAWL_FLOW(pawl_run_compensating(run));
        PAWL_FLOW(pawl_run_step(run, &release, NULL));
        return PAWL_FLOW_NEXT;
    }
    if (flow == PAWL_FLOW_NEXT) {
        snprintf(result, sizeof result, "{\"began_ms\": %lld}", began);
        pawl_run_result(run, result);
    }
    return flow;
}

static void stop(int signal)
{
    (void)signal;
    pawl_worker_stop(worker);
}

int main(int argc, char **argv)
{
    const char *types[] = {"c-order", NULL};
    PawlWork    options = {.domain = "c-shop", .types = types, .process = order};
    Pawl       *pawl    = NULL;
    PawlError   error;
    PawlStatus  status;

    if (argc != 2) {
        fprintf(stderr, "usage: process URL\n");
        return 2;
    }
    status = shop_open(argv[1], "noted (id uuid primary key, what text not null)", &pawl, &error);
    if (status == PAWL_OK)
        status = pawl_worker_open(pawl, &options, &worker, &error);
    if (status == PAWL_OK) {
        signal(SIGTERM, stop);
        signal(SIGINT, stop);
        status = pawl_worker_run(worker, &error);
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        pawl_worker_close(worker);
    }
    return shop_close(pawl, status, &error);
}
