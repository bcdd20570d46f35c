/*
 * openapi_operation.c - the operationId of a route, which becomes the name of a function in generated clients.
 *
 *     GET /v1/wallets                       listWallets            GET /v1/wallets/{owner}/entries       getWalletEntries
 *     GET /v1/wallets/{owner}               getWallet              PUT /v1/domains/{domain}/retry-policy setDomainRetryPolicy
 *     POST /v1/wallets                      createWallet           DELETE /v1/dead-letters/{id}          deleteDeadLetter
 *     POST /v1/holds/{txn_id}/capture       captureHold
 *
 * The names follow from method and path; where that does not read well, `names` has another one.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/openapi_internal.h"

#define SEGMENTS_MAX ROUTE_SEGMENTS_MAX
#define SEGMENT_SIZE 64

static const struct {
    HttpMethod  method;
    const char *path, *id;
} names[] = {
    {HTTP_GET,  "/openapi.json",                            "getOpenApi"              },
    {HTTP_POST, "/telegram/webhook",                        "postTelegramUpdate"      },
    {HTTP_POST, "/v1/commands",                             "sendCommand"             },
    {HTTP_POST, "/v1/commands/batch",                       "sendCommandBatch"        },
    {HTTP_GET,  "/v1/tsq",                                  "listTroubleshooting"     },
    {HTTP_POST, "/v1/tsq/{id}/retry",                       "retryTroubleshooting"    },
    {HTTP_POST, "/v1/tsq/{id}/cancel",                      "cancelTroubleshooting"   },
    {HTTP_POST, "/v1/tsq/{id}/complete",                    "completeTroubleshooting" },
    {HTTP_POST, "/v1/domains/{domain}/claim",               "claimCommands"           },
    {HTTP_POST, "/v1/domains/{domain}/settle",              "settleCommands"          },
    {HTTP_POST, "/v1/domains/{domain}/extend",              "extendLeases"            },
    {HTTP_POST, "/v1/domains/{domain}/progress",            "reportProgress"          },
    {HTTP_POST, "/v1/process-domains/{domain}/claim",       "claimActivations"        },
    {HTTP_POST, "/v1/process-domains/{domain}/report",      "reportActivations"       },
    {HTTP_POST, "/v1/process-domains/{domain}/extend",      "extendActivations"       },
    {HTTP_POST, "/v1/process-domains/{domain}/progress",    "reportActivationProgress"},
    {HTTP_POST, "/v1/reply-queues/{queue}/read",            "readReplies"             },
    {HTTP_POST, "/v1/reply-queues/{queue}/ack",             "acknowledgeReplies"      },
    {HTTP_PUT,  "/v1/process-definitions",                  "defineProcess"           },
    {HTTP_POST, "/v1/processes",                            "startProcess"            },
    {HTTP_POST, "/v1/processes/batch",                      "startProcessBatch"       },
    {HTTP_POST, "/v1/processes/{id}/signals/{name}",        "signalProcess"           },
    {HTTP_POST, "/v1/wallets/{owner}/floor",                "setWalletFloor"          },
    {HTTP_POST, "/v1/wallets/{owner}/spend",                "spendFromWallet"         },
    {HTTP_POST, "/v1/wallets/{owner}/topup",                "topUpWallet"             },
    {HTTP_GET,  "/v1/owners/{owner}/wallets",               "listWalletsOfOwner"      },
    {HTTP_POST, "/v1/transfers",                            "transfer"                },
    {HTTP_POST, "/v1/transfers/batch",                      "transferBatch"           },
    {HTTP_POST, "/v1/transactions",                         "postTransaction"         },
    {HTTP_POST, "/v1/holds",                                "placeHold"               },
    {HTTP_GET,  "/v1/groups/{chat}/players/{user}/history", "getPlayerHistory"        },
    {HTTP_GET,  "/v1/ledger/verify",                        "verifyLedger"            },
};

typedef struct {
    char text[SEGMENT_SIZE];
    bool is_capture;
} Segment;

/* Without "v1". */
static int segments_read(const char *path, Segment *ret_segments)
{
    int count = 0;

    while (*path && count < SEGMENTS_MAX) {
        Segment *segment = &ret_segments[count];
        size_t   length  = strcspn(++path, "/");

        segment->is_capture = *path == '{';
        snprintf(segment->text, sizeof segment->text, "%.*s", (int)length - 2 * segment->is_capture,
                 path + segment->is_capture);
        path += length;
        if (length > 0 && strcmp(segment->text, "v1") != 0)
            count++;
    }
    return count;
}

/* "retry-policy" becomes "RetryPolicy". */
static void words_add(char *id, size_t size, const char *text)
{
    size_t used     = strlen(id);
    bool   is_first = true;

    for (; *text && used + 1 < size; text++) {
        if (isalnum((unsigned char)*text))
            id[used++] = (char)(is_first ? toupper((unsigned char)*text) : *text);
        is_first = !isalnum((unsigned char)*text);
    }
    id[used] = '\0';
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), of_end = strlen(end);

    return length > of_end && strcmp(text + length - of_end, end) == 0;
}

/* "entries", "batches", "processes", "wallets": one of them. */
static void singular_add(char *id, size_t size, const char *text)
{
    char   one[SEGMENT_SIZE];
    size_t length = strlen(text);

    snprintf(one, sizeof one, "%s", text);
    if (ends_with(text, "ies"))
        snprintf(one + length - 3, sizeof one - (length - 3), "y");
    else if (ends_with(text, "ches") || ends_with(text, "sses"))
        one[length - 2] = '\0';
    else if (ends_with(text, "s") && !ends_with(text, "ss"))
        one[length - 1] = '\0';
    words_add(id, size, one);
}

/* What the last capture selects: the segment before it. -1: there is no capture. */
static int selected(const Segment *segments, int count)
{
    for (int i = count - 1; i >= 0; i--)
        if (segments[i].is_capture)
            return i > 0 && !segments[i - 1].is_capture ? i - 1 : i;
    return -1;
}

static void id_make(const Route *route, char *id, size_t size)
{
    static const char *const verbs[HTTP_METHOD_COUNT] = {
        [HTTP_GET] = "get", [HTTP_POST] = "create", [HTTP_PUT] = "set", [HTTP_DELETE] = "delete"};
    Segment        segments[SEGMENTS_MAX];
    int            count = segments_read(route->path, segments), of = selected(segments, count);
    const Segment *last      = count > 0 ? &segments[count - 1] : NULL;
    bool           is_action = route->method == HTTP_POST && last && !last->is_capture && count > 1;
    bool           is_list = route->method == HTTP_GET && of < 0 && count == 1 && strncmp(route->path, "/v1/", 4) == 0;

    snprintf(id, size, "%s", is_action ? "" : is_list ? "list" : verbs[route->method]);
    if (is_action) {
        words_add(id, size, last->text);
        id[0] = (char)tolower((unsigned char)id[0]);
    }
    if (of >= 0)
        singular_add(id, size, segments[of].text);
    else if (is_action)
        singular_add(id, size, segments[0].text);
    for (int i = of < 0 ? 0 : of + 1; i < count; i++) {
        if (segments[i].is_capture || (is_action && (i == count - 1 || of < 0)))
            continue;
        if (route->method == HTTP_POST)
            singular_add(id, size, segments[i].text);
        else
            words_add(id, size, segments[i].text);
    }
}

void openapi_operation_id(const Route *route, char *ret_id)
{
    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i].method == route->method && strcmp(names[i].path, route->path) == 0) {
            snprintf(ret_id, OPENAPI_ID_SIZE, "%s", names[i].id);
            return;
        }
    id_make(route, ret_id, OPENAPI_ID_SIZE);
}
