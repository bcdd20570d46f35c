/*
 * source.h - where commands read and decide: the database, by the functions of the modules, or a daemon, by its routes.
 *
 * Each function does what the one of the module does that it is named after, with the same errors; call->is_remote says which way it goes. A decision
 * that has queued commands notifies their workers. So a command is written once, and prints the same either way.
 * Threads: the command's. Ownership: results live in the arena.
 */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

#include "bus/batch.h"
#include "bus/command.h"
#include "bus/dead_letter.h"
#include "bus/domain.h"
#include "bus/gate.h"
#include "bus/outcome_wait.h"
#include "bus/policy.h"
#include "cli/command.h"
#include "process/process.h"
#include "rating/read.h"
#include "wallet/entry.h"
#include "wallet/list.h"
#include "wallet/post.h"

/* Refuses what a daemon cannot do for a command: `what` names it, such as "--lines". After call_open(). */
must_check ErrorCode source_must_be_database(const Call *call, const char *what, Error *reterr);

/* ---- commands ---- */

/* One command, with its verdict in the item; --key is its key. */
must_check ErrorCode source_send(Call *call, SendItem *item, Error *reterr);

must_check ErrorCode source_command_show(Call *call, Arena *arena, const char *id, const char *domain,
                                         const char **ret_json, Error *reterr);
must_check ErrorCode source_command_list(Call *call, Arena *arena, const CommandFilter *filter, Command **ret_list,
                                         int *ret_count, int64_t *ret_next, Error *reterr);
must_check ErrorCode source_command_cancel(Call *call, const char *id, const char *domain, Decision *ret_made,
                                           Error *reterr);
must_check ErrorCode source_tsq_decide(Call *call, const char *id, const char *domain, const TsqDecision *decision,
                                       Decision *ret_made, Error *reterr);
/* Waits for the end of what was sent, so long at most: see outcome_wait_run(). noun, prefix: as in cli/outcome.h. */
must_check ErrorCode source_wait(Call *call, const char *noun, const char *prefix, const SendItem *item,
                                 int64_t wait_ms, CommandOutcome *ret_outcome, Error *reterr);
must_check ErrorCode source_batch_create(Call *call, const BatchNew *batch, const char **ret_id, Error *reterr);
must_check ErrorCode source_batch_seal(Call *call, const char *id, Batch *ret_batch, Error *reterr);
must_check ErrorCode source_batch_progress(Call *call, const char *id, Batch *ret_batch, Error *reterr);
must_check ErrorCode source_batch_list(Call *call, Arena *arena, const BatchFilter *filter, BatchLine **ret_list,
                                       int *ret_count, int64_t *ret_next, Error *reterr);
must_check ErrorCode source_domain_list(Call *call, const DomainFilter *filter, Domain **ret_list, int *ret_count,
                                        Error *reterr);
must_check ErrorCode source_domain_show(Call *call, const char *name, Domain *ret_domain, Domain *ret_processes,
                                        Error *reterr);
/* Pause, or resume, a domain or a type of it; then what is paused. */
must_check ErrorCode source_domain_pause(Call *call, const char *domain, bool is_pause, const char *type, DomainPause **ret_list,
                                         int *ret_count, Error *reterr);
/* Set, or remove, limits; then those that are left. type NULL: all. */
must_check ErrorCode source_domain_limits(Call *call, const char *domain, DomainLimit **ret_list, int *ret_count,
                                          Error *reterr);
must_check ErrorCode source_domain_limit_set(Call *call, const char *domain, const DomainLimit *limit,
                                             DomainLimit **ret_list, int *ret_count, Error *reterr);
must_check ErrorCode source_domain_limit_remove(Call *call, const char *domain, const char *type,
                                                DomainLimit **ret_list, int *ret_count, Error *reterr);
must_check ErrorCode source_policy_list(Call *call, const char *domain, RetryPolicy **ret_list, int *ret_count,
                                        Error *reterr);
/* As retry_policy_set(). */
must_check ErrorCode source_policy_set(Call *call, const char *domain, const char *type, const int64_t *delays_ms,
                                       int count, const char *order_key, Error *reterr);

/* ---- dead letters ---- */

must_check ErrorCode source_dead_letter_list(Call *call, Arena *arena, const DeadLetterFilter *filter,
                                             DeadLetter **ret_list, int *ret_count, Error *reterr);
must_check ErrorCode source_dead_letter_find(Call *call, int64_t id, DeadLetter *ret_letter, Error *reterr);
must_check ErrorCode source_dead_letter_retry(Call *call, int64_t id, DeadLetter *ret_letter, Error *reterr);
must_check ErrorCode source_dead_letter_delete(Call *call, int64_t id, Error *reterr);

/* ---- processes ---- */

/* As source_send(), for an item of process_start_item(). */
must_check ErrorCode source_process_start(Call *call, SendItem *item, Error *reterr);

must_check ErrorCode source_process_show(Call *call, Arena *arena, ProcessName name, const char **ret_json,
                                         Error *reterr);
must_check ErrorCode source_process_list(Call *call, Arena *arena, const ProcessFilter *filter, Process **ret_list,
                                         int *ret_count, int64_t *ret_next, Error *reterr);
must_check ErrorCode source_process_decide(Call *call, ProcessName name, const ProcessDecision *decision,
                                           Decision *ret_made, Error *reterr);
must_check ErrorCode source_process_signal(Call *call, ProcessName name, const ProcessSignal *signal,
                                           ProcessSignaled *ret_signaled, Error *reterr);

/* ---- wallets ---- */

must_check ErrorCode source_wallet_open(Call *call, WalletNew *wallet, Error *reterr);
/* One operation and its verdict, in the item. */
must_check ErrorCode source_wallet_post(Call *call, WalletItem *item, Error *reterr);
/* All wallets of an owner; asset: only this one, ERR_NOT_FOUND if it is missing. */
must_check ErrorCode source_wallet_list(Call *call, const char *owner, const char *asset, Wallet **ret_list,
                                        int *ret_count, Error *reterr);
must_check ErrorCode source_wallet_at(Call *call, const char *owner, const char *asset, const char *at,
                                      WalletPast *ret_past, Error *reterr);
must_check ErrorCode source_entry_list(Call *call, const EntryFilter *filter, Entry **ret_list, int *ret_count,
                                       Error *reterr);
must_check ErrorCode source_ledger_wallets(Call *call, Arena *arena, const LedgerFilter *filter, WalletLine **ret_list,
                                           int *ret_count, int64_t *ret_next, Error *reterr);
must_check ErrorCode source_ledger_holds(Call *call, Arena *arena, const LedgerFilter *filter, HoldLine **ret_list,
                                         int *ret_count, int64_t *ret_next, Error *reterr);
must_check ErrorCode source_ledger_transactions(Call *call, Arena *arena, const LedgerFilter *filter,
                                                TransactionLine **ret_list, int *ret_count, int64_t *ret_next,
                                                Error *reterr);
must_check ErrorCode source_transaction_show(Call *call, const char *id, const char **ret_json, Error *reterr);

#endif
