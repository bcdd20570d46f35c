/*
 * finding.c - see finding.h.
 */
#include "cli/finding.h"

#include <stdio.h>

#include "cli/print.h"

void findings_print(const Call *call, const Findings *findings)
{
    static const char *const head[] = {"row", "problem", NULL};
    Table                    table;

    table_init(&table, call->arena, head);
    for (int i = 0; i < findings->count; i++) {
        table_cell(&table, findings->rows[i].which);
        table_cell(&table, findings->rows[i].sentence);
    }
    table_print(&table, "");
    if (findings->more)
        printf("and more\n");
}

ErrorCode findings_verdict(const Findings *findings, Error *reterr)
{
    if (findings->count == 0)
        return OK;
    return fail(reterr, ERR_CONFLICT, "%d%s row%s inconsistent", findings->count, findings->more ? " or more" : "",
                findings->count == 1 && !findings->more ? " is" : "s are");
}
