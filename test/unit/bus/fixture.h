/*
 * fixture.h - a database, a pool, and commands in a few words; for all tests of the bus.
 *
 * Threads: what asserts belongs to the main thread.
 */
#ifndef UNIT_BUS_FIXTURE_H
#define UNIT_BUS_FIXTURE_H

#include "base/arena.h"
#include "bus/claim.h"
#include "bus/lease.h"
#include "bus/send.h"
#include "bus/settle.h"
#include "pg/pool.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

typedef struct {
    TestDatabase *db;
    Pool         *pool;
    Arena        *arena;
} Bus;

Bus *bus_new(int pool_size);
void bus_free(Bus *bus);
SCOPED(Bus, bus_free)

/* An item with all defaults. */
SendItem bus_item(const char *domain, const char *type, const char *payload);
/* Commands of type "t" with payload {"n": 1..count}. */
void bus_send(Bus *bus, const char *domain, int count);
/* Claim, and fail the test if it fails. */
int bus_claim(Bus *bus, Claimer *claimer, int limit, int lease_ms, ClaimedCommand **ret_list);
/* Settle one command. */
SettleItem bus_settle(Bus *bus, const ClaimedCommand *command, Outcome outcome, const char *result, const char *error);
int64_t    bus_count(Bus *bus, const char *table);
Deadline   soon(void);

#endif
