/*
 * library_edge.c - a program that uses libpawl in ways that must be refused, for library_edge_test.py.
 *
 *     library_edge URL SCENARIO        prints what each call returned, one line each
 */
#include <pawl/pawl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define AN_ID        "0198c0de-0000-7000-8000-00000000000a"
#define STALE        ((void *)&stale)

static int                   stale; /* what outputs hold before the call */
static Pawl                 *pawl;
static PawlError             error;
static const PawlTransaction defaults;

static void line(const char *name, PawlStatus status)
{
    printf("%s: %d %s\n", name, (int)status, status == PAWL_OK ? "" : error.text);
}

static PawlOutcome handle(PawlJob *job, void *context)
{
    (void)job;
    (void)context;
    return PAWL_JOB_COMPLETE;
}

static PawlStatus empty_body(PawlTx *tx, void *context)
{
    (void)context;
    return pawl_query(tx, "select 1", 0, NULL, NULL);
}

/* ---- NULL where it has no meaning, or the defaults ---- */

static PawlStatus null_body(PawlTx *tx, void *context)
{
    PawlStatus status = pawl_tx_send(tx, NULL, NULL);

    (void)context;
    error = *pawl_tx_error(tx);
    line("tx_send", status);
    status = pawl_tx_post_many(tx, NULL, 1, NULL);
    error  = *pawl_tx_error(tx);
    line("tx_post_many", status);
    status = pawl_tx_process_start(tx, NULL, NULL);
    error  = *pawl_tx_error(tx);
    line("tx_start", status);
    return PAWL_OK;
}

static void scenario_null(void)
{
    PawlWorker *worker = NULL;
    PawlCounts  counts = {.claimed = 1};
    Pawl       *other  = STALE;

    line("open", pawl_open(NULL, &other, &error));
    line("ping", pawl_ping(NULL, 0, &error));
    line("transaction", pawl_transaction(pawl, NULL, empty_body, NULL, &error));
    line("no body", pawl_transaction(pawl, NULL, NULL, NULL, &error));
    line("in tx", pawl_transaction(pawl, NULL, null_body, NULL, &error));
    line("send", pawl_send(pawl, NULL, 0, NULL, &error));
    line("send_many", pawl_send_many(pawl, NULL, 1, 0, NULL, &error));
    line("start", pawl_process_start(pawl, NULL, 0, NULL, &error));
    line("signal", pawl_process_signal(pawl, NULL, 0, NULL, &error));
    line("wallet_open", pawl_wallet_open(pawl, NULL, 0, NULL, &error));
    line("wallet_get", pawl_wallet_get(pawl, "@system", NULL, 0, NULL, &error));
    line("post", pawl_post(pawl, NULL, 0, NULL, &error));
    line("post_many", pawl_post_many(pawl, NULL, 1, 0, NULL, &error));
    line("worker_open", pawl_worker_open(pawl, NULL, &worker, &error));
    line("worker_run", pawl_worker_run(NULL, &error));
    pawl_worker_counts(NULL, &counts);
    pawl_worker_stop(NULL);
    pawl_worker_close(NULL);
    printf("claimed: %lld\n", counts.claimed);
}

/* ---- outputs after a failure ---- */

static PawlStatus result_body(PawlTx *tx, void *context)
{
    PawlResult result = {1, 1, STALE, 1};
    PawlStatus status = pawl_query(tx, "select 1 / 0", 0, NULL, &result);

    (void)context;
    printf("result: %d %d %s %lld\n", result.rows, result.columns, result.values ? "stale" : "NULL", result.changed);
    return status;
}

static void scenario_outputs(void)
{
    PawlCommand   command   = {.domain = "shop", .type = "t"};
    PawlOperation operation = {.kind = PAWL_TOPUP, .txn_id = AN_ID, .owner = "ann", .amount = 1};
    PawlSent      sent[2];
    PawlPosted    posted[2];
    PawlBalance   balance;
    PawlWorker   *worker  = STALE;
    const char   *verdict = STALE;
    Pawl         *other   = STALE;
    bool          is_new  = true;

    memset(sent, 1, sizeof sent);
    memset(posted, 1, sizeof posted);
    memset(&balance, 1, sizeof balance);
    pawl_open("garbage", &other, NULL);
    pawl_worker_open(pawl, &(PawlWork){.domain = "shop"}, &worker, NULL);
    printf("open: %s %s\n", other ? "stale" : "NULL", worker ? "stale" : "NULL");
    pawl_transaction(pawl, &defaults, result_body, NULL, NULL);
    pawl_process_signal(pawl, &(PawlSignal){.name = "s"}, 0, &verdict, NULL);
    printf("verdict: %s\n", verdict ? "stale" : "NULL");
    pawl_wallet_open(pawl, &(PawlWallet){.owner = ""}, 0, &is_new, NULL);
    pawl_wallet_get(pawl, "nobody", NULL, 0, &balance, NULL);
    printf("wallet: %d %lld %d\n", is_new, balance.balance, balance.frozen);
    pawl_send_many(pawl, &command, 2, -1, sent, NULL);
    pawl_post_many(pawl, &operation, 2, -1, posted, NULL);
    printf("lists: %d %s, %d %s\n", sent[1].is_new, sent[1].error.text, posted[1].replayed, posted[1].error.text);
}

/* ---- times ---- */

static void scenario_times(void)
{
    PawlCommand   command   = {.domain = "shop", .type = "t"};
    PawlOperation operation = {.kind = PAWL_TOPUP, .txn_id = AN_ID, .owner = "ann", .amount = 1};
    PawlSignal    signal    = {.process_id = AN_ID, .name = "s"};

    line("default", pawl_ping(pawl, 0, &error));
    line("ping", pawl_ping(pawl, -1, &error));
    line("transaction", pawl_transaction(pawl, &(PawlTransaction){.timeout_ms = -1}, empty_body, NULL, &error));
    line("send", pawl_send(pawl, &command, -1, NULL, &error));
    line("send_many", pawl_send_many(pawl, &command, 1, -1, NULL, &error));
    line("start", pawl_process_start(pawl, &(PawlStart){.type = "t"}, -1, NULL, &error));
    line("signal", pawl_process_signal(pawl, &signal, -1, NULL, &error));
    line("wallet_open", pawl_wallet_open(pawl, &(PawlWallet){.owner = "ann"}, -1, NULL, &error));
    line("wallet_get", pawl_wallet_get(pawl, "ann", NULL, -1, NULL, &error));
    line("post", pawl_post(pawl, &operation, -1, NULL, &error));
    line("post_many", pawl_post_many(pawl, &operation, 1, -1, NULL, &error));
}

/* ---- statements ---- */

static const char *const statements[] = {
    "create table counted (n int)",
    "insert into counted select generate_series(1, 3)",
    "update counted set n = n + 1 where n > 1",
    "select * from counted",
    "delete from counted where n = 1",
    "insert into counted values (9) returning n",
    "values (1), (2)",
};

static PawlStatus changed_body(PawlTx *tx, void *context)
{
    PawlResult result;

    (void)context;
    for (size_t i = 0; i < COUNT(statements); i++) {
        if (pawl_query(tx, statements[i], 0, NULL, &result) != PAWL_OK)
            return PAWL_FAILED;
        printf("%.6s: %lld\n", statements[i], result.changed);
    }
    return PAWL_OK;
}

static PawlStatus several_body(PawlTx *tx, void *context)
{
    (void)context;
    return pawl_query(tx, "insert into counted values (1); insert into counted values (2)", 0, NULL, NULL);
}

static void scenario_statements(void)
{
    line("end", pawl_transaction(pawl, &defaults, changed_body, NULL, &error));
    line("several", pawl_transaction(pawl, &defaults, several_body, NULL, &error));
}

/* ---- closing in a function that pawl called ---- */

static PawlStatus close_body(PawlTx *tx, void *context)
{
    (void)context;
    pawl_close(pawl);
    return pawl_query(tx, "select 1", 0, NULL, NULL);
}

static PawlOutcome close_handle(PawlJob *job, PawlTx *tx, void *context)
{
    PawlWorker **worker = context;

    (void)job;
    pawl_close(pawl);
    if (pawl_query(tx, "select 1", 0, NULL, NULL) != PAWL_OK)
        return PAWL_JOB_FAIL;
    pawl_worker_stop(*worker);
    return PAWL_JOB_COMPLETE;
}

static void scenario_close(void)
{
    PawlWorker *worker;
    PawlCounts  counts;

    line("body", pawl_transaction(pawl, &defaults, close_body, NULL, &error));
    line("send", pawl_send(pawl, &(PawlCommand){.domain = "shop", .type = "t"}, 0, NULL, &error));
    pawl_worker_open(pawl, &(PawlWork){.domain = "shop", .tx_handler = close_handle, .context = &worker}, &worker,
                     NULL);
    line("run", pawl_worker_run(worker, &error));
    pawl_worker_counts(worker, &counts);
    printf("completed: %lld\n", counts.completed);
    pawl_worker_close(worker);
}

/* ---- closing while a function does not return ---- */

static sem_t begun, go;

static PawlStatus stuck_body(PawlTx *tx, void *context)
{
    PawlStatus status;

    (void)context;
    sem_post(&begun);
    sem_wait(&go);
    status = pawl_query(tx, "select 1", 0, NULL, NULL);
    printf("query: %d\n", (int)status);
    return status;
}

static void *stuck_main(void *context)
{
    PawlError mine;

    printf("stuck: %d\n", (int)pawl_transaction(pawl, context, stuck_body, NULL, &mine));
    return NULL;
}

static void scenario_stuck(void)
{
    PawlTransaction options = {.timeout_ms = 300};
    pthread_t       thread;

    sem_init(&begun, 0, 0);
    sem_init(&go, 0, 0);
    pthread_create(&thread, NULL, stuck_main, &options);
    sem_wait(&begun);
    pawl_close(pawl);
    printf("closed\n");
    sem_post(&go);
    pthread_join(thread, NULL);
    pawl = NULL;
}

/* ---- workers ---- */

static void scenario_options(void)
{
    const char    *none[] = {NULL}, *bad[] = {"a type", NULL}, *many[102] = {0};
    const PawlWork list[] = {
        {.domain = "shop", .handler = handle, .types = none          },
        {.domain = "shop", .handler = handle, .types = bad           },
        {.domain = "shop", .handler = handle, .types = many          },
        {.domain = "shop", .handler = handle, .listen_url = "garbage"},
    };
    PawlWorker *worker;

    for (size_t i = 0; i + 1 < COUNT(many); i++)
        many[i] = "t";
    for (size_t i = 0; i < COUNT(list); i++)
        line("open", pawl_worker_open(pawl, &list[i], &worker, &error));
}

static void *worker_main(void *context)
{
    line("run", pawl_worker_run(context, &error));
    return NULL;
}

/* Works until a line comes on standard input, or it ends by itself. */
static void scenario_work(void)
{
    PawlWorker *worker;
    pthread_t   thread;

    pawl_worker_open(pawl, &(PawlWork){.domain = "shop", .handler = handle}, &worker, NULL);
    pthread_create(&thread, NULL, worker_main, worker);
    (void)getchar();
    pawl_worker_stop(worker);
    pthread_join(thread, NULL);
    pawl_worker_close(worker);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"null",       scenario_null      },
    {"outputs",    scenario_outputs   },
    {"times",      scenario_times     },
    {"statements", scenario_statements},
    {"close",      scenario_close     },
    {"stuck",      scenario_stuck     },
    {"options",    scenario_options   },
    {"work",       scenario_work      }
};

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 3)
        return 2;
    if (pawl_open(argv[1], &pawl, &error) != PAWL_OK) {
        line("open", error.status);
        return 1;
    }
    for (size_t i = 0; i < COUNT(scenarios); i++)
        if (strcmp(scenarios[i].name, argv[2]) == 0)
            scenarios[i].run();
    pawl_close(pawl);
    return 0;
}
