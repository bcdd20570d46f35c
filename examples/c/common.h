/*
 * common.h - what the examples share: a database with the table they write to, and the words when something went wrong.
 */
#ifndef COMMON_H
#define COMMON_H

#include <pawl/pawl.h>
#include <stdio.h>

static inline PawlStatus table_make(PawlTx *tx, void *context)
{
    return pawl_query(tx, context, 0, NULL, NULL);
}

/* A pool, and the table, made if it is not there. */
static inline PawlStatus shop_open(const char *url, const char *table, Pawl **ret_pawl, PawlError *error)
{
    PawlTransaction options = {.name = "table", .keyed = true};
    PawlStatus      status  = pawl_open(url, ret_pawl, error);
    char            sql[256];

    if (status != PAWL_OK)
        return status;
    snprintf(sql, sizeof sql, "create table if not exists %s", table);
    return pawl_transaction(*ret_pawl, &options, table_make, sql, error);
}

/* Closes what was opened and gives the exit status. */
static inline int shop_close(Pawl *pawl, PawlStatus status, const PawlError *error)
{
    pawl_close(pawl);
    if (status == PAWL_OK)
        return 0;
    fprintf(stderr, "%s%s%s\n", error->sqlstate, error->sqlstate[0] ? ": " : "", error->text);
    return 1;
}

#endif
