/*
 * alternate.c - see alternate.h.
 */
#include "bench/alternate.h"

ErrorCode alternate_run(Bench *bench, const Alternation *alternation, Error *reterr)
{
    Report *report = &bench->report;

    for (int64_t round = 0; round < bench->options.rounds; round++) {
        double rates[2];

        for (int turn = 0; turn < 2; turn++) {
            int which = (int)(round + turn) % 2;

            TRY(alternation->measure(bench, which, alternation->value, &rates[which], reterr));
        }
        for (int which = 0; which < 2; which++)
            report_run(report, alternation->section, alternation->names[which], UNIT_RATE, rates[which]);
        report_run(report, alternation->section, "the second to the first", UNIT_PERCENT, 100 * rates[1] / rates[0]);
    }
    return OK;
}
