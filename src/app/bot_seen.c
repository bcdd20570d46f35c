/*
 * bot_seen.c - see bot_seen.h.
 */
#include "app/bot_seen.h"

#include "app/bot_game_internal.h"
#include "pg/tx.h"

/* Every chat's updates wait meanwhile. One that takes longer, as behind the locks of a long undo, becomes a command. */
#define SEEN_MS 2000
#define LOCK_MS 200

typedef struct {
    const GameInput *inputs;
    int              count;
} Seen;

static ErrorCode seen_body(Tx *tx, void *context, Error *reterr)
{
    const Seen *seen = context;

    return game_seen(tx, seen->inputs, seen->count, reterr);
}

static ErrorCode on_seen(Pool *pool, const TelegramUpdate *const *updates, int count, Deadline deadline, Arena *arena,
                         Error *reterr)
{
    GameInput                *inputs  = arena_array(arena, GameInput, count);
    Seen                      seen    = {.inputs = inputs};
    scoped(arena_free) Arena *own     = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name      = "seen",
                                         .deadline  = deadline_sooner(deadline, deadline_in_ms(SEEN_MS)),
                                         .arena     = own,
                                         .tries_max = 1,
                                         .lock_ms   = LOCK_MS,
                                         .keyed     = true};

    for (int i = 0; i < count; i++)
        if (bot_input_read(&(BotTurn){.update = updates[i], .arena = arena}, &inputs[seen.count]))
            inputs[seen.count++].links_count = 0; /* a linked user need not be in the group */
    return seen.count ? tx_run(pool, &options, seen_body, &seen, reterr) : OK;
}

void bot_seen_watch(TelegramIntake *intake)
{
    intake->on_seen = on_seen;
}
