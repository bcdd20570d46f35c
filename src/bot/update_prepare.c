/*
 * update_prepare.c - what has to be asked before an update's transaction: members and administrators. See
 * update_internal.h.
 */
#include "bot/update_internal.h"

#include <string.h>

#include "pg/tx.h"
#include "rating/player.h"
#include "telegram/member.h"

#define PREPARE_MS 10000
#define ADMIN_MS   5000 /* for questions to the Bot API; a status that it does not give is unknown */

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
    TRY(error_pass(code, &error, reterr));
    TRY(players_of_users(tx, group.id, ask->users, input->links_count, players, reterr));
    for (int i = 0; i < input->links_count; i++)
        ask->known[i] = players[i].is_member;
    TRY(game_is_within_limits(tx, group.id, input, &is_within, reterr));
    ask->is_over = !is_within;
    return OK;
}

static const char *status_of(const BotUpdate *update, int64_t user_id, Deadline deadline)
{
    const BotUpdateOptions *options = &update->handler->options;
    TelegramMemberAsk       ask     = {.pool       = options->pool,
                                       .bot        = options->bot,
                                       .chat_id    = update->input.chat_id,
                                       .user_id    = user_id,
                                       .per_second = telegram_outbox_per_second(options->outbox),
                                       .deadline   = deadline};

    return telegram_member_status(&ask, update->job->arena);
}

/* A link may name any user of the messenger. Ask the Bot API about users who were not seen in the group; refuse none
 * whose status it does not give. */
static bool is_stranger(const BotUpdate *update, int64_t user_id, Deadline deadline)
{
    const char *status = status_of(update, user_id, deadline);

    return strcmp(status, "left") == 0 || strcmp(status, "kicked") == 0;
}

/* Of the links. The Bot API is not asked about links that the command does not take: they are strangers unless the
 * group knows them. Each question is a call, and a member may link a hundred users in a message. */
static ErrorCode strangers_find(BotUpdate *update, Deadline deadline, GameLink *links, Error *reterr)
{
    const GameInput *input   = &update->input;
    Arena           *arena   = update->job->arena;
    int              count   = input->links_count;
    bool            *taken   = arena_array(arena, bool, count);
    Deadline         asked   = deadline_sooner(deadline, deadline_in_ms(ADMIN_MS));
    KnownAsk         ask     = {.input = input,
                                .users = arena_array(arena, int64_t, count),
                                .known = arena_array(arena, bool, count)};
    TxOptions        options = {.name = "known", .deadline = deadline, .arena = arena, .keyed = true};

    if (game_links_taken(input, taken) > 0) {
        for (int i = 0; i < count; i++)
            ask.users[i] = links[i].user->id;
        TRY(tx_run(update->handler->options.pool, &options, known_body, &ask, reterr));
    }
    for (int i = 0; i < count; i++)
        if (!taken[i] || ask.is_over)
            links[i].is_stranger = !ask.known[i];
        else if (!ask.known[i] && !links[i].user->is_bot && !deadline_passed(asked))
            links[i].is_stranger = is_stranger(update, ask.users[i], asked);
    return OK;
}

/* ---- administrators ---- */

/* A status that the server does not give is unknown, and no reason to run the update again. */
static Admin admin_find(const BotUpdate *update, Deadline deadline)
{
    const char *status = status_of(update, update->input.from->id, deadline_sooner(deadline, deadline_in_ms(ADMIN_MS)));

    if (!status[0])
        return ADMIN_UNKNOWN;
    return strcmp(status, "administrator") == 0 || strcmp(status, "creator") == 0 ? ADMIN_YES : ADMIN_NO;
}

ErrorCode update_prepare(BotUpdate *update, Error *reterr)
{
    GameInput *input    = &update->input;
    Deadline   deadline = deadline_in_ms(PREPARE_MS);

    if (!update->is_game || !input->chat_id)
        return OK;
    if (game_needs_admin(input))
        input->admin = admin_find(update, deadline);
    if (input->links_count > 0 && !input->is_private) {
        GameLink *links = arena_array(update->job->arena, GameLink, input->links_count);

        memcpy(links, input->links, sizeof *links * (size_t)input->links_count);
        TRY(strangers_find(update, deadline, links, reterr));
        input->links = links;
    }
    return OK;
}
