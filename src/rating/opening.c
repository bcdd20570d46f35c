/*
 * opening.c - see opening.h.
 */
#include "rating/opening.h"

#include <inttypes.h>

#include "sql.h"

/* The first row of a turn is the group's and has no player, the others have nothing but a player. */
#define OPENING_COLUMNS(X, T) \
    GROUP_COLUMNS(X, T)       \
    PLAYER_COLUMNS(X, T)      \
    X(T, I32, turn)           \
    X(T, I64, by_player, by_group)
DB_ROW(OpeningRow, OPENING_COLUMNS);
DB_SHAPE(opening, OpeningRow, OPENING_COLUMNS);

static void row_take(const OpeningRow *row, int asked, Opening *opening)
{
#define TO_GROUP(T, type, field)  opening->group.field = row->field;
#define TO_PLAYER(T, type, field) opening->players[row->ord - 1].field = row->field;
#define COPY_GROUP(...)           DB_EACH(TO_GROUP, __VA_ARGS__)
#define COPY_PLAYER(...)          DB_EACH(TO_PLAYER, __VA_ARGS__)
    if (row->ord == 0) {
        GROUP_COLUMNS(COPY_GROUP, )
        opening->usage = (Usage){row->by_player, row->by_group};
    } else if (row->ord <= asked) {
        PLAYER_COLUMNS(COPY_PLAYER, )
    }
#undef COPY_PLAYER
#undef COPY_GROUP
#undef TO_PLAYER
#undef TO_GROUP
}

static int asked_count(const OpeningAsk *ask)
{
    return ask->users_count + ask->names_count;
}

/* ---- arguments: arrays with an element per turn, per user who was seen, per player who is asked for ---- */

typedef struct {
    DbArg chats, titles, languages, dates, authors, counted;
} TurnArgs;

static const char *number_or_null(Arena *arena, int64_t number)
{
    return number ? arena_print(arena, "%" PRId64, number) : NULL;
}

static TurnArgs turn_args(Arena *arena, const OpeningAsk *const *asks, int count)
{
    int64_t     *chats = arena_array(arena, int64_t, count);
    const char **texts[5];

    for (size_t i = 0; i < COUNT(texts); i++)
        texts[i] = arena_array(arena, const char *, count);
    for (int i = 0; i < count; i++) {
        chats[i]    = asks[i]->chat_id;
        texts[0][i] = asks[i]->title;
        texts[1][i] = asks[i]->language;
        texts[2][i] = number_or_null(arena, asks[i]->date_s);
        texts[3][i] = number_or_null(arena, asks[i]->author_id);
        texts[4][i] = asks[i]->is_counted ? "true" : "false";
    }
    return (TurnArgs){.chats     = db_i64s(arena, chats, count),
                      .titles    = db_texts(arena, texts[0], count),
                      .languages = db_texts(arena, texts[1], count),
                      .dates     = db_texts(arena, texts[2], count),
                      .authors   = db_texts(arena, texts[3], count),
                      .counted   = db_texts(arena, texts[4], count)};
}

typedef struct {
    DbArg           turns;
    PlayersSeenArgs players;
} SeenArgs;

static SeenArgs seen_args(Arena *arena, const OpeningAsk *const *asks, int count)
{
    int         all = 0, at = 0;
    int32_t    *turns;
    PlayerSeen *list;

    for (int i = 0; i < count; i++)
        all += asks[i]->seen_count;
    turns = arena_array(arena, int32_t, all + 1);
    list  = arena_array(arena, PlayerSeen, all + 1);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < asks[i]->seen_count; k++, at++) {
            turns[at] = i + 1;
            list[at]  = asks[i]->seen[k];
        }
    return (SeenArgs){.turns = db_i32s(arena, turns, all), .players = players_seen_args(arena, list, all)};
}

typedef struct {
    DbArg turns, ords, users, names;
} AskedArgs;

static AskedArgs asked_args(Arena *arena, const OpeningAsk *const *asks, int count)
{
    int          all = 0, at = 0;
    int32_t     *turns, *ords;
    int64_t     *users;
    const char **names;

    for (int i = 0; i < count; i++)
        all += asked_count(asks[i]);
    turns = arena_array(arena, int32_t, all + 1);
    ords  = arena_array(arena, int32_t, all + 1);
    users = arena_array(arena, int64_t, all + 1);
    names = arena_array(arena, const char *, all + 1);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < asked_count(asks[i]); k++, at++) {
            bool is_user = k < asks[i]->users_count;

            turns[at] = i + 1;
            ords[at]  = k + 1;
            users[at] = is_user ? asks[i]->users[k] : 0;
            names[at] = is_user ? NULL : asks[i]->names[k - asks[i]->users_count];
        }
    return (AskedArgs){.turns = db_i32s(arena, turns, all),
                       .ords  = db_i32s(arena, ords, all),
                       .users = db_i64s(arena, users, all),
                       .names = db_texts(arena, names, all)};
}

ErrorCode openings_run(Tx *tx, const OpeningAsk *const *asks, int count, Opening **ret_openings, Error *reterr)
{
    TurnArgs    turns = turn_args(tx->arena, asks, count);
    SeenArgs    seen  = seen_args(tx->arena, asks, count);
    AskedArgs   asked = asked_args(tx->arena, asks, count);
    OpeningRow *rows;
    int         found;

    TRY(db_many(tx, sql_rating_turns_open,
                DB_ARGS(turns.chats, turns.titles, turns.languages, turns.dates, turns.authors, turns.counted,
                        seen.turns, seen.players.users, seen.players.names, seen.players.usernames, seen.players.bots,
                        seen.players.presents, asked.turns, asked.ords, asked.users, asked.names,
                        db_i32(asks[0]->per_user)),
                &opening_shape, &rows, &found, reterr));
    for (int i = 0; i < count; i++)
        *ret_openings[i] = (Opening){.players = arena_array(tx->arena, Player, asked_count(asks[i]) + 1)};
    for (int i = 0; i < found; i++) {
        const OpeningRow *row = &rows[i];

        row_take(row, asked_count(asks[row->turn - 1]), ret_openings[row->turn - 1]);
    }
    return OK;
}
