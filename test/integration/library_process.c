/*
 * library_process.c - a program that runs processes with libpawl, for process_library_test.py.
 *
 *     library_process URL run DOMAIN [VARIANT]     run orders of the domain; VARIANT changes the function
 *     library_process URL start DOMAIN STATE ID [DEADLINE ACTION]    print the verdict: ID, is_new
 *     library_process URL many DOMAIN DELAY_MS PRIORITY ID...        start them in one call, and again in a
 *                                                                     transaction; print the verdicts
 *     library_process URL signal ID NAME JSON KEY  print the verdict
 *
 * CRASH_AT=N: kill it at the Nth point that it passes. EFFECTS: the file to which steps append a line. LEASE_MS: of its leases.
 */
#include <pawl/pawl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE_BYTES 4000000 /* of a value, near its limit of 4 MiB */

static PawlWorker *worker;
static Pawl       *library;
static const char *variant = "";

/* Where the test kills this program. */
static void point(void)
{
    static atomic_int count;
    const char       *at = getenv("CRASH_AT");

    if (at && atomic_fetch_add(&count, 1) + 1 == (int)strtol(at, NULL, 10))
        kill(getpid(), SIGKILL);
}

static bool is(const char *name)
{
    return strcmp(variant, name) == 0;
}

static void effect(const char *what, const char *key)
{
    FILE *file = fopen(getenv("EFFECTS"), "a");

    if (!file)
        abort();
    fprintf(file, "%s %s\n", what, key);
    fclose(file);
}

static PawlOutcome plain(PawlJob *job, void *context)
{
    (void)context;
    point();
    effect(job->type, job->command_id);
    if (is("stuck"))
        while (!pawl_job_is_stopped(job))
            usleep(1000);
    point();
    if (is("flaky") && job->attempt < 3) {
        pawl_job_error(job, "attempt %d of %d", job->attempt, job->max_attempts);
        job->retry_in_ms = 1;
        return PAWL_JOB_RETRY;
    }
    if (is("refused") && strcmp(job->type, "ship") == 0) {
        pawl_job_error(job, "out of boxes");
        return PAWL_JOB_REJECT;
    }
    pawl_job_result(job, job->payload);
    return PAWL_JOB_COMPLETE;
}

/* The table has a unique key, so a second effect would fail the step. */
static PawlOutcome counted(PawlJob *job, PawlTx *tx, void *context)
{
    const char *values[] = {job->command_id};

    (void)context;
    if (pawl_query(tx, "insert into counted (key) values ($1)", 1, values, NULL) != PAWL_OK)
        return PAWL_JOB_FAIL;
    if (is("sends") && pawl_tx_send(tx, &(PawlCommand){.domain = "parcels", .type = "note"}, NULL) != PAWL_OK)
        return PAWL_JOB_FAIL;
    point();
    pawl_job_result(job, "1");
    return PAWL_JOB_COMPLETE;
}

static PawlFlow order_go(PawlRun *run)
{
    PawlStep    ship     = {.name = "ship", .body = plain, .delay_ms = 1};
    PawlWait    approval = {.name = "approval", .timeout_ms = is("late") ? 50 : 0};
    PawlCall    charge   = {.name       = "charge",
                            .domain     = pawl_run_type(run),
                            .type       = "charge",
                            .payload    = "{\"amount\":5}",
                            .timeout_ms = is("impatient") ? 50 : 0};
    const char *said;

    PAWL_FLOW(pawl_run_wait(run, &approval, &said));
    if (!said) {
        pawl_run_reason(run, "no approval came");
        return PAWL_FLOW_FAILED;
    }
    point();
    PAWL_FLOW(pawl_run_sleep(run, "rest", 20));
    point();
    if (!is("no-charge"))
        PAWL_FLOW(pawl_run_command(run, &charge, NULL));
    point();
    return pawl_run_step(run, &ship, NULL);
}

/* The state has changed if a response came between: then it is computed again. */
static PawlFlow note(PawlRun *run)
{
    char patch[64];

    snprintf(patch, sizeof patch, "{\"bytes\":%zu}", strlen(pawl_run_state(run)));
    return pawl_run_patch(run, "note", patch, true);
}

/* Fails until the file EFFECTS.fixed is there. */
static PawlOutcome broken(PawlJob *job, void *context)
{
    char path[512];

    (void)context;
    snprintf(path, sizeof path, "%s.fixed", getenv("EFFECTS"));
    effect(job->type, job->command_id);
    if (access(path, F_OK) == 0)
        return PAWL_JOB_COMPLETE;
    pawl_job_error(job, "%s is broken", job->type);
    return PAWL_JOB_FAIL;
}

/* Paid by card, or else by an invoice, and then mailed. */
static PawlFlow payment(PawlRun *run)
{
    PawlStep card = {.name = "card", .body = broken}, invoice = {.name = "invoice", .body = plain};
    PawlStep mail = {.name = "mail", .body = broken};
    PawlCall call = {.name = "card", .domain = pawl_run_type(run), .type = "charge", .payload = "{}"};
    PawlFlow flow;

    if (is("handled-step"))
        flow = pawl_run_step(run, &card, NULL);
    else
        flow = is("handled-child") ? pawl_run_child(run, &call, NULL) : pawl_run_command(run, &call, NULL);
    pawl_run_result(run, "\"card\"");
    if (flow == PAWL_FLOW_FAILED) {
        pawl_run_result(run, "\"invoice\"");
        flow = pawl_run_step(run, &invoice, NULL);
    }
    PAWL_FLOW(flow);
    return pawl_run_step(run, &mail, NULL);
}

/* Pays three, with one name for all of them, or with one for each. */
static PawlFlow payout(PawlRun *run)
{
    char     input[8], name[16] = "pay";
    PawlStep pay = {.name = name, .input = input, .body = plain};

    for (int i = 1; i <= 3; i++) {
        snprintf(input, sizeof input, "%d", i);
        if (is("payout-each"))
            snprintf(name, sizeof name, "pay-%d", i);
        PAWL_FLOW(pawl_run_step(run, &pay, NULL));
    }
    return PAWL_FLOW_NEXT;
}

/* Calls two steps of one name. */
static PawlFlow twice(PawlRun *run)
{
    PawlStep reserve = {.name = "reserve", .input = "1", .body = plain};

    PAWL_FLOW(pawl_run_step(run, &reserve, NULL));
    PAWL_FLOW(pawl_run_sleep(run, "rest", 20));
    return pawl_run_step(run, &reserve, NULL);
}

/* A JSON string. */
static const char *large(void)
{
    static char text[LARGE_BYTES + 1];

    memset(text, 'x', LARGE_BYTES);
    text[0] = text[LARGE_BYTES - 1] = '"';
    return text;
}

/* Each event comes after the function was called and before it waits, so it is called again in the same activation. */
static PawlFlow events(PawlRun *run)
{
    static int  sent;
    const char *said;

    effect("call", pawl_run_id(run));
    pawl_run_result(run, large());
    for (int i = 0; i < 20; i++) {
        char       name[16];
        PawlWait   wait  = {.name = name, .response = "event"};
        PawlSignal event = {.process_id = pawl_run_id(run), .name = "event", .payload = "{}", .key = name};

        snprintf(name, sizeof name, "event-%d", i);
        if (i == sent && pawl_process_signal(library, &event, 0, NULL, NULL) == PAWL_OK)
            sent++;
        PAWL_FLOW(pawl_run_wait(run, &wait, &said));
    }
    pawl_run_result(run, "20");
    return PAWL_FLOW_NEXT;
}

/* Says its result after each of its calls. */
static PawlFlow results(PawlRun *run)
{
    for (int i = 0; i < 20; i++) {
        char      name[16];
        long long now;

        snprintf(name, sizeof name, "time-%d", i);
        PAWL_FLOW(pawl_run_time(run, name, &now));
        pawl_run_result(run, large());
    }
    pawl_run_result(run, "20");
    return PAWL_FLOW_NEXT;
}

static PawlFlow sends(PawlRun *run)
{
    for (int i = 0; i < 17; i++) {
        char     name[16];
        PawlCall call = {.name = name, .domain = pawl_run_type(run), .type = "charge", .payload = large()};

        snprintf(name, sizeof name, "send-%d", i);
        PAWL_FLOW(pawl_run_command(run, &call, NULL));
    }
    return PAWL_FLOW_NEXT;
}

/* The state that it is started with is large. */
static PawlFlow patches(PawlRun *run)
{
    effect("call", pawl_run_id(run));
    for (int i = 0; i < 272; i++) {
        char name[16];

        snprintf(name, sizeof name, "patch-%d", i);
        PAWL_FLOW(pawl_run_patch(run, name, "{\"a\":1}", false));
    }
    return PAWL_FLOW_NEXT;
}

static PawlFlow large_run(PawlRun *run)
{
    if (is("large-events"))
        return events(run);
    if (is("large-results"))
        return results(run);
    return is("large-sends") ? sends(run) : patches(run);
}

/* Its first call does not return by itself. */
static PawlOutcome asleep(PawlJob *job, PawlTx *tx, void *context)
{
    static atomic_int calls;

    (void)context;
    effect(job->type, job->command_id);
    if (pawl_query(tx, atomic_fetch_add(&calls, 1) == 0 ? "select pg_sleep(600)" : "select 1", 0, NULL, NULL) !=
        PAWL_OK)
        return PAWL_JOB_RETRY;
    return PAWL_JOB_COMPLETE;
}

static PawlOutcome heavy(PawlJob *job, void *context)
{
    (void)context;
    effect(job->type, job->command_id);
    pawl_job_result(job, large());
    return PAWL_JOB_COMPLETE;
}

/* The results of five steps are more than a process may have together. */
static PawlFlow heavy_run(PawlRun *run)
{
    for (int i = 1; i <= 5; i++) {
        char name[16];

        snprintf(name, sizeof name, "heavy-%d", i);
        PAWL_FLOW(pawl_run_step(run, &(PawlStep){.name = name, .body = heavy}, NULL));
    }
    return PAWL_FLOW_NEXT;
}

/* Labels the parcel, which it did not always do: "changed-0" is the function before the change, "changed-gone" the one without its code. */
static PawlFlow changed_go(PawlRun *run)
{
    PawlStep ship   = {.name = "ship", .body = plain};
    int      newest = is("changed-gone") ? 0 : variant[strlen("changed-")] - '0', version = is("changed-gone"), again;

    PAWL_FLOW(pawl_run_wait(run, &(PawlWait){.name = "go"}, NULL));
    point();
    if (newest > 0) {
        PAWL_FLOW(pawl_run_version(run, "label", newest, &version));
        point();
        PAWL_FLOW(pawl_run_version(run, "label", newest, &again));
        if (again != version)
            abort();
    }
    if (version > 0)
        PAWL_FLOW(
            pawl_run_step(run, &(PawlStep){.name = "print", .input = version == 1 ? "1" : "2", .body = plain}, NULL));
    point();
    PAWL_FLOW(pawl_run_wait(run, &(PawlWait){.name = "end"}, NULL));
    point();
    PAWL_FLOW(pawl_run_step(run, &ship, NULL));
    return pawl_run_wait(run, &(PawlWait){.name = "received"}, NULL);
}

static PawlFlow changed(PawlRun *run)
{
    PawlStep pack = {.name = "pack", .body = plain}, unpack = {.name = "unpack", .body = plain};
    PawlFlow flow;

    PAWL_FLOW(pawl_run_step(run, &pack, NULL));
    flow = changed_go(run);
    if (flow != PAWL_FLOW_FAILED)
        return flow;
    PAWL_FLOW(pawl_run_compensating(run));
    point();
    PAWL_FLOW(pawl_run_step(run, &unpack, NULL));
    point();
    return PAWL_FLOW_NEXT;
}

/* Takes one event in each life, and has the sum of all as its state; ends after so many lives as its first state says. */
static PawlFlow lives(PawlRun *run)
{
    PawlStep    count = {.name = "count", .tx_body = counted};
    const char *event;
    long        sum = 0, n = 0, most = 0;
    char        state[96];

    sscanf(pawl_run_input(run), "{\"sum\": %ld, \"most\": %ld}", &sum, &most);
    PAWL_FLOW(pawl_run_wait(run, &(PawlWait){.name = "event"}, &event));
    sscanf(event, "{\"n\": %ld}", &n);
    if (n != pawl_run_life(run)) {
        pawl_run_reason(run, "life %d has the event %ld", pawl_run_life(run), n);
        return PAWL_FLOW_FAILED;
    }
    point();
    PAWL_FLOW(pawl_run_step(run, &count, NULL));
    point();
    snprintf(state, sizeof state, "{\"sum\": %ld, \"most\": %ld}", sum + n, most);
    if (pawl_run_life(run) < most)
        return pawl_run_continue(run, state);
    pawl_run_result(run, state);
    return PAWL_FLOW_NEXT;
}

/* Continues before a step that is recorded, with a state that is none, or when it is to be compensated. */
static PawlFlow lives_wrong(PawlRun *run)
{
    PawlStep pack = {.name = "pack", .body = plain}, unpack = {.name = "unpack", .body = plain};
    PawlFlow flow;

    if (is("wrong-early") && access(getenv("EFFECTS"), F_OK) == 0)
        return pawl_run_continue(run, "{}");
    PAWL_FLOW(pawl_run_step(run, &pack, NULL));
    PAWL_FLOW(pawl_run_wait(run,
                            &(PawlWait){.name       = "event",
                                        .response   = is("wrong-cancel") ? "none" : "event",
                                        .timeout_ms = is("wrong-cancel") ? 1 : 0},
                            NULL));
    if (is("wrong-compensating"))
        PAWL_FLOW(pawl_run_compensating(run));
    if (is("wrong-cancel")) {
        char path[512];

        snprintf(path, sizeof path, "%s.canceled", getenv("EFFECTS"));
        while (access(path, F_OK) != 0)
            usleep(1000);
    }
    flow = pawl_run_continue(run, is("wrong-state") ? "[1]" : "{\"n\": 1}");
    if (flow != PAWL_FLOW_FAILED)
        return flow;
    PAWL_FLOW(pawl_run_compensating(run));
    return pawl_run_step(run, &unpack, NULL);
}

/* Asks for a version as the last thing that it does, or not any more. */
static PawlFlow ending(PawlRun *run)
{
    int version;

    PAWL_FLOW(pawl_run_step(run, &(PawlStep){.name = "pack", .body = plain}, NULL));
    if (is("ending-gone"))
        return PAWL_FLOW_NEXT;
    PAWL_FLOW(pawl_run_version(run, "label", is("ending-0") ? 0 : 1, &version));
    point();
    return PAWL_FLOW_NEXT;
}

static PawlOutcome fails(PawlJob *job, void *context)
{
    (void)context;
    pawl_job_error(job, "no");
    return PAWL_JOB_FAIL;
}

/* A race, with a timeout if its variant says so, and a wait for one of its names. */
static PawlFlow decides(PawlRun *run)
{
    const char *any[] = {"approved", "rejected", NULL}, *came, *first, *second = NULL;
    PawlWait    race = {.name = "decision", .any = any, .ret_response = &came};
    char        result[256];

    race.timeout_ms = is("decides-briefly") ? 1 : is("decides-moment") ? 30 : 0;
    PAWL_FLOW(pawl_run_wait(run, &race, &first));
    point();
    if (!is("decides-moment"))
        PAWL_FLOW(pawl_run_wait(run, &(PawlWait){.name = "confirmed", .response = "approved"}, &second));
    if (is("decides-fails"))
        PAWL_FLOW(pawl_run_step(run, &(PawlStep){.name = "last", .body = fails}, NULL));
    snprintf(result, sizeof result, "[\"%s\", %s, %s]", came ? came : "", first ? first : "null",
             second ? second : "null");
    pawl_run_result(run, result);
    return PAWL_FLOW_NEXT;
}

static PawlOutcome stock(PawlJob *job, void *context)
{
    (void)context;
    pawl_job_result(job, "{\"shelf\":\"\\u0041\",  \"id\":1e2,\"c\":[2.50, 1]}");
    return PAWL_JOB_COMPLETE;
}

/* The result of a step is the input of the next one: as the step gave it, and in a replay as it was recorded. */
static PawlFlow passes_on(PawlRun *run)
{
    const char *result, *approval;

    PAWL_FLOW(pawl_run_step(run, &(PawlStep){.name = "reserve", .body = stock}, &result));
    PAWL_FLOW(pawl_run_step(run, &(PawlStep){.name = "pack", .input = result, .body = plain}, NULL));
    PAWL_FLOW(pawl_run_wait(run, &(PawlWait){.name = "approval"}, &approval));
    return pawl_run_step(run, &(PawlStep){.name = "ship", .input = approval, .body = plain}, NULL);
}

/* Reports, and fails once; the second attempt's result is what the first one has reported. The other step has reported nothing. */
static PawlOutcome report(PawlJob *job, void *context)
{
    const char *last = pawl_job_last_progress(job);

    if (strcmp(context, "other") == 0) {
        pawl_job_result(job, last ? "true" : "false");
        return PAWL_JOB_COMPLETE;
    }
    if (!last) {
        pawl_job_error(job, "%s", pawl_job_progress(job, 60, "boxes") ? "refused" : "reported");
        return PAWL_JOB_RETRY;
    }
    pawl_job_result(job, last);
    return PAWL_JOB_COMPLETE;
}

static PawlFlow reporting(PawlRun *run)
{
    static char packed[] = "pack", other[] = "other";
    const char *result;

    PAWL_FLOW(
        pawl_run_step(run, &(PawlStep){.name = packed, .body = report, .context = packed, .delay_ms = 1}, &result));
    pawl_run_result(run, result);
    return pawl_run_step(run, &(PawlStep){.name = other, .body = report, .context = other}, NULL);
}

static PawlFlow order(PawlRun *run, void *context)
{
    const char        *stock;
    PawlStep           reserve = {.name = "reserve", .input = is("input") ? "2" : "1", .body = plain, .delay_ms = 1};
    PawlStep           count = {.name = "count", .tx_body = counted}, release = {.name = "release", .body = plain};
    unsigned long long number;
    long long          began;
    char               result[128];
    PawlFlow           flow;

    (void)context;
    if (is("passes-on"))
        return passes_on(run);
    if (strncmp(variant, "handled-", 8) == 0)
        return payment(run);
    if (strncmp(variant, "payout", 6) == 0)
        return payout(run);
    if (strncmp(variant, "large-", 6) == 0)
        return large_run(run);
    if (is("lives"))
        return lives(run);
    if (strncmp(variant, "wrong-", 6) == 0)
        return lives_wrong(run);
    if (strncmp(variant, "changed-", 8) == 0)
        return changed(run);
    if (strncmp(variant, "ending-", 7) == 0)
        return ending(run);
    if (strncmp(variant, "decides-", 8) == 0)
        return decides(run);
    if (is("heavy"))
        return heavy_run(run);
    if (is("progress"))
        return reporting(run);
    if (is("asleep"))
        return pawl_run_step(run, &(PawlStep){.name = "asleep", .tx_body = asleep, .attempts = 1, .timeout_ms = 600000},
                             NULL);
    if (is("twice"))
        return twice(run);
    if (is("short"))
        return PAWL_FLOW_NEXT;
    if (is("disapproved")) {
        pawl_run_reason(run, "it was not approved");
        return PAWL_FLOW_FAILED;
    }
    if (is("silent"))
        return PAWL_FLOW_FAILED;
    if (is("sleep"))
        return pawl_run_sleep(run, "rest", -5);
    if (is("wait"))
        return pawl_run_wait(run, &(PawlWait){.name = "answer", .timeout_ms = -5}, &stock);
    if (is("send"))
        return pawl_run_command(run, &(PawlCall){.name = "ask", .domain = "d", .type = "t", .timeout_ms = -5}, &stock);
    if (is("both"))
        return pawl_run_step(run, &(PawlStep){.name = "pack", .body = plain, .tx_body = counted}, &stock);
    if (is("neither"))
        return pawl_run_step(run, NULL, &stock);
    if (is("swapped"))
        PAWL_FLOW(pawl_run_step(run, &count, NULL));
    if (is("kind"))
        PAWL_FLOW(pawl_run_sleep(run, "reserve", 1));
    else
        PAWL_FLOW(pawl_run_step(run, &reserve, &stock));
    point();
    if (!is("swapped"))
        PAWL_FLOW(pawl_run_step(run, &count, NULL));
    PAWL_FLOW(pawl_run_time(run, "began", &began));
    PAWL_FLOW(pawl_run_random(run, "number", &number));
    PAWL_FLOW(note(run));
    point();
    flow = order_go(run);
    if (flow == PAWL_FLOW_FAILED && is("impatient"))
        return flow;
    if (flow == PAWL_FLOW_FAILED) {
        PAWL_FLOW(pawl_run_compensating(run));
        point();
        PAWL_FLOW(pawl_run_step(run, &release, NULL));
        return PAWL_FLOW_NEXT;
    }
    snprintf(result, sizeof result, "{\"stock\":%s,\"began\":%lld,\"number\":%llu}",
             flow == PAWL_FLOW_NEXT ? stock : "0", began, number);
    pawl_run_result(run, result);
    point();
    return flow;
}

static void stop(int signal)
{
    (void)signal;
    pawl_worker_stop(worker);
}

static PawlStatus run(Pawl *pawl, const char *domain, PawlError *error)
{
    const char *types[] = {domain,
                           NULL}; /* a type of its own in each domain, and commands in the domain of this name */
    PawlWork    options = {.domain = domain, .types = types, .process = order, .concurrency = 2};
    PawlStatus  status;

    library          = pawl;
    options.lease_ms = (int)strtol(getenv("LEASE_MS"), NULL, 10);
    status           = pawl_worker_open(pawl, &options, &worker, error);
    if (status != PAWL_OK)
        return status;
    signal(SIGTERM, stop);
    status = pawl_worker_run(worker, error);
    signal(SIGTERM, SIG_DFL);
    pawl_worker_close(worker);
    return status;
}

static PawlStatus start(Pawl *pawl, int argc, char **argv, PawlError *error)
{
    PawlStart  order_start = {.type        = argv[3],
                              .domain      = argv[3],
                              .state       = argv[4],
                              .process_id  = argv[5],
                              .actor       = "test",
                              .deadline    = argc > 7 ? argv[6] : NULL,
                              .on_deadline = argc > 7 ? argv[7] : NULL};
    PawlSent   sent;
    PawlStatus status = pawl_process_start(pawl, &order_start, 0, &sent, error);

    if (status == PAWL_OK)
        printf("%s %s\n", sent.id, sent.is_new ? "new" : "known");
    return status;
}

static void verdicts_print(const PawlSent *sent, int count)
{
    for (int i = 0; i < count; i++)
        printf("%s %s\n", sent[i].id,
               sent[i].error.status == PAWL_OK ? sent[i].is_new ? "new" : "known" : sent[i].error.text);
}

typedef struct {
    const PawlStart *starts;
    int              count;
} Starts;

static PawlStatus many_body(PawlTx *tx, void *context)
{
    const Starts *starts = context;
    PawlSent      sent[9];
    PawlStatus    status = pawl_tx_process_start_many(tx, starts->starts, starts->count, sent);

    verdicts_print(sent, starts->count);
    return status == PAWL_REFUSED ? PAWL_OK : status; /* a refusal does not abort it */
}

static PawlStatus many(Pawl *pawl, int argc, char **argv, PawlError *error)
{
    PawlStart  starts[9];
    PawlSent   sent[9];
    int        count = argc - 6 < 9 ? argc - 6 : 9;
    PawlStatus status;

    for (int i = 0; i < count; i++)
        starts[i] = (PawlStart){.type       = argv[3],
                                .domain     = argv[3],
                                .process_id = argv[6 + i],
                                .delay_ms   = atoll(argv[4]),
                                .priority   = (int)atoll(argv[5])};
    status = pawl_process_start_many(pawl, starts, count, 0, sent, error);
    verdicts_print(sent, count);
    if (status != PAWL_OK && status != PAWL_REFUSED)
        return status;
    return pawl_transaction(pawl, &(PawlTransaction){.name = "many"}, many_body, &(Starts){starts, count}, error);
}

static PawlStatus give(Pawl *pawl, char **argv, PawlError *error)
{
    PawlSignal  response = {.process_id = argv[3], .name = argv[4], .payload = argv[5], .key = argv[6]};
    const char *verdict;
    PawlStatus  status = pawl_process_signal(pawl, &response, 0, &verdict, error);

    if (status == PAWL_OK)
        printf("%s\n", verdict);
    return status;
}

int main(int argc, char **argv)
{
    Pawl      *pawl = NULL;
    PawlError  error;
    PawlStatus status = argc < 4 ? PAWL_REFUSED : pawl_open(argv[1], &pawl, &error);

    if (argc < 4)
        return 2;
    if (status == PAWL_OK && strcmp(argv[2], "run") == 0) {
        variant = argc > 4 ? argv[4] : "";
        status  = run(pawl, argv[3], &error);
    } else if (status == PAWL_OK && strcmp(argv[2], "start") == 0 && (argc == 6 || argc == 8)) {
        status = start(pawl, argc, argv, &error);
    } else if (status == PAWL_OK && strcmp(argv[2], "many") == 0 && argc > 6) {
        status = many(pawl, argc, argv, &error);
    } else if (status == PAWL_OK && argc == 7) {
        status = give(pawl, argv, &error);
    }
    if (status != PAWL_OK)
        fprintf(stderr, "%d %s\n", (int)status, error.text);
    pawl_close(pawl);
    return status == PAWL_OK ? 0 : 1;
}
