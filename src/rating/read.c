/*
 * read.c - see read.h.
 */
#include "rating/read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pg/tx.h"
#include "rating/player.h"

typedef struct {
    const RatingRead *read;
    void             *list;
    int               count;
    int64_t           total; /* leaderboard */
} Reading;

static ErrorCode unknown_group(int64_t chat_id, Error *reterr)
{
    return fail(reterr, ERR_NOT_FOUND, "there is no group %lld, or it is not published", (long long)chat_id);
}

static ErrorCode group_find(Tx *tx, const RatingRead *read, Group *ret_group, Error *reterr)
{
    Error     error = {0};
    ErrorCode code  = group_get(tx, read->chat_id, ret_group, &error);

    /* Where the bot was removed no administrator can take the publication back. */
    if (code == ERR_NOT_FOUND ||
        (code == OK && read->published_only && !(ret_group->is_published && ret_group->is_active)))
        return unknown_group(read->chat_id, reterr);
    return error_pass(code, &error, reterr);
}

static ErrorCode player_find(Tx *tx, int64_t group_id, const char *text, int64_t *ret_id, Error *reterr)
{
    Player player;

    if (text[0] == '@') {
        const char *name = text + 1;

        TRY(players_named(tx, group_id, &name, 1, &player, reterr));
    } else {
        char   *end;
        int64_t user;

        errno = 0;
        user  = strtoll(text, &end, 10);
        if (errno || *end || end == text)
            return fail(reterr, ERR_INVALID, "the player must be @name or a number, got \"%.60s\"", text);
        TRY(players_of_users(tx, group_id, &user, 1, &player, reterr));
    }
    if (!player.player_id || !player.is_member)
        return fail(reterr, ERR_NOT_FOUND, "there is no player %.60s in this group", text);
    *ret_id = player.player_id;
    return OK;
}

static ErrorCode board_body(Tx *tx, void *context, Error *reterr)
{
    Reading  *reading = context;
    Group     group;
    BoardRow *list, *first;
    int       found;

    TRY(group_find(tx, reading->read, &group, reterr));
    TRY(board_read(tx, group.id, reading->read->offset, reading->read->limit, &list, &reading->count, reterr));
    reading->list = list;
    first         = list;
    found         = reading->count;
    if (found == 0 && reading->read->offset > 0)
        TRY(board_read(tx, group.id, 0, 1, &first, &found, reterr));
    reading->total = found ? first[0].total : 0;
    return OK;
}

static ErrorCode history_body(Tx *tx, void *context, Error *reterr)
{
    Reading     *reading = context;
    Group        group;
    PlayerMatch *list;
    int64_t      player;

    TRY(group_find(tx, reading->read, &group, reterr));
    TRY(player_find(tx, group.id, reading->read->player, &player, reterr));
    TRY(board_player(tx, group.id, player, reading->read->before, reading->read->limit, &list, &reading->count,
                     reterr));
    reading->list = list;
    return OK;
}

static ErrorCode matches_body(Tx *tx, void *context, Error *reterr)
{
    Reading    *reading = context;
    Group       group;
    GroupMatch *list;

    TRY(group_find(tx, reading->read, &group, reterr));
    TRY(board_matches(tx, group.id, reading->read->before, reading->read->limit, /* with_undone= */ true, &list,
                      &reading->count, reterr));
    reading->list = list;
    return OK;
}

static ErrorCode reading_run(Pool *pool, const char *name, Deadline deadline, Arena *arena, TxBody *body,
                             Reading *reading, Error *reterr)
{
    TxOptions options = {.name = name, .deadline = deadline, .arena = arena, .read_only = true};

    return tx_run(pool, &options, body, reading, reterr);
}

ErrorCode rating_read_board(Pool *pool, Deadline deadline, Arena *arena, const RatingRead *read, BoardRow **ret_list,
                            int *ret_count, int64_t *ret_total, Error *reterr)
{
    Reading reading = {.read = read};

    TRY(reading_run(pool, "rating_board", deadline, arena, board_body, &reading, reterr));
    *ret_list  = reading.list;
    *ret_count = reading.count;
    if (ret_total)
        *ret_total = reading.total;
    return OK;
}

ErrorCode rating_read_history(Pool *pool, Deadline deadline, Arena *arena, const RatingRead *read,
                              PlayerMatch **ret_list, int *ret_count, Error *reterr)
{
    Reading reading = {.read = read};

    TRY(reading_run(pool, "rating_history", deadline, arena, history_body, &reading, reterr));
    *ret_list  = reading.list;
    *ret_count = reading.count;
    return OK;
}

ErrorCode rating_read_matches(Pool *pool, Deadline deadline, Arena *arena, const RatingRead *read,
                              GroupMatch **ret_list, int *ret_count, Error *reterr)
{
    Reading reading = {.read = read};

    TRY(reading_run(pool, "rating_matches", deadline, arena, matches_body, &reading, reterr));
    *ret_list  = reading.list;
    *ret_count = reading.count;
    return OK;
}
