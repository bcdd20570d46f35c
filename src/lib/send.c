/*
 * send.c - commands from C: one, many, or as part of a transaction.
 */
#include <string.h>

#include "base/arena.h"
#include "bus/command.h"
#include "lib/library_internal.h"

/* ---- from the caller's structs to the module's ---- */

int library_priority(int priority)
{
    if (priority == 0)
        return SEND_DEFAULT;
    return priority == PAWL_PRIORITY_LOWEST ? 0 : priority;
}

static SendItem item_of(const PawlCommand *command)
{
    static const PawlCommand none; /* for NULL: it is refused for what it lacks */

    command = command ? command : &none;
    return (SendItem){.domain         = command->domain,
                      .type           = command->type,
                      .payload        = command->payload,
                      .command_id     = command->command_id,
                      .delay_ms       = command->delay_ms,
                      .priority       = library_priority(command->priority),
                      .max_attempts   = command->max_attempts == 0 ? SEND_DEFAULT : command->max_attempts,
                      .reply_to       = command->reply_to,
                      .correlation_id = command->correlation_id,
                      .batch_id       = command->batch_id,
                      .order_key      = command->order_key,
                      .key            = command->key,
                      .unique_key     = command->unique_key,
                      .unique_for     = command->unique_for,
                      .on_duplicate   = command->on_duplicate,
                      .actor          = command->actor};
}

static PawlStatus sent_fill(const SendItem *item, PawlSent *ret_sent)
{
    PawlSent sent = {.is_new    = item->is_new,
                     .status    = command_status_constant(item->status),
                     .duplicate = item->code == OK ? item->duplicate : NULL};

    memcpy(sent.id, sent.duplicate ? item->first_id : item->id, sizeof sent.id);
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

ErrorCode library_list_check(const char *noun, const void *list, int count, Error *reterr)
{
    if (!list)
        return fail(reterr, ERR_INVALID, "%s must be an array, got NULL", noun);
    if (count < 1 || count > SEND_BATCH_MAX)
        return fail(reterr, ERR_LIMIT, "1 to %d %s can be sent in one call, got %d", SEND_BATCH_MAX, noun, count);
    return OK;
}

PawlStatus library_list_refuse(ErrorCode code, const Error *why, int count, PawlSent *ret_sent, PawlError *error)
{
    for (int i = 0; ret_sent && i < count; i++) {
        ret_sent[i] = (PawlSent){0};
        library_answer(code, why, &ret_sent[i].error);
    }
    return library_answer(code, why, error);
}

/* ---- one ---- */

static ErrorCode item_key_take(Pawl *pawl, Deadline deadline, Arena *arena, SendItem *item, Error *reterr)
{
    TRY(send_keys_take(pawl->pool, /* tx= */ NULL, deadline, arena, item, 1, reterr));
    return error_pass(item->code, &item->error, reterr);
}

PawlStatus library_send(Pawl *pawl, SendItem item, int timeout_ms, PawlSent *ret_sent, PawlError *error)
{
    Error                       why      = {0};
    scoped(library_leave) Pawl *inside   = library_enter(pawl, timeout_ms, &why);
    scoped(arena_free) Arena   *arena    = item.key ? arena_new(ARENA_BYTES_DEFAULT) : NULL;
    Deadline                    deadline = library_deadline(timeout_ms);

    item.code = inside ? OK : why.code;
    if (inside && item.key)
        item.code = item_key_take(pawl, deadline, arena, &item, &why);
    if (item.code == OK)
        item.code = sender_send(pawl->sender, deadline, &item, &why);
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

PawlStatus library_send_many(Pawl *pawl, SendItem *items, int count, Deadline deadline, PawlSent *ret_sent,
                             PawlError *error)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    SendItem                **good  = arena_array(arena, SendItem *, count);
    const SendItem           *bad;
    Error                     why        = {0};
    int                       good_count = 0;
    ErrorCode                 code = send_keys_take(pawl->pool, /* tx= */ NULL, deadline, arena, items, count, &why);

    if (code != OK)
        return library_list_refuse(code, &why, count, ret_sent, error);
    for (int i = 0; i < count; i++)
        if (items[i].code == OK)
            good[good_count++] = &items[i];
    if (good_count > 0)
        send_each(pawl->pool, deadline, /* nowait= */ false, good, good_count);
    for (int i = 0; i < count; i++)
        waker_notify_sent(pawl->waker, &items[i]);
    bad = items_answer(items, count, ret_sent);
    return library_answer(bad ? bad->code : OK, bad ? &bad->error : &(Error){0}, error);
}

PawlStatus pawl_send_many(Pawl *pawl, const PawlCommand *commands, int count, int timeout_ms, PawlSent *ret_sent,
                          PawlError *error)
{
    Error                       why    = {0};
    scoped(library_leave) Pawl *inside = library_enter(pawl, timeout_ms, &why);
    scoped(arena_free) Arena   *arena  = arena_new(ARENA_BYTES_DEFAULT);
    SendItem                   *items;
    ErrorCode                   code = inside ? library_list_check("commands", commands, count, &why) : why.code;

    if (code != OK)
        return library_list_refuse(code, &why, count, ret_sent, error);
    items = arena_array(arena, SendItem, count);
    for (int i = 0; i < count; i++)
        items[i] = item_of(&commands[i]);
    return library_send_many(pawl, items, count, library_deadline(timeout_ms), ret_sent, error);
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
    SendItem **good       = arena_array(arena, SendItem *, count);
    int        good_count = 0;
    Error      why        = {0};
    ErrorCode  code       = library_check(tx->pawl, &why);

    if (code == OK)
        code = send_keys_take(/* pool= */ NULL, tx->tx, deadline_never(), arena, items, count, &why);
    for (int i = 0; i < count; i++) {
        if (items[i].code == OK)
            good[good_count++] = &items[i];
        if (!items[i].command_id)
            items[i].command_id = id_make(arena);
    }
    if (code == OK && good_count > 0)
        code = send_in(tx->tx, good, good_count, &why);
    for (int i = 0; code != OK && i < good_count; i++)
        item_fail(good[i], code, &why);
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
    ErrorCode                 code = library_list_check("commands", commands, count, tx->why);

    if (code != OK)
        return library_list_refuse(tx->code = code, tx->why, count, ret_sent, tx->error);
    items = arena_array(arena, SendItem, count);
    for (int i = 0; i < count; i++)
        items[i] = item_of(&commands[i]);
    return library_tx_send(tx, items, count, ret_sent);
}

PawlStatus pawl_tx_send(PawlTx *tx, const PawlCommand *command, PawlSent *ret_sent)
{
    return pawl_tx_send_many(tx, command, 1, ret_sent);
}
