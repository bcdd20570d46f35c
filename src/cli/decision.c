/*
 * decision.c - see decision.h.
 */
#include "cli/decision.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "bus/waker.h"
#include "cli/print.h"

const char *call_operator(const Call *call)
{
    const char          *given = call_flag(call, "--operator");
    const struct passwd *user;

    if (given)
        return given;
    user = getpwuid(getuid());
    return user ? user->pw_name : "unknown";
}

void wake_domains(const Call *call, const char *domains)
{
    scoped(waker_free) Waker *waker = waker_new(call->pool);

    waker_notify_names(waker, domains);
}

typedef struct {
    const char     *noun, *id;
    const Decision *decision;
} DecisionRow;

static void decision_row_write(Writer *writer, const void *context)
{
    const DecisionRow *row = context;

    decision_write(writer, row->noun, row->id, row->decision);
}

ErrorCode decision_print(Call *call, const char *noun, const char *id, const Decision *decision, Error *reterr)
{
    DecisionRow row = {noun, id, decision};
    char        at[WALL_TEXT_SIZE];

    TRY(decision_check(noun, id, decision, reterr));
    if (call->json) {
        object_print(decision_row_write, call->arena, &row);
        return OK;
    }
    printf("%s %s\n", id, decision_status(decision));
    if (!decision->is_new) {
        wall_text((Wall){decision->decided_at}, at);
        fprintf(stderr, "decided already: %s by %s at %s\n", decision->decision, decision->operator, at);
    }
    return OK;
}
