/*
 * game_match.c - /match, /undo and their buttons.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rating/board.h"
#include "rating/game_inner.h"
#include "rating/match.h"
#include "rating/metric.h"
#include "rating/rules.h"
#include "sql.h"

/* 0: it is no number of a match or a question. */
static int64_t match_number(const char *text)
{
    size_t length = strspn(text, "0123456789");

    return length > 0 && length <= 18 && text[length] == '\0' ? strtoll(text, NULL, 10) : 0;
}

/* ---- /match ---- */

static void match_refused(Turn *turn, const MatchDone *done, const Player players[2])
{
    static const PhraseId phrases[] = {
        [MATCH_ONE_PLAYER] = PHRASE_PLAYERS_SAME,  [MATCH_SCORES] = PHRASE_SCORES_WRONG,
        [MATCH_NO_SCORE] = PHRASE_SCORES_ZERO,     [MATCH_NO_DRAWS] = PHRASE_NO_DRAWS,
        [MATCH_NO_MEMBER] = PHRASE_PLAYER_UNKNOWN, [MATCH_LEFT] = PHRASE_PLAYER_LEFT,
        [MATCH_BOT] = PHRASE_PLAYER_BOT,           [MATCH_KEY_USED] = PHRASE_KEY_USED,
    };
    const char *value = done->verdict == MATCH_SCORES ? turn_number(turn, MATCH_SCORE_MAX)
                                                      : turn_player_name(turn, &players[done->which]);

    metric_add(&rating_metrics.refused, 1);
    turn_say(turn, phrases[done->verdict], value);
}

/* The match that is asked about is in the database: what a press says is the client's word. */
static ErrorCode match_ask_back(Turn *turn, const MatchNew *match, Error *reterr)
{
    int64_t    id;
    Text       text;
    GameReply *reply;

    TRY(db_get_i64(turn->tx, sql_rating_question_put,
                   DB_ARGS(db_i64(turn->group.id), db_text(match->key), db_i64(match->player[0]),
                           db_i64(match->player[1]), db_i32(match->score[0]), db_i32(match->score[1]),
                           match->author_id ? db_i64(match->author_id) : db_null()),
                   &id, reterr));
    turn_text(turn, &text);
    PHRASE_ALONE(&text, turn->language, PHRASE_MATCH_SAME_ASK);
    reply       = turn_reply(turn, GAME_SAY, NULL);
    reply->html = text_string(&text); /* a question: also a late input is not done yet */
    turn_button(turn, reply, PHRASE_BUTTON_AGAIN, false, "again:%" PRId64, id);
    turn_button(turn, reply, PHRASE_BUTTON_NO, true, "no:%" PRId64, id);
    return OK;
}

static void match_show(Turn *turn, const MatchDone *done, const int64_t places[2])
{
    const MatchNew *match    = &turn->match;
    const char     *names[2] = {turn_player_name(turn, &turn->players[0]), turn_player_name(turn, &turn->players[1])};
    int             first    = match->score[1] > match->score[0]; /* the winner */
    GameReply      *reply;
    Text            text;

    turn_text(turn, &text);
    PHRASE(&text, turn->language, match->score[0] == match->score[1] ? PHRASE_MATCH_DRAWN : PHRASE_MATCH_DONE,
           names[first], turn_number(turn, match->score[first]), turn_number(turn, match->score[!first]),
           names[!first]);
    for (int n = 0; n < 2; n++) {
        int i = n ? !first : first, after = rating_points(done->after[i]);

        text_append_char(&text, '\n');
        PHRASE(&text, turn->language, places[i] ? PHRASE_MATCH_LINE : PHRASE_MATCH_LINE_NO_PLACE, names[i],
               turn_number(turn, after), turn_signed(turn, after - rating_points(done->before[i])),
               turn_number(turn, places[i]));
    }
    reply            = turn_answer(turn, text_string(&text));
    reply->reference = arena_print(turn->tx->arena, "match:%" PRId64, done->id);
    turn_button(turn, reply, PHRASE_BUTTON_UNDO, true, "undo:%" PRId64, done->id);
}

/* Of both players of a match on the leaderboard; 0: none. */
typedef struct {
    int64_t of[2];
} Places;

static bool match_is_shown(const MatchDone *done)
{
    return done->verdict == MATCH_REGISTERED || done->verdict == MATCH_REPEATED;
}

static ErrorCode match_answer(Turn *turn, const MatchDone *done, const Places *places, Error *reterr)
{
    if (done->verdict == MATCH_SAME)
        return match_ask_back(turn, &turn->match, reterr);
    if (match_is_shown(done))
        match_show(turn, done, places->of);
    else
        match_refused(turn, done, turn->players);
    return OK;
}

/* One for each match; those of matches that are not shown are not read. */
static ErrorCode places_read(Tx *tx, MatchTry *const *tries, int count, Places *ret_places, Error *reterr)
{
    int64_t *groups = arena_array(tx->arena, int64_t, 2 * count), *players = arena_array(tx->arena, int64_t, 2 * count),
            *read = arena_array(tx->arena, int64_t, 2 * count);
    int shown = 0, at = 0;

    for (int i = 0; i < 2 * count; i++)
        if (match_is_shown(&tries[i / 2]->done)) {
            groups[shown]    = tries[i / 2]->group->id;
            players[shown++] = tries[i / 2]->match->player[i % 2];
        }
    if (shown > 0)
        TRY(board_places(tx, groups, players, shown, read, reterr));
    for (int i = 0; i < 2 * count; i++)
        ret_places[i / 2].of[i % 2] = match_is_shown(&tries[i / 2]->done) ? read[at++] : 0;
    return OK;
}

ErrorCode game_matches_register(Tx *tx, Turn *turns, int count, Error *reterr)
{
    MatchTry **tries  = arena_array(tx->arena, MatchTry *, count);
    Turn     **given  = arena_array(tx->arena, Turn *, count);
    Places    *places = arena_array(tx->arena, Places, count);
    int        all    = 0;

    for (int i = 0; i < count; i++)
        if (turns[i].match.key) {
            tries[all]   = arena_array(tx->arena, MatchTry, 1);
            *tries[all]  = (MatchTry){.group = &turns[i].group, .match = &turns[i].match};
            given[all++] = &turns[i];
        }
    if (all == 0)
        return OK;
    TRY(matches_register(tx, tries, all, reterr));
    TRY(places_read(tx, tries, all, places, reterr));
    TRY(turns_names(tx, given, all, reterr));
    for (int i = 0; i < all; i++)
        TRY(match_answer(given[i], &tries[i]->done, &places[i], reterr));
    return OK;
}

/* Two scores and up to two names, in any order of the two kinds: "@ann @bob 3 1", "@ann 3:1 @bob", "3:1 @bob". */
static bool words_are_match(Turn *turn, AskWord *ret_names, int *ret_named)
{
    const Ask *ask    = &turn->ask;
    int        scores = 0;

    *ret_named = 0;
    if (ask->count > 4)
        return false;
    for (int i = 0; i < ask->count; i++) {
        const AskWord *word    = &ask->words[i];
        bool           is_name = word->user || word->is_name;

        if ((is_name ? *ret_named : scores) == 2 || (!is_name && ask_score(word->text) < 0))
            return false;
        if (is_name)
            ret_names[(*ret_named)++] = *word;
        else
            turn->match.score[scores++] = ask_score(word->text);
    }
    return scores == 2;
}

/* One name is the opponent's, none: the opponent is replied to. false: said what is wrong. */
static bool names_complete(Turn *turn, AskWord *names, int named)
{
    if (named == 2)
        return true;
    if (!turn->from_id || (named == 0 && !turn->input->reply_to)) {
        turn_say(turn, turn->from_id ? PHRASE_MATCH_REPLY_FORMAT : PHRASE_MATCH_ANONYMOUS, NULL);
        return false;
    }
    names[1] = named == 1 ? names[0] : (AskWord){.text = "", .user = turn->input->reply_to};
    names[0] = (AskWord){.text = "", .user = turn->input->from};
    return true;
}

/* Both players and both scores from the words, or one opponent and the author. false: said what is wrong. */
static bool match_read(Turn *turn)
{
    AskWord names[2];
    int     named;

    ask_split_scores(&turn->ask, turn->tx->arena);
    if (!words_are_match(turn, names, &named)) {
        turn_say(turn, PHRASE_MATCH_FORMAT, NULL);
        return false;
    }
    if (!names_complete(turn, names, named))
        return false;
    for (int i = 0; i < 2; i++) {
        if (!turn_player(turn, &names[i], &turn->players[i]))
            return false;
        turn->match.player[i] = turn->players[i].player_id;
    }
    return true;
}

ErrorCode game_match(Turn *turn, Error *reterr)
{
    MatchNew *match = &turn->match;

    (void)reterr;
    *match = (MatchNew){.author_id = turn->from_id, .date_s = turn->input->date_s};
    if (!match_read(turn))
        return OK;
    /* Without a message id the button could not carry the key. */
    match->is_confirmed = turn->input->message_id == 0;
    match->key = turn_key(turn, arena_print(turn->tx->arena, "match|%" PRId64 "|%" PRId64 "|%d|%d", match->player[0],
                                            match->player[1], match->score[0], match->score[1]));
    return OK;
}

#define QUESTION_COLUMNS(X, T)    \
    X(T, BOOL, is_allowed)        \
    X(T, TEXT, key)               \
    X(T, I64, player_a, player_b) \
    X(T, I32, score_a, score_b)
DB_ROW(QuestionRow, QUESTION_COLUMNS);
DB_SHAPE(question, QuestionRow, QUESTION_COLUMNS);

/* NULL: the question is gone, or not for who pressed, which was said. */
static ErrorCode question_take(Turn *turn, const char *data, const QuestionRow **ret_question, Error *reterr)
{
    const QuestionRow *question;
    int                count;

    *ret_question = NULL;
    TRY(db_many(turn->tx, sql_rating_question_take,
                DB_ARGS(db_i64(turn->group.id), db_i64(match_number(data)), db_i64(turn->from_id)), &question_shape,
                &question, &count, reterr));
    if (count == 0)
        turn_say(turn, PHRASE_QUESTION_GONE, NULL);
    else if (!question->is_allowed)
        turn_say(turn, PHRASE_QUESTION_NOT_YOURS, NULL);
    else
        *ret_question = question;
    return OK;
}

/* The key is that of the message that was asked back: pressed by several people it is one match. */
ErrorCode game_press_again(Turn *turn, const char *data, Error *reterr)
{
    const QuestionRow *question;

    TRY(question_take(turn, data, &question, reterr));
    if (!question)
        return OK;
    turn->match = (MatchNew){
        .author_id    = turn->from_id,
        .is_confirmed = true,
        .key          = question->key,
        .player       = {question->player_a, question->player_b},
        .score        = {question->score_a,  question->score_b },
    };
    return players_get(turn->tx, turn->group.id, turn->match.player, 2, turn->players, reterr);
}

ErrorCode game_press_no(Turn *turn, const char *data, Error *reterr)
{
    const QuestionRow *question;

    TRY(question_take(turn, data, &question, reterr));
    if (question)
        turn_answer(turn, phrase_text(turn->language, PHRASE_NOT_REGISTERED));
    return OK;
}

/* ---- /undo ---- */

static void undo_refused(Turn *turn, const UndoDone *done)
{
    metric_add(&rating_metrics.refused, 1);
    if (done->is_unsure && (done->verdict == UNDO_NOT_YOURS || done->verdict == UNDO_TOO_LATE)) {
        turn_say(turn, PHRASE_UNDO_UNSURE, NULL);
        return;
    }
    switch (done->verdict) {
    case UNDO_NOTHING:
        turn_say(turn, PHRASE_UNDO_NOTHING, NULL);
        break;
    case UNDO_ALREADY:
        turn_say(turn, PHRASE_UNDO_ALREADY, NULL);
        break;
    case UNDO_TOO_LATE:
        turn_say(turn, turn->group.undo_hours ? PHRASE_UNDO_TOO_LATE : PHRASE_UNDO_ADMINS,
                 turn_number(turn, turn->group.undo_hours));
        break;
    case UNDO_KEY_USED:
        turn_say(turn, PHRASE_KEY_USED, NULL);
        break;
    case UNDO_TOO_OLD:
        turn_say(turn, PHRASE_UNDO_TOO_OLD, turn_number(turn, UNDO_MATCHES_MAX));
        break;
    default:
        turn_say(turn, PHRASE_UNDO_NOT_YOURS, NULL);
        break;
    }
}

static ErrorCode undo_show(Turn *turn, const UndoDone *done, Error *reterr)
{
    int64_t     ids[UNDO_SHOWN_MAX + 2] = {done->match.player_a, done->match.player_b}, users[UNDO_SHOWN_MAX + 2];
    Player      players[UNDO_SHOWN_MAX + 2];
    Text        text;
    const char *head;

    for (int i = 0; i < done->changes_count; i++)
        ids[2 + i] = done->changes[i].player_id;
    TRY(players_get(turn->tx, turn->group.id, ids, 2 + done->changes_count, players, reterr));
    for (int i = 0; i < 2 + done->changes_count; i++)
        users[i] = players[i].user_id;
    TRY(turn_names(turn, users, 2 + done->changes_count, reterr));
    turn_text(turn, &text);
    PHRASE(&text, turn->language, PHRASE_UNDO_HEAD, turn_player_name(turn, &players[0]),
           turn_number(turn, done->match.score_a), turn_number(turn, done->match.score_b),
           turn_player_name(turn, &players[1]));
    head = arena_text(turn->tx->arena, text_string(&text));
    for (int i = 0; i < done->changes_count; i++) {
        text_append_char(&text, '\n');
        PHRASE(&text, turn->language, PHRASE_UNDO_LINE, turn_player_name(turn, &players[2 + i]),
               turn_number(turn, rating_points(done->changes[i].before)),
               turn_number(turn, rating_points(done->changes[i].after)));
    }
    if (done->replayed && done->verdict == UNDO_DONE) { /* a repeat does not know the changes any more */
        text_append_char(&text, '\n');
        PHRASE(&text, turn->language, PHRASE_UNDO_REPLAYED, turn_number(turn, done->replayed),
               turn_number(turn, done->changes_all));
    }
    if (turn->input->kind == GAME_BUTTON) { /* the edit may come late, or be refused */
        turn_reply(turn, GAME_TOAST, phrase_text(turn->language, PHRASE_UNDO_TOAST))->is_brief = true;
        turn_reply(turn, GAME_EDIT, text_string(&text));
    } else {
        turn_reply(turn, GAME_SAY, text_string(&text));
        turn_reply(turn, GAME_EDIT_ABOUT, head)->reference =
            arena_print(turn->tx->arena, "match:%" PRId64, done->match.id);
    }
    return OK;
}

static void undo_progress(void *context, int done, int total)
{
    Turn     *turn = context;
    ArenaMark mark = arena_mark(turn->tx->arena);
    Text      text;

    turn_text(turn, &text);
    PHRASE(&text, turn->language, PHRASE_UNDO_PROGRESS, turn_number(turn, done), turn_number(turn, total));
    turn->input->progress(turn->input->progress_context, text_string(&text));
    arena_rewind(turn->tx->arena, mark);
}

static ErrorCode undo_try(Turn *turn, int64_t match_id, Error *reterr)
{
    UndoAsk  ask  = {.match_id  = match_id,
                     .player_id = turn->from_id,
                     .admin     = turn->input->admin,
                     .progress  = turn->input->progress ? undo_progress : NULL,
                     .context   = turn};
    UndoDone done = {0};

    ask.key = turn_key(turn, arena_print(turn->tx->arena, "undo|%" PRId64 "|%" PRId64, turn->from_id, match_id));
    TRY(undo_run(turn->tx, &turn->group, &ask, &done, reterr));
    if (done.verdict == UNDO_DONE || done.verdict == UNDO_REPEATED)
        return undo_show(turn, &done, reterr);
    undo_refused(turn, &done);
    return OK;
}

/* A reply to a message that is about no match, and words that could mean one, are refused rather than taken for
 * "the last one". */
ErrorCode game_undo(Turn *turn, Error *reterr)
{
    const char *reference = turn->input->reply_reference;
    int64_t     match_id  = 0;

    if (turn->input->is_reply && reference && strncmp(reference, "match:", 6) == 0)
        match_id = match_number(reference + 6);
    if (turn->ask.count > 0 || (turn->input->is_reply && !match_id))
        return turn_say(turn, PHRASE_UNDO_NO_REFERENCE, NULL);
    return undo_try(turn, match_id, reterr);
}

ErrorCode game_press_undo(Turn *turn, const char *data, Error *reterr)
{
    int64_t match_id = match_number(data);

    if (!match_id) {
        turn_reply(turn, GAME_TOAST, NULL);
        return OK;
    }
    return undo_try(turn, match_id, reterr);
}
