/*
 * opening.c - see opening.h.
 */
#include "rating/opening.h"

#include <string.h>

#include "sql.h"

/* The first row is the group's and has no player, the others have nothing but a player. */
#define OPENING_COLUMNS(X, T)        \
    GROUP_COLUMNS(X, T)              \
    X(T, int64_t, DB_I64, by_player) \
    X(T, int64_t, DB_I64, by_group)  \
    PLAYER_COLUMNS(X, T)
typedef struct {
    OPENING_COLUMNS(DB_FIELD, OpeningRow)
} OpeningRow;
DB_SHAPE(opening, OpeningRow, OPENING_COLUMNS);

static void row_take(const OpeningRow *row, int asked, Opening *opening)
{
#define COPY_GROUP(T, type, kind, field)  opening->group.field = row->field;
#define COPY_PLAYER(T, type, kind, field) opening->players[row->ord - 1].field = row->field;
    if (row->ord == 0) {
        GROUP_COLUMNS(COPY_GROUP, )
        opening->usage = (Usage){row->by_player, row->by_group};
    } else if (row->ord <= asked) {
        PLAYER_COLUMNS(COPY_PLAYER, )
    }
#undef COPY_GROUP
#undef COPY_PLAYER
}

ErrorCode opening_run(Tx *tx, const OpeningAsk *ask, Opening *ret_opening, Error *reterr)
{
    int             asked = ask->users_count + ask->names_count, count;
    PlayersSeenArgs seen  = players_seen_args(tx->arena, ask->seen, ask->seen_count);
    void           *rows;

    TRY(db_many(tx, sql_rating_turn_open,
                DB_ARGS(db_i64(ask->chat_id), db_text(ask->title), db_text(ask->language),
                        ask->date_s ? db_i64(ask->date_s) : db_null(), seen.users, seen.names, seen.usernames,
                        seen.bots, seen.presents, ask->author_id ? db_i64(ask->author_id) : db_null(),
                        db_bool(ask->is_counted), db_i64s(tx->arena, ask->users, ask->users_count),
                        db_texts(tx->arena, ask->names, ask->names_count)),
                &opening_shape, &rows, &count, reterr));
    *ret_opening = (Opening){.players = arena_array(tx->arena, Player, asked + 1)};
    for (int i = 0; i < count; i++)
        row_take((const OpeningRow *)rows + i, asked, ret_opening);
    return OK;
}
