/*
 * sent.h - commands and child processes that a step sends, and their outcomes.
 *
 * The id follows from the process, its secret, the step and its attempt, so an activation that is not sure whether it has sent simply sends again. The
 * outcome comes back as a response of the kind reply, written in the transaction that ends the command.
 * Threads: any. Ownership: everything is in the arena that was given.
 */
#ifndef PROCESS_SENT_H
#define PROCESS_SENT_H

#include "bus/send.h"
#include "pg/pool.h"
#include "process/key.h"
#include "process/run.h"

/* Which step of which process sends. */
typedef struct {
    KeyOwner process;
    int64_t  number; /* of the process */
    int      life;
    RecordId step;
    int      command; /* which one, from 1 */
} SentBy;

/* Which command of this step is sent or awaited, from 1: the next one after each reply that was set aside. One whose time is over has not ended, so a
 * retry waits for the same. */
int sent_number(Run *run, RecordId step);
/* is_child: a process of `domain`; else a command of it. */
void sent_item(const SentBy *by, bool is_child, const char *domain, const char *type, const char *payload, Arena *arena,
               SendItem *ret_item);

/* In a transaction that holds the lease: a worker that has lost it sends nothing, *ret_is_over. The verdict is in the item; ERR_BUSY: another transaction
 * has the process locked, or sends the same id. */
must_check ErrorCode sent_send(Pool *pool, Run *run, SendItem *item, bool *ret_is_over, Error *reterr);

typedef struct {
    const char *command_id, *status, *result, *error;
    const char *domain, *type, *correlation_id; /* known */
} SentReply;
/* FAILED, or a child that was COMPENSATED: neither needs an operator. */
bool sent_reply_is_refusal(const SentReply *reply);
/* The reply to the command with this id among the payloads of responses. *ret_found false: it has not come. */
must_check ErrorCode sent_reply_find(const char *const *payloads, int count, const char *id, Arena *arena,
                                     SentReply *ret_reply, bool *ret_found, Error *reterr);
/* The first one of a command that has completed, whatever its id. */
must_check ErrorCode sent_reply_completed(const char *const *payloads, int count, Arena *arena, SentReply *ret_reply,
                                          bool *ret_found, Error *reterr);

#endif
