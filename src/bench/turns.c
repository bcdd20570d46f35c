/*
 * turns.c - see turns.h.
 */
#include "bench/turns.h"

ErrorCode turns_run(Bench *bench, const Turns *turns, Error *reterr)
{
    Report *report = &bench->report;

    for (int64_t round = 0; round < bench->options.rounds; round++) {
        double rates[2];

        for (int turn = 0; turn < 2; turn++) {
            int which = (int)(round + turn) % 2;

            TRY(turns->measure(bench, which, turns->value, &rates[which], reterr));
        }
        for (int which = 0; which < 2; which++)
            report_run(report, turns->section, turns->names[which], UNIT_RATE, rates[which]);
        report_run(report, turns->section, "the second to the first", UNIT_PERCENT, 100 * rates[1] / rates[0]);
    }
    return OK;
}
