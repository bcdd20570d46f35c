/*
 * command_doctor.c - doctor.
 */
#include "app/doctor.h"

#include "base/writer.h"
#include "cli/command.h"
#include "cli/print.h"

static void results_json(Call *call, const CheckResult *list, int count)
{
    Writer *writer = print_writer(call->arena);

    writer_array(writer, NULL);
    for (int i = 0; i < count; i++) {
        writer_object(writer, NULL);
        writer_text(writer, "check", list[i].check);
        writer_text(writer, "state", check_state_text(list[i].state));
        writer_text(writer, "found", list[i].text);
        writer_text(writer, "advice", list[i].advice);
        writer_end(writer);
    }
    writer_end(writer);
    print_json(writer);
}

static void results_table(Call *call, const CheckResult *list, int count)
{
    static const char *const head[] = {"check", "state", "found", NULL};
    Table                    table;
    int                      skipped = 0;

    table_init(&table, call->arena, head);
    for (int i = 0; i < count; i++) {
        if (list[i].state == CHECK_SKIPPED) {
            skipped++;
            continue;
        }
        table_cell(&table, list[i].check);
        table_cell(&table, check_state_text(list[i].state));
        table_cell(&table, list[i].text);
    }
    table_print(&table, "nothing to check");
    if (skipped)
        printf("%d check%s skipped\n", skipped, skipped == 1 ? "" : "s");
    for (int i = 0; i < count; i++)
        if (list[i].advice)
            print_wrapped(arena_print(call->arena, "-> %s: %s", list[i].check, list[i].advice), 3);
}

ErrorCode command_doctor(Call *call, Error *reterr)
{
    CheckResult list[DOCTOR_CHECKS_MAX];
    int         count = 0;
    int64_t     long_tx_ms;
    ErrorCode   code;

    TRY(call_duration(call, "--long-tx", DOCTOR_LONG_TX_MS, &long_tx_ms, reterr));
    code = doctor_run(&call->given, long_tx_ms, call->arena, list, &count, reterr);
    if (call->json)
        results_json(call, list, count);
    else
        results_table(call, list, count);
    return code;
}
