/*
 * game_inner.h - what the files of the game share: one turn, and its replies.
 */
#ifndef RATING_GAME_INNER_H
#define RATING_GAME_INNER_H

#include "rating/game.h"
#include "rating/group.h"
#include "rating/match.h"
#include "rating/opening.h"
#include "rating/player.h"

#define GAME_TEXT_MAX ((size_t)16 << 10)

typedef struct {
    Tx              *tx;
    const GameInput *input;
    Ask              ask;
    Group            group;
    Language         language;
    int64_t          from_id; /* player; 0: anonymous, or not present in the group */
    OpeningAsk       asked;   /* who is known from it: opening.players */
    Opening          opening;
    MatchNew         match; /* to be registered; key NULL: none */
    Player           players[2];
    int64_t         *namesakes; /* outside ids of who is shown with more than the name; see turn_names() */
    int              namesakes_count;
    const char      *timezone; /* of the group; only of /settings and /chart */
    GameOutput      *output;
} Turn;

/* ---- speaking ---- */

/* A text of its own; append to it, then reply_say() it. */
void        turn_text(const Turn *turn, Text *ret_text);
const char *turn_escaped(const Turn *turn, const char *text);
/* A word of a message, shortened, and as code unless it is a name: no link becomes one of the bot's. */
const char *turn_quoted(const Turn *turn, const char *word);
/* Players of one name are distinguished: call this before the names of these users are written. */
must_check ErrorCode turn_names(Turn *turn, const int64_t *users, int count, Error *reterr);
/* The same for the players of the turns' matches, in one round trip. */
must_check ErrorCode turns_names(Tx *tx, Turn *const *turns, int count, Error *reterr);
/* How a player is called: the name, else @username, else a number; where the name is not unique, with @username or
 * digits of the number. Escaped. */
const char *turn_name(const Turn *turn, const char *name, const char *username, int64_t user_id);
const char *turn_player_name(const Turn *turn, const Player *player);
const char *turn_number(const Turn *turn, int64_t number);
const char *turn_signed(const Turn *turn, int number); /* "+16", "−16", "±0" */
/* "16.11.2026"; micros: as group_times() gives them */
const char *turn_date(const Turn *turn, int64_t micros);

GameReply *turn_reply(Turn *turn, GameReplyKind kind, const char *html);
void turn_button(Turn *turn, GameReply *reply, PhraseId text, bool ends_row, const char *format, ...) printf_like(5, 6);
/* A phrase with a link to a topic: {0} and {1} are around its words, and empty where the topic has no address. Of a
 * press, without the link. */
const char *turn_topic_text(const Turn *turn, PhraseId id, const char *topic);
/* One phrase as an answer: a message, or for a button a short text. Returns OK, for commands that end with it. */
ErrorCode turn_say(Turn *turn, PhraseId id, const char *value);
/* An answer that replaces the message with the button, or a new one. */
GameReply *turn_answer(Turn *turn, const char *html);

/* ---- who is meant ---- */

/* The player that a word of the message names, its author, or whose message it answers. false: unknown here, and it
 * was said. */
bool turn_player(Turn *turn, const AskWord *word, Player *ret_player);
/* The key of a change; what: what it changes, for presses, and for messages that have no id. */
const char *turn_key(const Turn *turn, const char *what);

/* ---- who is seen ---- */

/* seen: PLAYERS_SEEN_MAX places. A press shows that its user exists, not that the user is in the group. */
int game_seen_list(Arena *arena, const GameInput *input, PlayerSeen *seen);

/* ---- commands ---- */

typedef ErrorCode GameCommand(Turn *turn, Error *reterr);
GameCommand game_match, game_undo, game_ranking, game_me, game_stats, game_history, game_h2h, game_chart, game_settings,
    game_export;
/* Buttons; data is what follows the prefix. */
typedef ErrorCode GamePress(Turn *turn, const char *data, Error *reterr);
GamePress         game_press_again, game_press_no, game_press_undo, game_press_top, game_press_set;

/* Register the matches that the turns' commands and presses have left in them, together, and answer. */
must_check ErrorCode game_matches_register(Tx *tx, Turn *turns, int count, Error *reterr);

#endif
