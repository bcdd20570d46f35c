/*
 * sent.h - commands and child processes that a step sends, and their outcomes.
 *
 * The id follows from the process, its secret, the step and its attempt, so an activation that is not sure whether it has sent simply sends again. The
 * outcome comes back as a response "$reply.STEP", written in the transaction that ends the command; only that writes responses of such a
 * name, because pawl.signal refuses it.
 * Threads: any. Ownership: everything is in the arena that was given.
 */
#ifndef PROCESS_SENT_H
#define PROCESS_SENT_H

#include "bus/send.h"
#include "process/key.h"
#include "process/run.h"

/* Which step of which process sends. */
typedef struct {
    KeyOwner    process;
    int64_t     number; /* of the process */
    const char *record; /* the name of the step's record */
    int         attempt;
} SentBy;

const char *sent_reply_name(Arena *arena, const char *record);
/* Which command of this step is sent or awaited, from 1: the next one after each reply that was set aside ("$gone.STEP"). One whose time is over has
 * not ended, so a retry waits for the same. */
int sent_number(Run *run, Arena *arena, const char *record);
/* is_child: a process of `domain`; else a command of it. */
void sent_item(const SentBy *by, bool is_child, const char *domain, const char *type, const char *payload, Arena *arena,
               SendItem *ret_item);

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
