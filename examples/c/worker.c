/*
 * worker.c - a handler in C: charges the orders of send.c, each exactly once, until it is stopped by SIGTERM or Ctrl-C.
 *
 *     cc worker.c $(pkg-config --cflags --libs pawl) -o worker
 *     ./worker postgresql://app@db/shop
 *
 * The handler works in the transaction that also ends its command (tx_handler): a crash at any moment leaves both done or
 * neither. The receipt is a command of its own, sent in the same transaction.
 */
#include <signal.h>
#include <stdlib.h>

#include "common.h"

#define AMOUNT_MAX 1000

static PawlWorker *worker;

/* What we refuse is rolled back: the row as well. */
static PawlOutcome order_charge(PawlJob *job, PawlTx *tx, void *context)
{
    const char *values[] = {job->command_id, job->payload};
    PawlCommand receipt  = {.domain = "post", .type = "receipt", .payload = job->payload};
    PawlResult  result;
    char        text[64];
    PawlStatus  status;

    (void)context;
    status =
        pawl_query(tx,
                   "insert into charged (id, amount) values ($1, ($2::jsonb ->> 'amount')::bigint) returning amount", 2,
                   values, &result);
    if (status != PAWL_OK) /* its words become the command's error */
        return status == PAWL_REFUSED ? PAWL_JOB_FAIL : PAWL_JOB_RETRY;
    if (strtoll(result.values[0], NULL, 10) > AMOUNT_MAX) {
        pawl_job_error(job, "amount %s is above the limit of %d", result.values[0], AMOUNT_MAX);
        return PAWL_JOB_REJECT;
    }
    snprintf(text, sizeof text, "{\"charged\": %s}", result.values[0]);
    pawl_job_result(job, text);
    return pawl_tx_send(tx, &receipt, NULL) == PAWL_OK ? PAWL_JOB_COMPLETE : PAWL_JOB_RETRY;
}

static void stop(int signal)
{
    (void)signal;
    pawl_worker_stop(worker);
}

int main(int argc, char **argv)
{
    const char *types[] = {"charge", NULL};
    PawlWork    options = {.domain = "shop", .types = types, .tx_handler = order_charge, .timeout_ms = 5000};
    Pawl       *pawl    = NULL;
    PawlCounts  counts;
    PawlError   error;
    PawlStatus  status;

    if (argc != 2) {
        fprintf(stderr, "usage: worker URL\n");
        return 2;
    }
    status = shop_open(argv[1], "charged (id uuid primary key, amount bigint not null)", &pawl, &error);
    if (status == PAWL_OK)
        status = pawl_worker_open(pawl, &options, &worker, &error);
    if (status == PAWL_OK) {
        signal(SIGTERM, stop);
        signal(SIGINT, stop);
        status = pawl_worker_run(worker, &error);
        pawl_worker_counts(worker, &counts);
        printf("%lld completed, %lld rejected, %lld failed\n", counts.completed, counts.rejected, counts.failed);
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        pawl_worker_close(worker);
    }
    return shop_close(pawl, status, &error);
}
