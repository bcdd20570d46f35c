/*
 * webhook.c - see webhook.h.
 */
#include "ops/webhook.h"

#include <curl/curl.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/metric.h"

SCOPED(CURL, curl_easy_cleanup)
SCOPED(struct curl_slist, curl_slist_free_all)

void webhook_init(void)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        abort();
}

/* What they answer does not matter beyond its status. libcurl gives the shape of this function. */
/* NOLINTNEXTLINE(readability-non-const-parameter) */
static size_t ignore_body(char *bytes, size_t size, size_t count, void *context)
{
    (void)bytes;
    (void)context;
    return size * count;
}

static ErrorCode status_judge(long status, Error *reterr)
{
    if (status >= 200 && status < 300)
        return OK;
    if (status == 429) {
        metric_add(METRIC_RATE_LIMITED, 1);
        return fail(reterr, ERR_RATE, "webhook was told to slow down");
    }
    return fail(reterr, status >= 500 ? ERR_UNAVAILABLE : ERR_REFUSED, "webhook was answered with status %ld", status);
}

static ErrorCode post(CURL *curl, const char *key, const char *json, Error *reterr)
{
    scoped(curl_slist_free_all) struct curl_slist *headers = NULL;
    char                                           header[256];
    long                                           status = 0;
    CURLcode                                       code;

    snprintf(header, sizeof header, "Idempotency-Key: \"%.200s\"", key);
    headers = curl_slist_append(headers, "Content-Type: application/json");
    headers = curl_slist_append(headers, header);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, json);
    code = curl_easy_perform(curl);
    if (code != CURLE_OK)
        return fail(reterr, ERR_UNAVAILABLE, "webhook was not answered: %s", curl_easy_strerror(code));
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status_judge(status, reterr);
}

ErrorCode webhook_post(const char *url, const char *key, const char *json, Deadline deadline, Error *reterr)
{
    scoped(curl_easy_cleanup) CURL *curl = curl_easy_init();
    ErrorCode                       code;

    if (!curl)
        abort();
    if (curl_easy_setopt(curl, CURLOPT_URL, url) != CURLE_OK)
        return fail(reterr, ERR_USAGE, "webhook url is malformed: it looks like https://host/path");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)deadline_left_ms(deadline) + 1); /* 0 would mean for ever */
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore_body);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "pawl/" PAWL_VERSION);
    code = post(curl, key, json, reterr);
    metric_add(code == OK ? METRIC_WEBHOOK_OK : METRIC_WEBHOOK_FAILED, 1);
    return code;
}
