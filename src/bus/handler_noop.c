/*
 * handler_noop.c - completes every command.
 */
#include "bus/handler.h"

static void noop_run(Handler *handler, Job *job, SettleItem *ret_settle)
{
    (void)handler;
    (void)job;
    ret_settle->outcome = OUTCOME_COMPLETE;
}

Handler handler_noop = {.run = noop_run};
