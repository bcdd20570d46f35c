/*
 * module.c - what module pg contributes; see base/module.h.
 */
#include "base/module.h"

#include "pg/metric.h"

PgMetrics pg_metrics = {PG_METRICS(METRIC_INIT)};

static const MetricTable metric_table = METRIC_TABLE(NULL, pg_metrics);

/* PostgreSQL's own SQLSTATEs and their classes. */
/* clang-format off */
static const SqlState states[] = {
    {"08", ERR_UNAVAILABLE, .is_outage = true},
    {"08007", ERR_UNKNOWN, .is_outage = true}, /* transaction resolution unknown */
    {"0A000", ERR_INTERNAL},
    {"22", ERR_INVALID},
    {"23", ERR_CONFLICT},
    {"23502", ERR_INVALID}, /* a missing value and a check that fails are bad input, not a conflict */
    {"23514", ERR_INVALID},
    {"25006", ERR_UNAVAILABLE}, /* read-only: a failover left us on a standby, which is no outage */
    {"25P03", ERR_UNAVAILABLE}, /* idle in transaction for too long: the session is gone, not the server */
    {"25P04", ERR_UNAVAILABLE}, /* transaction_timeout: likewise */
    {"28", ERR_REFUSED}, /* password, pg_hba.conf: a retry does not help */
    {"3D000", ERR_REFUSED}, /* no such database */
    {"40", ERR_BUSY}, /* deadlock, serialization failure: the transaction is retried */
    {"40003", ERR_UNKNOWN}, /* statement completion unknown: the one of its class that may have committed */
    {"42", ERR_INTERNAL}, /* a defect in our SQL */
    {"42501", ERR_DENIED},
    {"53", ERR_UNAVAILABLE, .is_outage = true}, /* insufficient resources, such as memory */
    {"53100", ERR_UNAVAILABLE}, /* disk full: writes fail, reads go on, so the breaker must not refuse them */
    {"53300", ERR_BUSY}, /* too many connections: the server answers, and a connection may become free */
    {"55006", ERR_BUSY}, /* object in use */
    {"55P03", ERR_BUSY}, /* lock not available: lock_timeout or nowait */
    {"57", ERR_BUSY}, /* operator intervention */
    {"57014", ERR_TIMEOUT}, /* a canceled statement is no outage */
    {"57P", ERR_UNAVAILABLE, .is_outage = true}, /* shutting down, crashed, starting up */
    {"58", ERR_UNAVAILABLE, .is_outage = true}, /* I/O error under the server */
    {"XX", ERR_INTERNAL},
    {0}
};
/* clang-format on */

static const Module pg_module = {.name = "pg", .metrics = {&metric_table}, .states = states};
MODULE_JOIN(pg_module)
