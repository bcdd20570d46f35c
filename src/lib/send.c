/*
 * send.c - commands from C: one, many, or as part of a transaction.
 */
#include <string.h>

#include "base/arena.h"
#include "bus/command.h"
#include "lib/library_internal.h"
#include "pg/combiner_split.h"

/* ---- from the caller's structs to the module's ---- */

static SendItem item_of(const PawlCommand *command)
{
    static const PawlCommand none; /* for NULL: it is refused for what it lacks */

    command = command ? command : &none;
    return (SendItem){.domain         = command->domain,
                      .type           = command->type,
                      .payload        = command->payload,
                      .command_id     = command->command_id,
                      .delay_ms       = command->delay_ms,
                      .priority       = command->priority == 0                      ? SEND_DEFAULT
                                        : command->priority == PAWL_PRIORITY_LOWEST ? 0
                                                                                    : command->priority,
                      .max_attempts   = command->max_attempts == 0 ? SEND_DEFAULT : command->max_attempts,
                      .reply_to       = command->reply_to,
                      .correlation_id = command->correlation_id,
                      .batch_id       = command->batch_id,
                      .order_key      = command->order_key,
                      .actor          = command->actor};
}

static PawlStatus sent_fill(const SendItem *item, PawlSent *ret_sent)
{
    PawlSent sent = {.is_new = item->is_new, .status = command_status_constant(item->status)};

    memcpy(sent.id, item->id, sizeof sent.id);
    library_answer(item->code, &item->error, &sent.error);
    if (ret_sent)
        *ret_sent = sent;
    return sent.error.status;
}

/* Its verdict is void: its transaction failed. */
static void item_fail(SendItem *item, ErrorCode code, const Error *why)
{
    item->code   = code;
    item->error  = *why;
    item->is_new = false;
    item->status = NULL;
}

/* The first that was refused, or NULL. */
static const SendItem *items_answer(const SendItem *items, int count, PawlSent *ret_sent)
{
    const SendItem *bad = NULL;

    for (int i = count - 1; i >= 0; i--)
        if (sent_fill(&items[i], ret_sent ? &ret_sent[i] : NULL) != PAWL_OK)
            bad = &items[i];
    return bad;
}

static ErrorCode list_check(const PawlCommand *commands, int count, Error *reterr)
{
    if (!commands)
        return fail(reterr, ERR_INVALID, "commands must be an array, got NULL");
    if (count < 1 || count > SEND_BATCH_MAX)
        return fail(reterr, ERR_LIMIT, "1 to %d commands can be sent in one call, got %d", SEND_BATCH_MAX, count);
    return OK;
}

static PawlStatus list_refuse(ErrorCode code, const Error *why, int count, PawlSent *ret_sent, PawlError *error)
{
    for (int i = 0; ret_sent && i < count; i++) {
        ret_sent[i] = (PawlSent){0};
        library_answer(code, why, &ret_sent[i].error);
    }
    return library_answer(code, why, error);
}

/* ---- one ---- */

PawlStatus library_send(Pawl *pawl, SendItem item, int timeout_ms, PawlSent *ret_sent, PawlError *error)
{
    Error                       why    = {0};
    scoped(library_leave) Pawl *inside = library_enter(pawl, timeout_ms, &why);

    item.code  = inside ? sender_send(pawl->sender, library_deadline(timeout_ms), &item, &why) : why.code;
    item.error = why;
    if (item.code != OK && item.code != ERR_KEY_REUSED) /* only these two are verdicts of a committed transaction */
        item_fail(&item, item.code, &why);
    if (inside)
        waker_notify_sent(pawl->waker, &item);
    sent_fill(&item, ret_sent);
    return library_answer(item.code, &why, error);
}

PawlStatus pawl_send(Pawl *pawl, const PawlCommand *command, int timeout_ms, PawlSent *ret_sent, PawlError *error)
{
    return library_send(pawl, item_of(command), timeout_ms, ret_sent, error);
}

/* ---- many ---- */

/* Statuses are in the run's arena until they are constants. */
static ErrorCode items_send(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(LIBRARY_ARENA_BYTES);
    SendItem                **list  = (SendItem **)items;

    TRY(send_many(context, deadline, arena, list, count, reterr));
    for (int i = 0; i < count; i++)
        list[i]->status = command_status_constant(list[i]->status);
    return OK;
}

static void item_sent(void *item, const Error *error)
{
    if (error->code != OK)
        item_fail(item, error->code, error);
}

static SendItem *items_send_each(Pawl *pawl, const PawlCommand *commands, int count, Deadline deadline, Arena *arena)
{
    SendItem *items = arena_array(arena, SendItem, count);
    void    **list  = arena_array(arena, void *, count);

    for (int i = 0; i < count; i++) {
        items[i] = item_of(&commands[i]);
        list[i]  = &items[i];
    }
    combiner_split(items_send, pawl->pool, list, count, deadline, item_sent);
    return items;
}

PawlStatus pawl_send_many(Pawl *pawl, const PawlCommand *commands, int count, int timeout_ms, PawlSent *ret_sent,
                          PawlError *error)
{
    Error                       why    = {0};
    scoped(library_leave) Pawl *inside = library_enter(pawl, timeout_ms, &why);
    scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES_DEFAULT);
    const SendItem             *items, *bad;
    ErrorCode                   code = inside ? list_check(commands, count, &why) : why.code;

    if (code != OK)
        return list_refuse(code, &why, count, ret_sent, error);
    items = items_send_each(pawl, commands, count, library_deadline(timeout_ms), arena);
    for (int i = 0; i < count; i++)
        waker_notify_sent(pawl->waker, &items[i]);
    bad = items_answer(items, count, ret_sent);
    return bad ? library_answer(bad->code, &bad->error, error) : library_answer(OK, &why, error);
}

/* ---- as part of a transaction ---- */

static const char *id_make(Arena *arena)
{
    char *id = arena_array(arena, char, UUID_TEXT_SIZE);

    uuid_new(id);
    return id;
}

static void items_send_in(const PawlTx *tx, SendItem *items, int count, Arena *arena)
{
    SendItem **list = arena_array(arena, SendItem *, count);
    Error      why  = {0};
    ErrorCode  code;

    for (int i = 0; i < count; i++) {
        list[i] = &items[i];
        if (!items[i].command_id)
            items[i].command_id = id_make(arena);
    }
    code = library_check(tx->pawl, &why);
    if (code == OK)
        code = send_in(tx->tx, list, count, &why);
    for (int i = 0; code != OK && i < count; i++)
        item_fail(&items[i], code, &why);
}

PawlStatus library_tx_send(PawlTx *tx, SendItem *items, int count, PawlSent *ret_sent)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    const SendItem           *bad;

    items_send_in(tx, items, count, arena);
    for (int i = 0; i < count; i++)
        wake_list_add_sent(&tx->wakes, tx->tx->arena, &items[i]);
    bad = items_answer(items, count, ret_sent);
    if (!bad)
        return PAWL_OK;
    tx->code = bad->code;
    *tx->why = bad->error;
    return library_answer(bad->code, &bad->error, tx->error);
}

PawlStatus pawl_tx_send_many(PawlTx *tx, const PawlCommand *commands, int count, PawlSent *ret_sent)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    SendItem                 *items;
    ErrorCode                 code = list_check(commands, count, tx->why);

    if (code != OK)
        return list_refuse(tx->code = code, tx->why, count, ret_sent, tx->error);
    items = arena_array(arena, SendItem, count);
    for (int i = 0; i < count; i++)
        items[i] = item_of(&commands[i]);
    return library_tx_send(tx, items, count, ret_sent);
}

PawlStatus pawl_tx_send(PawlTx *tx, const PawlCommand *command, PawlSent *ret_sent)
{
    return pawl_tx_send_many(tx, command, 1, ret_sent);
}
