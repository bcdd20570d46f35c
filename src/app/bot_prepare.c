/*
 * bot_prepare.c - what has to be asked before an update is handled, outside of its transaction: members and administrators.
 */
#include <string.h>

#include "app/bot_game_internal.h"
#include "pg/tx.h"
#include "rating/player.h"
#include "telegram/member.h"

#define ADMIN_MS 5000 /* for the question about a member; without an answer the game says that it does not know */

/* ---- users who are named by a link ---- */

typedef struct {
    const GameInput *input;
    int64_t         *users;   /* of its links */
    bool            *known;   /* members of the group */
    bool             is_over; /* beyond the limits */
} KnownAsk;

static ErrorCode known_body(Tx *tx, void *context, Error *reterr)
{
    KnownAsk        *ask     = context;
    const GameInput *input   = ask->input;
    Player          *players = arena_array(tx->arena, Player, input->links_count);
    bool             is_within;
    Error            error = {0};
    Group            group;
    ErrorCode        code = group_get(tx, input->chat_id, &group, &error);

    if (code == ERR_NOT_FOUND)
        return OK;
    if (code != OK) {
        *reterr = error;
        return code;
    }
    TRY(players_of_users(tx, group.id, ask->users, input->links_count, players, reterr));
    for (int i = 0; i < input->links_count; i++)
        ask->known[i] = players[i].is_member;
    TRY(game_is_within_limits(tx, group.id, input, &is_within, reterr));
    ask->is_over = !is_within;
    return OK;
}

static const char *status_of(const BotTurn *turn, int64_t chat_id, int64_t user_id, Deadline deadline)
{
    TelegramMemberAsk ask = {.pool       = turn->pool,
                             .bot        = turn->bot,
                             .chat_id    = chat_id,
                             .user_id    = user_id,
                             .per_second = turn->per_second,
                             .deadline   = deadline};

    return telegram_member_status(&ask, turn->arena);
}

/* A link names any user of the messenger: one who has not been seen in the group is asked about. What the server does not say is no reason
 * to refuse. */
static bool is_stranger(BotTurn *turn, int64_t chat_id, int64_t user_id, Deadline deadline)
{
    const char *status = status_of(turn, chat_id, user_id, deadline);

    return strcmp(status, "left") == 0 || strcmp(status, "kicked") == 0;
}

/* ret_strangers[i]: of link i. One that is not asked about is a stranger unless the group knows it: each question is a call, and a member
 * may link a hundred users in a message. */
static ErrorCode strangers_find(BotTurn *turn, const GameInput *input, bool *ret_strangers, Error *reterr)
{
    int       count    = input->links_count;
    bool     *taken    = arena_array(turn->arena, bool, count);
    Deadline  deadline = deadline_sooner(turn->deadline, deadline_in_ms(ADMIN_MS));
    KnownAsk  ask      = {.input = input,
                          .users = arena_array(turn->arena, int64_t, count),
                          .known = arena_array(turn->arena, bool, count)};
    TxOptions options  = {.name = "known", .deadline = turn->deadline, .arena = turn->arena, .keyed = true};

    if (game_links_taken(input, turn->arena, taken) > 0) {
        for (int i = 0; i < count; i++)
            ask.users[i] = input->links[i].user->id;
        TRY(tx_run(turn->pool, &options, known_body, &ask, reterr));
    }
    for (int i = 0; i < count; i++)
        if (!taken[i] || ask.is_over)
            ret_strangers[i] = !ask.known[i];
        else if (!ask.known[i] && !input->links[i].user->is_bot && !deadline_passed(deadline))
            ret_strangers[i] = is_stranger(turn, input->chat_id, ask.users[i], deadline);
    return OK;
}

/* ---- administrators ---- */

/* What the server cannot answer is unknown, and no reason to try the update again. */
static Admin admin_find(BotTurn *turn, int64_t chat_id, int64_t user_id)
{
    const char *status = status_of(turn, chat_id, user_id, deadline_sooner(turn->deadline, deadline_in_ms(ADMIN_MS)));

    if (!status[0])
        return ADMIN_UNKNOWN;
    return strcmp(status, "administrator") == 0 || strcmp(status, "creator") == 0 ? ADMIN_YES : ADMIN_NO;
}

ErrorCode bot_game_prepare(BotTurn *turn, Error *reterr)
{
    BotPrepared *prepared = arena_array(turn->arena, BotPrepared, 1);
    GameInput    input;

    prepared->admin = ADMIN_UNKNOWN;
    if (!bot_input_read(turn, &input) || !input.chat_id) {
        turn->prepared = prepared;
        return OK;
    }
    if (game_needs_admin(&input, turn->arena))
        prepared->admin = admin_find(turn, input.chat_id, input.from->id);
    if (input.links_count > 0 && !input.is_private) {
        prepared->strangers = arena_array(turn->arena, bool, input.links_count);
        TRY(strangers_find(turn, &input, prepared->strangers, reterr));
    }
    turn->prepared = prepared;
    return OK;
}
