/*
 * sql_share.h - the connections that functions in SQL and operations of the ledger use: a third of the pool.
 *
 * A function holds its connection for as long as it runs. So steps wait for their share outside of the pool, and however slow they are,
 * requests, tasks, heartbeats and the writes of other processes keep the rest.
 *
 * Threads: any. Ownership: sql_share_done() when no step runs.
 */
#ifndef PROCESS_SQL_SHARE_H
#define PROCESS_SQL_SHARE_H

#include "base/sync.h"
#include "pg/query.h"
#include "process/run.h"

/* A step that runs a statement; the caller's while it runs. */
typedef struct SqlUse SqlUse;
struct SqlUse {
    SqlUse    *next;
    const Job *job;
    Conn      *conn;
};

typedef struct {
    Mutex   mutex; /* guards the rest */
    Cond    free;
    int     used, most;
    SqlUse *running;
} SqlShare;

void sql_share_init(SqlShare *share, Pool *pool);
void sql_share_done(SqlShare *share);
/* Wait for a connection. false: the activation must stop. */
must_check bool sql_share_take(SqlShare *share, Run *run);
void            sql_share_give(SqlShare *share);
/* From now until sql_share_ended() a statement of this job runs, which sql_share_stop() cancels. */
void sql_share_began(SqlShare *share, SqlUse *use);
void sql_share_ended(SqlShare *share, SqlUse *use);
void sql_share_stop(SqlShare *share, const Job *job);

#endif
