/*
 * handle.c - see handle.h.
 */
#include "client/handle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void handles_init(Handles *handles, int idle_max)
{
    mutex_init(&handles->mutex);
    handles->idle_max = idle_max;
    handles->count    = 0;
}

void handles_done(Handles *handles)
{
    for (int i = 0; i < handles->count; i++)
        curl_easy_cleanup(handles->idle[i].curl);
    mutex_done(&handles->mutex);
}

/* The newest that was connected to the target; -1: none. Under the mutex. */
static int handle_find(const Handles *handles, const Target *target)
{
    for (int i = handles->count - 1; i >= 0; i--)
        if (handles->idle[i].port == target->port && strcmp(handles->idle[i].host, target->host) == 0)
            return i;
    return -1;
}

/* Under the mutex. */
static CURL *handle_remove(Handles *handles, int index)
{
    CURL *curl = handles->idle[index].curl;

    handles->count--;
    memmove(&handles->idle[index], &handles->idle[index + 1],
            (size_t)(handles->count - index) * sizeof handles->idle[0]);
    return curl;
}

static void curl_prepare(void)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        abort();
}

/* libcurl is prepared for the first request and not at start: it makes OpenSSL touch 3 MB, which a pod without requests
 * saves. */
static CURL *handle_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, curl_prepare);
    CURL *curl = curl_easy_init();

    if (!curl)
        abort();
    return curl;
}

CURL *handle_take(Handles *handles, const Target *target)
{
    mutex_lock(&handles->mutex);
    int   found = handle_find(handles, target);
    CURL *curl  = found >= 0 ? handle_remove(handles, found) : NULL;
    mutex_unlock(&handles->mutex);
    return curl ? curl : handle_new();
}

void handle_give(Handles *handles, CURL *curl, const Target *target)
{
    Handle handle = {.curl = curl, .port = target->port};
    CURL  *oldest = NULL;

    snprintf(handle.host, sizeof handle.host, "%s", target->host);
    curl_easy_reset(curl); /* keeps the connection, and nothing of the request */
    mutex_lock(&handles->mutex);
    if (handles->count == handles->idle_max)
        oldest = handle_remove(handles, 0);
    handles->idle[handles->count++] = handle;
    mutex_unlock(&handles->mutex);
    curl_easy_cleanup(oldest); /* NULL is allowed */
}
