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
    {HTTP_DELETE, "/v1/dead-letters/{id}", api_dead_letter_delete, SCOPE_ADMIN, .summary = "Forget one"},
};
/* clang-format on */

const RouteTable routes_table = {rows, COUNT(rows)};
