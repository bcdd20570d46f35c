/*
 * reserved_domain.h - domains of the bus whose commands are not an application's own: what they are, and who may use them.
 *
 * A module that has such domains has a table of them in its module.c and joins it with RESERVED_DOMAINS_JOIN(), as base/module.h does with
 * metrics. sql/<module>/reserved.sql is the same for SQL. Other domains are open to every sender and worker.
 *
 * Threads: joined before threads exist; read from any.
 */
#ifndef BUS_RESERVED_DOMAIN_H
#define BUS_RESERVED_DOMAIN_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { DOMAIN_SEND, DOMAIN_CANCEL, DOMAIN_WORK, DOMAIN_READ, DOMAIN_USES } DomainUse;

typedef struct {
    bool (*has)(const char *domain); /* NULL ends a table */
    const char *commands;            /* what its commands are: "processes" */
    const char *scopes
        [DOMAIN_USES]; /* of an API key; any of them suffices: "process admin". NULL: no other than for any domain */
    const char *handled_by; /* what runs its commands instead of handlers; NULL: handlers do */
    bool refuses_replies;   /* no reply becomes a command of it, because that needs other rights than sending one */
} ReservedDomain;

/* A second join of a table changes nothing. */
void reserved_domains_join(const ReservedDomain *table);
#define RESERVED_DOMAINS_JOIN(table)                            \
    __attribute__((constructor)) static void table##_join(void) \
    {                                                           \
        reserved_domains_join(table);                           \
    }

/* NULL: no module has reserved it. domain may be NULL. */
const ReservedDomain *reserved_domain_find(const char *domain);
/* All of them; NULL: no more. */
const ReservedDomain *reserved_domain_at(size_t index);

#endif
