/*
 * daemon_threads_test.c - the whole daemon in this process: HTTP server, executors, key cache, periodic tasks, listener, pool and
 * janitor, asked by eight clients at once, while keys come and go and backends die, and stopped by SIGTERM in the middle
 * of it. What the thread sanitizer has to say about it is part of the test.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/daemon.h"
#include "test/concurrency/keyed_insert.h"
#include "test/harness/database.h"
#include "test/harness/test.h"
#include "test/unit/http/raw.h"

#define CLIENTS      8
#define ADMIN_TOKEN  "the-admin-of-this-test"
#define CALM_SECONDS 5
#define LIFE_MS      100 /* between one backend's death and the next */

/* What clients request, with which token, and which statuses they may get. 503: the thread that handles it lost its backend. */
static const struct {
    const char *request, *token;
    int         status, status_or;
    const char *body; /* NULL: none */
} asks[] = {
    {"GET /health/live", NULL, 200, 200},
    {"GET /health/ready", NULL, 200, 503},
    {"GET /metrics", ADMIN_TOKEN, 200, 200},
    {"GET /v1/alerts", ADMIN_TOKEN, 200, 200},
    {"GET /v1/dead-letters?limit=5", ADMIN_TOKEN, 200, 503},
    {"POST /v1/dead-letters/7/retry", ADMIN_TOKEN, 200, 503},
    {"DELETE /v1/dead-letters/999999", ADMIN_TOKEN, 404, 503},
    {"GET /v1/dead-letters", "pawl_of-the-right-length-but-nobody-knows-it----", 401, 503},
    {"GET /v1/dead-letters", NULL, 401, 401},
    {"POST /v1/commands", ADMIN_TOKEN, 201, 503, "{\"domain\":\"shop\",\"type\":\"pack\"}"},
    {"POST /v1/domains/shop/claim", ADMIN_TOKEN, 200, 503, "{\"limit\":2,\"wait_s\":0.05}"},
    {"POST /v1/domains/idle/claim", ADMIN_TOKEN, 200, 503, "{\"limit\":1,\"wait_s\":0.05}"},
    {"POST /v1/wallets/nobody/topup", ADMIN_TOKEN, 404, 503,
     "{\"txn_id\":\"7f000000-0000-4000-8000-000000000001\",\"amount\":1}"},
    {"POST /v1/transfers", ADMIN_TOKEN, 400, 400, "{\"from\":\"ann\",\"to\":\"ann\",\"amount\":1}"},
};

typedef struct {
    const char *url;
    PGconn     *killer; /* for backends, the director's own */
    int         ready;  /* the daemon's standard output */
    int         port;
    atomic_bool stopping, stop;
    atomic_int  answers, unexpected, keys_used;
} Stage;

static void request_write(char *text, size_t size, const char *request, const char *token, const char *body)
{
    snprintf(text, size, "%s HTTP/1.1\r\nHost: x\r\n%s%s%sContent-Length: %zu\r\n\r\n%s", request,
             token ? "Authorization: Bearer " : "", token ? token : "", token ? "\r\n" : "", body ? strlen(body) : 0,
             body ? body : "");
}

static void answer_check(Stage *stage, const Answer *answer, int status, int status_or, const char *request)
{
    /* While it stops it may say so, or be gone. */
    bool stopped = atomic_load(&stage->stopping) && (answer->status == 503 || answer->status == 0);

    atomic_fetch_add(&stage->answers, answer->status != 0);
    if (answer->status == status || answer->status == status_or || stopped)
        return;
    atomic_fetch_add(&stage->unexpected, 1);
    fprintf(stderr, "%s: %d, not %d: %s\n", request, answer->status, status, answer->body);
}

/* Several requests on one connection, as clients do. false: that was the last one. */
static bool client_talk(Stage *stage, Raw *client)
{
    char text[512];

    raw_open(client, stage->port);
    for (size_t i = 0; i < COUNT(asks); i++) {
        request_write(text, sizeof text, asks[i].request, asks[i].token, asks[i].body);
        raw_send(client, text);
        Answer answer = raw_read(client);

        answer_check(stage, &answer, asks[i].status, asks[i].status_or, asks[i].request);
        if (answer.status == 0)
            break;
    }
    raw_done(client);
    return !atomic_load(&stage->stop);
}

static void *client_run(void *context)
{
    Raw *client = calloc(1, sizeof *client);

    if (!client)
        abort();
    while (client_talk(context, client))
        ;
    free(client);
    return NULL;
}

/* A key is made, used and revoked, again and again. */
static void *keys_run(void *context)
{
    Stage *stage = context;
    Pool  *pool  = NULL;

    if (pool_new(&(PoolOptions){.conninfo = stage->url, .application_name = "keys", .size_max = 1}, &pool, NULL) != OK)
        abort();
    for (int n = 0; !atomic_load(&stage->stopping); n++) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        char                      token[KEY_TOKEN_SIZE], name[32], text[512];
        KeyName                   revoked;
        int64_t                   id;

        snprintf(name, sizeof name, "key%d", n);
        if (key_create(pool, deadline_in_ms(5000), &(KeyNew){.name = name, .scopes = SCOPE_READ, .ttl_ms = 0}, token,
                       &id, NULL) != OK)
            continue;
        request_write(text, sizeof text, "GET /v1/dead-letters", token, NULL);
        Answer answer = raw_ask(stage->port, text);
        answer_check(stage, &answer, 200, 503, "GET /v1/dead-letters with a new key");
        atomic_fetch_add(&stage->keys_used, answer.status == 200);
        (void)!key_revoke(pool, deadline_in_ms(5000), arena, name, NULL, NULL, &revoked, NULL);
    }
    pool_free(pool);
    return NULL;
}

/* Clients that leave while their request waits, or while it is under way. */
static void *leavers_run(void *context)
{
    Stage *stage  = context;
    Raw   *client = calloc(1, sizeof *client);
    char   text[512];

    if (!client)
        abort();
    for (int n = 0; !atomic_load(&stage->stopping); n++) {
        request_write(text, sizeof text, n % 2 ? "POST /v1/domains/idle/claim" : "POST /v1/domains/shop/claim",
                      ADMIN_TOKEN, "{\"limit\":1,\"wait_s\":30}");
        raw_open(client, stage->port);
        raw_send(client, text);
        if (n % 3)
            clock_sleep_ms(2); /* sometimes it waits by then, sometimes it does not */
        raw_done(client);
    }
    free(client);
    return NULL;
}

/* "pawl is ready on http://127.0.0.1:43211" */
static int port_read(int fd)
{
    char    line[256];
    size_t  filled = 0;
    ssize_t size;

    while (filled < sizeof line - 1 && (size = read(fd, line + filled, sizeof line - 1 - filled)) > 0) {
        filled += (size_t)size;
        line[filled] = '\0';
        if (strchr(line, '\n'))
            return (int)strtol(strrchr(line, ':') + 1, NULL, 10);
    }
    return 0;
}

static void backends_die(Stage *stage, int seconds)
{
    for (Deadline end = deadline_in_ms(seconds * 1000); !deadline_passed(end); clock_sleep_ms(LIFE_MS))
        PQclear(PQexec(
            stage->killer,
            "select pg_terminate_backend(pid) from (select pid from pg_stat_activity "
            "where application_name = 'pawl' and datname = current_database() order by random() limit 1) victim"));
}

/* The main thread belongs to the daemon. */
static void *director_run(void *context)
{
    Stage    *stage = context;
    pthread_t threads[CLIENTS + 2];

    stage->port = port_read(stage->ready);
    if (stage->port) {
        threads[CLIENTS]     = thread_start("keys", keys_run, stage);
        threads[CLIENTS + 1] = thread_start("leavers", leavers_run, stage);
        for (int i = 0; i < CLIENTS; i++)
            threads[i] = thread_start("client", client_run, stage);
        backends_die(stage, CALM_SECONDS);
        atomic_store(&stage->stopping, true);
    }
    kill(getpid(), SIGTERM);
    atomic_store(&stage->stop, true);
    for (int i = 0; i < CLIENTS + 2 && stage->port; i++)
        thread_join(threads[i]);
    return NULL;
}

/* Run the daemon with its standard output in our hands: what it says there is not TAP. */
static ErrorCode daemon_play(Stage *stage, Error *reterr)
{
    const SettingFlag flags[] = {
        {"PAWL_DATABASE_URL", stage->url                      },
        {"PAWL_HOME",         harness_setting("PAWL_TEST_RUN")},
        {"PAWL_LISTEN",       "127.0.0.1:0"                   },
        {"PAWL_ADMIN_TOKEN",  ADMIN_TOKEN                     },
        {"PAWL_POOL_MAX",     "6"                             },
        {"PAWL_HEALTH_EVERY", "100ms"                         },
        {"PAWL_DLQ_EVERY",    "100ms"                         },
        {"PAWL_BREAKER_OPEN", "100ms"                         },
        {"PAWL_LOG",          "off"                           },
        {NULL,                NULL                            },
    };
    int       pipes[2], output = dup(STDOUT_FILENO);
    ErrorCode code;

    fflush(stdout);
    assert_return_code(pipe(pipes), 0);
    assert_return_code(dup2(pipes[1], STDOUT_FILENO), 0);
    close(pipes[1]);
    stage->ready       = pipes[0];
    pthread_t director = thread_start("director", director_run, stage);
    code               = daemon_run(&(SettingsGiven){.flags = flags}, reterr);
    fflush(stdout);
    dup2(output, STDOUT_FILENO); /* also the end of the pipe: a director that waits for a port gives up */
    thread_join(director);
    close(output);
    close(pipes[0]);
    return code;
}

TEST(daemon_under_eight_clients_and_sigterm)
{
    scoped(database_free) TestDatabase *db    = database_new();
    Stage                               stage = {.url = database_url(db), .killer = database_connect(db)};
    Error                               error = {0};

    database_exec(db, "select pawl.dead_letter_put(array_agg(text 'pay'), array_agg('k' || n), array_agg('{}'::jsonb), "
                      "array_agg(text 'late'), array_agg(text 'late'), 1000) from generate_series(1, 20) n");
    assert_ok(daemon_play(&stage, &error));
    print_message("# %d answers, %d keys made, used and revoked\n", atomic_load(&stage.answers),
                  atomic_load(&stage.keys_used));
    assert_int_equal(0, atomic_load(&stage.unexpected));
    assert_true(atomic_load(&stage.answers) > 100);
    assert_true(atomic_load(&stage.keys_used) > 0);
    assert_int_equal(20, database_get_i64(db, "select count(*) from pawl.failed_operations where status = 'pending'"));
    PQfinish(stage.killer);
}
