/*
 * retry_after.h - the value of a header Retry-After: RFC 9110, 10.2.3.
 */
#ifndef CLIENT_RETRY_AFTER_H
#define CLIENT_RETRY_AFTER_H

#include "base/clock.h"

/* Milliseconds from now, at most CLIENT_RETRY_AFTER_MS_MAX. 0: NULL, malformed or past. */
int retry_after_ms(const char *value, Wall now);

#endif
