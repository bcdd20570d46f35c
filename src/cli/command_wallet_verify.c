/*
 * command_wallet_verify.c - pawl wallet verify.
 */
#include <stdio.h>

#include "base/writer.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "wallet/verify.h"

#define VERIFY_MS 3600000

static void show(void *context, int64_t done, int64_t total)
{
    Progress *progress = context;
    char      more[64];

    snprintf(more, sizeof more, ", %d %%", total > 0 ? (int)(done * 100 / total) : 100);
    progress_show_more(progress, done, "rows", more);
}

static void report_print(Call *call, const VerifyReport *report)
{
    if (report->findings.count > 0) {
        findings_print(call, &report->findings);
        return;
    }
    printf("the ledger is consistent: %lld rows in %.1f s, %lld seal%s", (long long)report->rows,
           (double)report->took_ms / 1000, (long long)report->seals, report->seals == 1 ? "" : "s");
    if (report->unsealed > 0)
        printf(", %lld transaction%s too new to be sealed", (long long)report->unsealed,
               report->unsealed == 1 ? "" : "s");
    printf("\n");
}

ErrorCode command_wallet_verify(Call *call, Error *reterr)
{
    Progress      progress;
    VerifyReport *report  = arena_alloc(call->arena, sizeof *report);
    VerifyOptions options = {.incremental = call_flag(call, "--new"), .progress = show, .context = &progress};
    ErrorCode     code;

    TRY(call_open(call, APP_SCHEMA, reterr));
    progress_begin(&progress);
    code = wallet_verify(call->pool, &options, deadline_in_ms(VERIFY_MS), call->arena, report, reterr);
    progress_end(&progress);
    TRY(code);
    if (call->json) {
        Writer *writer = print_writer(call->arena);

        verify_write(writer, report);
        print_json(writer);
    } else {
        report_print(call, report);
    }
    return findings_verdict(&report->findings, reterr);
}
