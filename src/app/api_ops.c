/*
 * api_ops.c - health, metrics, alerts and the description of the interface.
 */
#include "app/api.h"
#include "app/daemon.h"
#include "base/problem.h"
#include "ops/exposition.h"
#include "pg/tx.h"
#include "sql.h"

ErrorCode api_live(void *context, Request *request, Response *response, Error *reterr)
{
    (void)context;
    (void)request;
    (void)reterr;
    text_append(&response->body, "{\"status\":\"live\"}");
    return OK;
}

static ErrorCode ask_database(Tx *tx, void *context, Error *reterr)
{
    return db_get_i64(tx, sql_app_ready, DB_NONE, context, reterr);
}

ErrorCode api_ready(void *context, Request *request, Response *response, Error *reterr)
{
    Daemon   *daemon = context;
    int64_t   one;
    ErrorCode code;
    TxOptions options = {.name      = "ready",
                         .deadline  = request_deadline(request),
                         .arena     = request_arena(request),
                         .tries_max = 2, /* a restart leaves dead connections behind: the second one is fresh */
                         .read_only = true};

    if (atomic_load(&daemon->stopping))
        return fail(reterr, ERR_STOPPING, "shutting down");
    code = tx_run(daemon->app->pool, &options, ask_database, &one, reterr);
    if (code != OK) /* anyone may ask: the words that name hosts and users are for the log */
        return fail(reterr, code, "database not ready: %s%s%s", error_text(code),
                    reterr->sqlstate[0] ? ", SQLSTATE " : "", arena_text(request_arena(request), reterr->sqlstate));
    text_append(&response->body, "{\"status\":\"ready\"}");
    return OK;
}

ErrorCode api_metrics(void *context, Request *request, Response *response, Error *reterr)
{
    (void)context;
    (void)request;
    (void)reterr;
    response->type = EXPOSITION_TYPE;
    exposition_write(&response->body);
    return OK;
}

ErrorCode api_alerts(void *context, Request *request, Response *response, Error *reterr)
{
    Daemon *daemon = context;
    Alert   list[ALERT_COUNT];

    (void)request;
    (void)reterr;
    alerts_list(daemon->alerts, list);
    text_append(&response->body, "{\"items\":[");
    for (int i = 0; i < ALERT_COUNT; i++) {
        text_append(&response->body, i ? "," : "");
        alert_write(&list[i], &response->body);
    }
    text_append(&response->body, "]}");
    return OK;
}

ErrorCode api_openapi(void *context, Request *request, Response *response, Error *reterr)
{
    Daemon *daemon = context;

    (void)request;
    (void)reterr;
    text_append(&response->body, daemon->openapi);
    return OK;
}

ErrorCode api_problem(void *context, Request *request, Response *response, Error *reterr)
{
    const char    *type    = request_capture(request, "type");
    const Problem *problem = problem_find(type);

    (void)context;
    if (!problem)
        return fail(reterr, ERR_NOT_FOUND, "no problem has the type \"%.64s\"", type);
    response->type = "text/plain; charset=utf-8";
    text_print(&response->body, "%s\n\nStatus %d: %s\n\n%s\n%s\n", problem->type, error_http(problem->code),
               error_text(problem->code), problem->meaning, problem->action);
    return OK;
}
