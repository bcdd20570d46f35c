/*
 * webhook.h - one POST of JSON to a URL the operator chose, with an idempotency key, bounded in time and size.
 *
 * Threads: any. No state but libcurl's, which webhook_init() prepares once before threads start.
 */
#ifndef OPS_WEBHOOK_H
#define OPS_WEBHOOK_H

#include "base/clock.h"
#include "base/error.h"

void webhook_init(void);
/* OK: a 2xx answer. ERR_RATE: 429. ERR_UNAVAILABLE: no answer or 5xx. ERR_REFUSED: any other answer. The URL itself, which
 * may hold a secret, is never part of a message. */
must_check ErrorCode webhook_post(const char *url, const char *key, const char *json, Deadline deadline, Error *reterr);

#endif
