/*
 * routes.c - see routes.h.
 */
#include "app/routes.h"

#include "app/api.h"

/* clang-format off */
static const Route rows[] = {
    {HTTP_GET, "/health/live", api_live, SCOPE_NONE, .at_once = true,
     .summary = "Is the process alive? Never asks the database"},
    {HTTP_GET, "/health/ready", api_ready, SCOPE_NONE, .deadline_ms = 2000,
     .summary = "Can it serve requests? 503 says why not"},
    {HTTP_GET, "/metrics", api_metrics, SCOPE_READ, .at_once = true, .summary = "Metrics in Prometheus' text format"},
    {HTTP_GET, "/openapi.json", api_openapi, SCOPE_READ, .at_once = true, .summary = "This description"},
    {HTTP_GET, "/v1/alerts", api_alerts, SCOPE_READ, .at_once = true, .summary = "Every alert and its state"},
    {HTTP_GET, "/v1/dead-letters", api_dead_letter_list, SCOPE_READ, .parameters = api_dead_letter_parameters,
     .summary = "Operations that failed, newest first"},
    {HTTP_POST, "/v1/dead-letters/{id}/retry", api_dead_letter_retry, SCOPE_ADMIN,
     .summary = "Try one again at once; its count of retries starts again"},
    {HTTP_POST, "/v1/commands", api_command_send, SCOPE_COMMAND, .body = &api_command_send_body,
     .summary = "Send a command; sent twice it is one command"},
    {HTTP_GET, "/v1/commands", api_command_list, SCOPE_READ, .parameters = api_command_parameters,
     .summary = "Commands, newest first"},
    {HTTP_POST, "/v1/commands/batch", api_command_batch, SCOPE_COMMAND, .body = &api_command_batch_body,
     .summary = "Send many commands as one batch"},
    {HTTP_GET, "/v1/commands/{id}", api_command_show, SCOPE_READ, .summary = "One command with its attempts and audit"},
    {HTTP_POST, "/v1/commands/{id}/cancel", api_command_cancel, SCOPE_COMMAND, .body = &api_decide_body,
     .summary = "Cancel: at once while it waits, at the next heartbeat while it runs"},
    {HTTP_GET, "/v1/batches/{id}", api_batch_show, SCOPE_READ, .summary = "A batch and how far it is"},
    {HTTP_POST, "/v1/batches/{id}/seal", api_batch_seal, SCOPE_COMMAND, .summary = "No more commands will be added"},
    {HTTP_POST, "/v1/domains/{domain}/claim", api_claim, SCOPE_COMMAND, .deadline_ms = 70000, .body = &api_claim_body,
     .summary = "Lease commands to a worker; waits for work with wait_s"},
    {HTTP_POST, "/v1/domains/{domain}/settle", api_settle, SCOPE_COMMAND, .body = &api_settle_body,
     .summary = "Say how leased commands ended; a verdict for each"},
    {HTTP_POST, "/v1/domains/{domain}/extend", api_extend, SCOPE_COMMAND, .body = &api_extend_body,
     .summary = "Keep leases for longer"},
    {HTTP_GET, "/v1/tsq", api_tsq_list, SCOPE_READ, .parameters = api_tsq_parameters,
     .summary = "Commands that wait for an operator"},
    {HTTP_POST, "/v1/tsq/{id}/retry", api_tsq_retry, SCOPE_COMMAND, .body = &api_decide_body,
     .summary = "Try it again; its attempts begin anew"},
    {HTTP_POST, "/v1/tsq/{id}/cancel", api_tsq_cancel, SCOPE_COMMAND, .body = &api_decide_body, .summary = "Give it up"},
    {HTTP_POST, "/v1/tsq/{id}/complete", api_tsq_complete, SCOPE_COMMAND, .body = &api_decide_body,
     .summary = "It is done; with a result if there is one"},
    {HTTP_DELETE, "/v1/dead-letters/{id}", api_dead_letter_delete, SCOPE_ADMIN, .summary = "Forget one"},
};
/* clang-format on */

const RouteTable routes_table = {rows, COUNT(rows)};
