/*
 * await.h - wait for a fact, not for time; fails the test when it does not come true within ten seconds.
 */
#ifndef UNIT_PG_AWAIT_H
#define UNIT_PG_AWAIT_H

#include "base/clock.h"
#include "test/harness/test.h"

#define await(fact)                                     \
    do {                                                \
        Deadline await_ = deadline_in_ms(60000);        \
        while (!(fact)) {                               \
            if (deadline_passed(await_))                \
                fail_msg("never came true: %s", #fact); \
            clock_sleep_ms(5);                          \
        }                                               \
    } while (0)

#endif
