/*
 * metric.h - what the HTTP server counts.
 */
#ifndef HTTP_METRIC_H
#define HTTP_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define HTTP_METRICS(X) \
    X(status_1xx,  COUNTER,   "pawl_http_requests_total",  "code=\"1xx\"", "requests answered, by class of status") \
    X(status_2xx,  COUNTER,   "pawl_http_requests_total",  "code=\"2xx\"", "requests answered, by class of status") \
    X(status_3xx,  COUNTER,   "pawl_http_requests_total",  "code=\"3xx\"", "requests answered, by class of status") \
    X(status_4xx,  COUNTER,   "pawl_http_requests_total",  "code=\"4xx\"", "requests answered, by class of status") \
    X(status_5xx,  COUNTER,   "pawl_http_requests_total",  "code=\"5xx\"", "requests answered, by class of status") \
    X(queue,       GAUGE,     "pawl_http_queue",           "",             "requests waiting for an executor") \
    X(shed,        COUNTER,   "pawl_http_shed_total",      "",             "requests refused because the queue was full") \
    X(connections, GAUGE,     "pawl_http_connections",     "",             "client connections open") \
    X(unsent,      GAUGE,     "pawl_http_unsent_bytes",    "",             "bytes of responses of 64 KiB and more that are being sent") \
    X(unsent_shed, COUNTER,   "pawl_http_unsent_shed_total", "",           "responses replaced by 503 because clients were slow to read others") \
    X(bodies,      GAUGE,     "pawl_http_body_bytes",      "",             "bytes of request bodies of more than 64 KiB, from their arrival until their response is sent") \
    X(bodies_shed, COUNTER,   "pawl_http_body_shed_total", "",             "requests refused because the bodies of others took the memory") \
    X(seconds,     HISTOGRAM, "pawl_http_request_seconds", "",             "time from the request read to the response ready")
/* clang-format on */

/* clang-format off */
#define ROUTE_METRICS(X) \
    X(status_2xx, COUNTER,   "pawl_http_route_requests_total", "code=\"2xx\"", "requests answered, by route and class of status") \
    X(status_3xx, COUNTER,   "pawl_http_route_requests_total", "code=\"3xx\"", "requests answered, by route and class of status") \
    X(status_4xx, COUNTER,   "pawl_http_route_requests_total", "code=\"4xx\"", "requests answered, by route and class of status") \
    X(status_5xx, COUNTER,   "pawl_http_route_requests_total", "code=\"5xx\"", "requests answered, by route and class of status") \
    X(seconds,    HISTOGRAM, "pawl_http_route_seconds",        "",             "time from the request read to the response ready, by route")
/* clang-format on */

typedef struct {
    ROUTE_METRICS(METRIC_FIELD)
} RouteMetrics;
/* Label "route": metric_series(&route_metric_table, "GET /v1/commands") gives the RouteMetrics of a route. */
extern const MetricTable route_metric_table;

typedef struct {
    HTTP_METRICS(METRIC_FIELD)
} HttpMetrics;
extern HttpMetrics http_metrics;

#endif
