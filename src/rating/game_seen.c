/*
 * game_seen.c - who is seen in a message, and messages of which nothing else counts.
 */
#include <stdlib.h>

#include "rating/game_inner.h"
#include "rating/name.h"

static PlayerSeen seen_of(Arena *arena, const GameUser *user, PlayerSight sight)
{
    return (PlayerSeen){.user_id  = user->id,
                        .name     = name_clean(arena, user->name),
                        .username = user->username,
                        .is_bot   = user->is_bot,
                        .sight    = sight};
}

int game_seen_list(Arena *arena, const GameInput *input, PlayerSeen *seen)
{
    int count = 0;

    if (input->from && input->kind != GAME_BUTTON)
        seen[count++] = seen_of(arena, input->from, PLAYER_PRESENT);
    if (input->reply_to)
        seen[count++] = seen_of(arena, input->reply_to, PLAYER_NAMED);
    for (int i = 0; i < input->links_count && count < PLAYERS_SEEN_MAX; i++)
        if (input->links[i].user && !input->links[i].is_stranger)
            seen[count++] = seen_of(arena, input->links[i].user, PLAYER_NAMED);
    for (int i = 0; i < input->came_count && count < PLAYERS_SEEN_MAX; i++)
        seen[count++] = seen_of(arena, &input->came[i], PLAYER_PRESENT);
    for (int i = 0; i < input->left_count && count < PLAYERS_SEEN_MAX; i++)
        seen[count++] = seen_of(arena, &input->left[i], PLAYER_LEFT);
    return count;
}

/* ---- messages that are no commands ---- */

/* The messages of one group. */
typedef struct {
    OpeningAsk ask;
    PlayerSeen seen[PLAYERS_SEEN_MAX];
} GroupSeen;

/* The name comes from the user's last message. A user who has written is present, even if others name the user. */
static void seen_merge(GroupSeen *group, const PlayerSeen *seen)
{
    int at = 0;

    while (at < group->ask.seen_count && group->seen[at].user_id != seen->user_id)
        at++;
    if (at == PLAYERS_SEEN_MAX)
        return;
    if (at < group->ask.seen_count && seen->sight == PLAYER_NAMED)
        return;
    group->seen[at] = *seen;
    if (at == group->ask.seen_count)
        group->ask.seen_count++;
}

static void input_add(Arena *arena, GroupSeen *group, const GameInput *input)
{
    PlayerSeen *list  = arena_array(arena, PlayerSeen, PLAYERS_SEEN_MAX);
    int         count = game_seen_list(arena, input, list);

    group->ask.chat_id  = input->chat_id;
    group->ask.seen     = group->seen;
    group->ask.per_user = GAME_PER_USER;
    group->ask.title    = input->chat_title;
    group->ask.language = input->language ? language_codes[language_of(input->language)] : NULL;
    group->ask.date_s   = input->date_s > group->ask.date_s ? input->date_s : group->ask.date_s;
    for (int i = 0; i < count; i++)
        seen_merge(group, &list[i]);
}

static int by_chat(const void *a, const void *b)
{
    const OpeningAsk *left = *(const OpeningAsk *const *)a, *right = *(const OpeningAsk *const *)b;

    return left->chat_id < right->chat_id ? -1 : left->chat_id > right->chat_id;
}

ErrorCode game_seen(Tx *tx, const GameInput *inputs, int count, Error *reterr)
{
    GroupSeen        **groups   = arena_array(tx->arena, GroupSeen *, count + 1);
    const OpeningAsk **asks     = arena_array(tx->arena, const OpeningAsk *, count + 1);
    Opening          **openings = arena_array(tx->arena, Opening *, count + 1);
    int                all      = 0;

    for (int i = 0; i < count; i++) {
        int at = 0;

        if (!inputs[i].chat_id || inputs[i].is_private || inputs[i].kind != GAME_MESSAGE)
            continue;
        while (at < all && groups[at]->ask.chat_id != inputs[i].chat_id)
            at++;
        if (at == all) {
            groups[all]   = arena_array(tx->arena, GroupSeen, 1);
            openings[all] = arena_array(tx->arena, Opening, 1);
            asks[all]     = &groups[all]->ask;
            all++;
        }
        input_add(tx->arena, groups[at], &inputs[i]);
    }
    if (all == 0)
        return OK;
    qsort(asks, (size_t)all, sizeof *asks, by_chat); /* the order of their locks */
    TRY(openings_run(tx, asks, all, openings, reterr));
    for (int i = 0; i < all; i++)
        if (!openings[i]->group.is_active) /* who writes to the bot has it in the group again */
            TRY(group_set(tx, openings[i]->group.id, "is_active", "true", reterr));
    return OK;
}
