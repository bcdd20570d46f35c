/*
 * command_db.c - pawl db: the private PostgreSQL.
 */
#include "base/writer.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cluster/cluster.h"

#define STOP_MS 30000

/* A URL is a user's text: it may hold quotes. */
static void url_json(Call *call, const char *url, bool running)
{
    Writer *writer = print_writer(call->arena);

    writer_object(writer, NULL);
    if (running)
        writer_bool(writer, "running", true);
    writer_text(writer, "url", url);
    writer_end(writer);
    print_json(writer);
}

static ErrorCode refuse_given_url(const Call *call, const char *verb, Error *reterr)
{
    if (!call->app->settings.database_url)
        return OK;
    return fail(reterr, ERR_USAGE, "pawl db %s is for the private PostgreSQL, but PAWL_DATABASE_URL names another one",
                verb);
}

ErrorCode command_db_start(Call *call, Error *reterr)
{
    scoped(cluster_close) Cluster *cluster = NULL;
    ClusterOptions                 options = {.keep = true};

    TRY(call_open(call, APP_SETTINGS, reterr));
    TRY(refuse_given_url(call, "start", reterr));
    options.home = call->app->settings.home;
    TRY(cluster_open(&options, deadline_in_ms(APP_START_MS), &cluster, reterr));
    if (call->json)
        url_json(call, cluster_url_app(cluster), /* running= */ true);
    else
        printf("running: %s\n", cluster_url_app(cluster));
    return OK;
}

ErrorCode command_db_stop(Call *call, Error *reterr)
{
    ClusterOptions options = {0};

    TRY(call_open(call, APP_SETTINGS, reterr));
    TRY(refuse_given_url(call, "stop", reterr));
    options.home = call->app->settings.home;
    TRY(cluster_stop(&options, call_flag(call, "--force") != NULL, deadline_in_ms(STOP_MS), reterr));
    printf(call->json ? "{\"running\":false}\n" : "stopped\n");
    return OK;
}

static void status_json(Call *call, const ClusterStatus *status)
{
    Writer *writer = print_writer(call->arena);

    writer_object(writer, NULL);
    writer_bool(writer, "initialised", status->initialised);
    writer_bool(writer, "running", status->running);
    writer_i64(writer, "pid", status->pid);
    writer_text(writer, "version", status->version);
    writer_text(writer, "url", status->url_app);
    writer_text(writer, "admin_url", status->url_admin);
    writer_text(writer, "data", status->data_dir);
    writer_text(writer, "log", status->log_file);
    writer_end(writer);
    print_json(writer);
}

ErrorCode command_db_status(Call *call, Error *reterr)
{
    ClusterOptions options = {0};
    ClusterStatus  status;

    TRY(call_open(call, APP_SETTINGS, reterr));
    TRY(refuse_given_url(call, "status", reterr));
    options.home = call->app->settings.home;
    TRY(cluster_status(&options, call->arena, &status, reterr));
    if (call->json) {
        status_json(call, &status);
        return OK;
    }
    printf("%s", !status.initialised ? "not initialised yet" : status.running ? "running" : "not running");
    if (status.running)
        printf(", pid %d", status.pid);
    printf("\nversion  %s\nurl      %s\ndata     %s\nlog      %s\n", status.version ? status.version : "-",
           status.url_app, status.data_dir, status.log_file);
    return OK;
}

ErrorCode command_db_url(Call *call, Error *reterr)
{
    ClusterOptions options = {0};
    ClusterStatus  status  = {0};
    const char    *url;

    TRY(call_open(call, APP_SETTINGS, reterr));
    options.home = call->app->settings.home;
    url          = call->app->settings.database_url;
    if (!url) {
        TRY(cluster_status(&options, call->arena, &status, reterr));
        url = call_flag(call, "--admin") ? status.url_admin : status.url_app;
    }
    if (call->json)
        url_json(call, url, /* running= */ false);
    else
        printf("%s\n", url);
    return OK;
}
