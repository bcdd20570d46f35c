/*
 * intake.c - what the intake of updates tells the bot: who has written, and which updates the database did not take.
 * See bot.h.
 */
#include "bot/bot.h"

#include "bot/translate.h"
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

    for (int i = 0; i < count; i++) {
        inputs[seen.count] = (GameInput){0};
        if (bot_input_read(updates[i], arena, &inputs[seen.count]))
            inputs[seen.count++].links_count = 0; /* a linked user need not be in the group */
    }
    return seen.count ? tx_run(pool, &options, seen_body, &seen, reterr) : OK;
}

static void on_away(void *context, const char *json, size_t size, const Error *why)
{
    bot_notices_add(context, json, size, why);
}

static bool is_late(void *context, int64_t update_id)
{
    return bot_notices_has(context, update_id);
}

void bot_intake_watch(BotNotices *notices, TelegramIntake *intake)
{
    intake->on_seen = on_seen;
    intake->on_away = on_away;
    intake->is_late = is_late;
    intake->context = notices;
}
