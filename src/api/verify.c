/*
 * verify.c - GET /v1/ledger/verify, which may take minutes: the request is suspended, and a pod runs one verification at a time.
 *
 * Requests that come while one runs have the result of the next one, so however many there are, they take no thread from other reads, and
 * no more than two verifications, one of them of what is new, run before the last of them has its response.
 */
#include <string.h>

#include "api/api.h"
#include "base/log.h"
#include "http/suspend.h"
#include "pg/combiner.h"
#include "wallet/verify.h"

#define REPORT_BYTES ((size_t)64 << 20)

const RouteParameter api_verify_parameters[] = {
    {"new", "only what was posted since the last clean verification", PARAMETER_BOOL},
    {NULL, NULL}
};

typedef struct {
    Request  *request;
    Response *response;
    bool      incremental;
    ErrorCode code; /* the verdict */
    Error     error;
} Verify;

/* For all of these requests that are of this kind. Findings are a result, not an error: 200. */
static void verifies_run(Api *api, Verify **list, int count, bool incremental, Deadline deadline)
{
    scoped(arena_free) Arena *arena   = arena_new(REPORT_BYTES);
    VerifyReport             *report  = arena_alloc(arena, sizeof *report);
    VerifyOptions             options = {.incremental = incremental};
    ErrorCode                 code;
    Error                     error = {0};

    while (count > 0 && (*list)->incremental != incremental)
        list++, count--;
    if (count == 0)
        return;
    log_set_request_of(request_id((*list)->request), request_principal((*list)->request));
    code = wallet_verify(api->pool, &options, deadline, arena, report, &error);
    log_set_request(NULL);
    for (int i = 0; i < count; i++) {
        Verify *verify = list[i];

        if (verify->incremental != incremental)
            continue;
        verify->code  = code;
        verify->error = error;
        if (code == OK)
            verify_write(response_writer(verify->response), report);
    }
}

static ErrorCode batch_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    (void)reterr; /* each has its own verdict */
    /* First what takes little time. */
    verifies_run(context, (Verify **)items, count, /* incremental= */ true, deadline);
    verifies_run(context, (Verify **)items, count, /* incremental= */ false, deadline);
    return OK;
}

static void verify_done(void *item, const Error *error)
{
    Verify *verify = item;

    if (error->code != OK) {
        verify->code  = error->code;
        verify->error = *error;
    }
    request_resume(verify->request);
}

static ErrorCode verify_end(void *context, Request *request, Response *response, Error *reterr)
{
    const Verify *verify = request_state(request);

    (void)context, (void)response; /* it has been filled */
    if (verify->code != OK)
        *reterr = verify->error;
    return verify->code;
}

ErrorCode api_verify(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api      = context;
    const char *only_new = request_query(request, "new");
    Verify     *verify   = arena_array(request_arena(request), Verify, 1);

    *verify =
        (Verify){.request = request, .response = response, .incremental = only_new && strcmp(only_new, "true") == 0};
    if (only_new && !verify->incremental && strcmp(only_new, "false") != 0)
        return fail(reterr, ERR_INVALID, "parameter \"new\" must be true or false, got \"%.60s\"", only_new);
    request_suspend(request, &(Suspend){.on_resume = verify_end}, verify);
    combiner_submit(api->verifies, verify, request_deadline(request), verify_done);
    return OK;
}

Combiner *api_verifies_new(Api *api)
{
    return combiner_new(&(CombinerOptions){.run = batch_run, .context = api, .slots = 1, .slots_max = 1});
}
