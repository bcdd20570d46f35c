/*
 * reserved_domain.c - see reserved_domain.h.
 */
#include "bus/reserved_domain.h"

#include <stdlib.h>

#define TABLES_MAX 8

static const ReservedDomain *tables[TABLES_MAX];

void reserved_domains_join(const ReservedDomain *table)
{
    size_t i = 0;

    while (i < TABLES_MAX && tables[i] && tables[i] != table)
        i++;
    if (i == TABLES_MAX)
        abort();
    tables[i] = table;
}

const ReservedDomain *reserved_domain_at(size_t index)
{
    for (size_t i = 0; i < TABLES_MAX && tables[i]; i++)
        for (const ReservedDomain *row = tables[i]; row->has; row++)
            if (index-- == 0)
                return row;
    return NULL;
}

const ReservedDomain *reserved_domain_find(const char *domain)
{
    const ReservedDomain *row;

    for (size_t i = 0; domain && (row = reserved_domain_at(i)); i++)
        if (row->has(domain))
            return row;
    return NULL;
}
