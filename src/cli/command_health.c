/*
 * command_health.c - ask a daemon whether it can serve requests, for scripts and for the health checks of containers.
 */
#include <string.h>

#include "cli/print.h"
#include "cli/remote.h"
#include "http/server.h"

/* What listens on every address listens on this one. */
static const char *address_reached(const char *host)
{
    if (strcmp(host, "0.0.0.0") == 0)
        return "127.0.0.1";
    return strcmp(host, "::") == 0 ? "::1" : host;
}

/* The URL of the daemon of this machine, as PAWL_LISTEN says where it listens. */
static ErrorCode listen_url(Call *call, const char **ret_url, Error *reterr)
{
    char        host[SERVER_HOST_SIZE];
    const char *port, *reached;

    TRY(server_address(call->app->settings.listen, host, &port, reterr));
    if (strcmp(port, "0") == 0)
        return fail(reterr, ERR_USAGE, "PAWL_LISTEN leaves the port to the daemon: name its URL");
    reached  = address_reached(host);
    *ret_url = strchr(reached, ':') ? arena_print(call->arena, "http://[%s]:%s", reached, port)
                                    : arena_print(call->arena, "http://%s:%s", reached, port);
    return OK;
}

ErrorCode command_health(Call *call, Error *reterr)
{
    const char *status;
    RemoteReply reply;

    TRY(call_open(call, APP_SETTINGS, reterr));
    if (call->count > 0)
        call->app->settings.url = call->arguments[0];
    else if (!call->app->settings.url)
        TRY(listen_url(call, &call->app->settings.url, reterr));
    if (client_check_url(call->app->settings.url, NULL) != OK)
        return fail(reterr, ERR_USAGE, "URL must be like http://127.0.0.1:8080, got \"%.80s\"",
                    call->app->settings.url);
    TRY(remote_send(call, &(RemoteRequest){CLIENT_GET, "/health/ready"}, call->arena, &reply, reterr));
    status = value_text(value_field(reply.body, "status"), call->arena);
    if (!status)
        return fail(reterr, ERR_USAGE, "URL must be that of pawl serve: its answer has no status");
    printf(call->json ? "{\"status\":\"%s\"}\n" : "%s\n", status);
    return OK;
}
