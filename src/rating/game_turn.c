/*
 * game_turn.c - one turn: its words, its replies, who is meant by it, and its key.
 */
#include "rating/game_inner.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "rating/name.h"

#define KEY_MAX      200
#define QUOTED_MAX   64 /* bytes of a word that is quoted */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_" /* of usernames */

/* ---- speaking ---- */

void turn_text(const Turn *turn, Text *ret_text)
{
    text_init(ret_text, turn->tx->arena, GAME_TEXT_MAX);
}

const char *turn_escaped(const Turn *turn, const char *text)
{
    Text escaped;

    turn_text(turn, &escaped);
    turn->input->escape(&escaped, text);
    return text_string(&escaped);
}

/* ---- names ---- */

ErrorCode turn_names(Turn *turn, const int64_t *users, int count, Error *reterr)
{
    Arena   *arena  = turn->tx->arena;
    int64_t *groups = arena_array(arena, int64_t, count + 1);
    bool    *are    = arena_array(arena, bool, count + 1);

    for (int i = 0; i < count; i++)
        groups[i] = turn->group.id;
    TRY(players_namesakes(turn->tx, groups, users, count, are, reterr));
    turn->namesakes       = arena_array(arena, int64_t, count + 1);
    turn->namesakes_count = 0;
    for (int i = 0; i < count; i++)
        if (are[i])
            turn->namesakes[turn->namesakes_count++] = users[i];
    return OK;
}

ErrorCode turns_names(Tx *tx, Turn *const *turns, int count, Error *reterr)
{
    int64_t *groups = arena_array(tx->arena, int64_t, 2 * count + 1);
    int64_t *users  = arena_array(tx->arena, int64_t, 2 * count + 1);
    bool    *are    = arena_array(tx->arena, bool, 2 * count + 1);

    for (int i = 0; i < 2 * count; i++) {
        groups[i] = turns[i / 2]->group.id;
        users[i]  = turns[i / 2]->players[i % 2].user_id;
    }
    TRY(players_namesakes(tx, groups, users, 2 * count, are, reterr));
    for (int i = 0; i < count; i++) {
        Turn *turn = turns[i];

        turn->namesakes       = arena_array(tx->arena, int64_t, 2);
        turn->namesakes_count = 0;
        for (int side = 0; side < 2; side++)
            if (are[2 * i + side])
                turn->namesakes[turn->namesakes_count++] = users[2 * i + side];
    }
    return OK;
}

static bool has_namesake(const Turn *turn, int64_t user_id)
{
    for (int i = 0; i < turn->namesakes_count; i++)
        if (turn->namesakes[i] == user_id)
            return true;
    return false;
}

const char *turn_name(const Turn *turn, const char *name, const char *username, int64_t user_id)
{
    Arena      *arena = turn->tx->arena;
    const char *shown = name_inert(arena, name);
    const char *at    = username && username[0] ? name_inert(arena, arena_print(arena, "@%s", username)) : NULL;

    if (!shown[0])
        return at ? turn_escaped(turn, at) : turn_number(turn, user_id);
    if (has_namesake(turn, user_id))
        shown = at ? arena_print(arena, "%s (%s)", shown, at)
                   : arena_print(arena, "%s (…%04d)", shown, abs((int)(user_id % 10000)));
    return turn_escaped(turn, shown);
}

const char *turn_player_name(const Turn *turn, const Player *player)
{
    return turn_name(turn, player->name, player->username, player->user_id);
}

const char *turn_number(const Turn *turn, int64_t number)
{
    return arena_print(turn->tx->arena, "%" PRId64, number);
}

const char *turn_signed(const Turn *turn, int number)
{
    if (number == 0)
        return "±0";
    return arena_print(turn->tx->arena, "%s%d", number > 0 ? "+" : "−", abs(number));
}

const char *turn_date(const Turn *turn, int64_t micros)
{
    time_t    seconds = (time_t)(micros / 1000000);
    struct tm day     = {0};
    char      text[32];

    gmtime_r(&seconds, &day);
    return strftime(text, sizeof text, "%d.%m.%Y", &day) ? arena_text(turn->tx->arena, text) : "";
}

/* The first message says that the input was done late; not one that refuses it. */
static const char *late_say(const Turn *turn, GameReplyKind kind, const char *html)
{
    static const char refusal[] = "❌";
    Text              text;

    if (!turn->input->is_late || kind == GAME_TOAST || !html || strncmp(html, refusal, sizeof refusal - 1) == 0)
        return html;
    for (int i = 0; i < turn->output->count; i++)
        if (turn->output->list[i].kind != GAME_TOAST)
            return html;
    turn_text(turn, &text);
    text_append(&text, html);
    text_append_char(&text, '\n');
    PHRASE_ALONE(&text, turn->language, PHRASE_DONE_LATE);
    return text_string(&text);
}

GameReply *turn_reply(Turn *turn, GameReplyKind kind, const char *html)
{
    const char *shown  = late_say(turn, kind, html);
    GameOutput *output = turn->output;
    GameReply  *reply  = &output->list[output->count < GAME_REPLIES_MAX ? output->count++ : GAME_REPLIES_MAX - 1];

    *reply = (GameReply){.kind = kind, .html = shown};
    return reply;
}

void turn_button(Turn *turn, GameReply *reply, PhraseId text, bool ends_row, const char *format, ...)
{
    char    data[GAME_DATA_MAX * 2];
    va_list values;
    int     length;

    va_start(values, format);
    length = vsnprintf(data, sizeof data, format, values);
    va_end(values);
    if (length <= 0 || length > GAME_DATA_MAX || reply->buttons_count == GAME_BUTTONS_MAX)
        return;
    reply->buttons[reply->buttons_count++] =
        (GameButton){phrase_text(turn->language, text), arena_text(turn->tx->arena, data), ends_row};
}

const char *turn_topic_text(const Turn *turn, PhraseId id, const char *topic)
{
    const GameInput *input = turn->input;
    Arena           *arena = turn->tx->arena;
    const char      *url   = input->topic_url && input->kind == GAME_MESSAGE
                                 ? input->topic_url(turn->group.chat_id, strtoll(topic, NULL, 10), arena)
                                 : NULL;
    Text             text;

    turn_text(turn, &text);
    PHRASE(&text, turn->language, id, url ? arena_print(arena, "<a href=\"%s\">", url) : "", url ? "</a>" : "");
    return text_string(&text);
}

ErrorCode turn_say(Turn *turn, PhraseId id, const char *value)
{
    Text text;

    turn_text(turn, &text);
    PHRASE(&text, turn->language, id, value);
    turn_reply(turn, turn->input->kind == GAME_BUTTON ? GAME_TOAST : GAME_SAY, text_string(&text));
    return OK;
}

GameReply *turn_answer(Turn *turn, const char *html)
{
    if (turn->input->kind != GAME_BUTTON)
        return turn_reply(turn, GAME_SAY, html);
    turn_reply(turn, GAME_TOAST, NULL);
    return turn_reply(turn, GAME_EDIT, html);
}

/* ---- who is meant ---- */

/* Everyone who is named in the message was asked for when the turn was opened. */
static const Player *known_find(const Turn *turn, const AskWord *word)
{
    const OpeningAsk *asked = &turn->asked;

    for (int i = 0; word->user && i < asked->users_count; i++)
        if (asked->users[i] == word->user->id)
            return &turn->opening.players[i];
    for (int i = 0; !word->user && word->is_name && i < asked->names_count; i++)
        if (strcmp(asked->names[i], word->text + 1) == 0)
            return &turn->opening.players[asked->users_count + i];
    return NULL;
}

const char *turn_quoted(const Turn *turn, const char *word)
{
    size_t size = strlen(word), cut = text_cut(word, size, QUOTED_MAX);

    if (word[0] == '@' && cut == size && word[1 + strspn(word + 1, NAME_LETTERS)] == '\0')
        return turn_escaped(turn, word);
    return arena_print(turn->tx->arena, "<code>%s%s</code>",
                       turn_escaped(turn, arena_print(turn->tx->arena, "%.*s", (int)cut, word)), cut < size ? "…" : "");
}

bool turn_player(Turn *turn, const AskWord *word, Player *ret_player)
{
    const Player *known = known_find(turn, word);

    *ret_player = known ? *known : (Player){0};
    if (ret_player->player_id && (ret_player->is_member || ret_player->is_bot))
        return true;
    if (word->is_name && turn->input->bot_name && strcasecmp(word->text + 1, turn->input->bot_name) == 0) {
        turn_say(turn, PHRASE_PLAYER_ME, NULL);
        return false;
    }
    turn_say(turn, PHRASE_PLAYER_UNKNOWN,
             word->text[0] || !word->user || !word->user->name
                 ? turn_quoted(turn, word->text)
                 : turn_name(turn, word->user->name, word->user->username, word->user->id));
    return false;
}

static const char *key_hash(const Turn *turn, const char *text)
{
    unsigned char hash[16];
    char          hex[sizeof hash * 2 + 1];

    crypto_generichash(hash, sizeof hash, (const unsigned char *)text, strlen(text), NULL, 0);
    sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
    return arena_print(turn->tx->arena, "hash:%s", hex);
}

const char *turn_key(const Turn *turn, const char *what)
{
    const GameInput *input = turn->input;
    Arena           *arena = turn->tx->arena;
    const char      *bot   = input->bot_id ? arena_print(arena, ":%" PRId64, input->bot_id) : "";
    const char      *key;

    if (input->kind == GAME_BUTTON && input->button_id && input->button_id[0]) {
        key = arena_print(arena, "press:%" PRId64 ":%s:%s%s", input->chat_id, input->button_id, what, bot);
        return strlen(key) <= KEY_MAX ? key : key_hash(turn, key);
    }
    if (input->kind == GAME_MESSAGE && input->message_id)
        return arena_print(arena, "%" PRId64 ":%" PRId64 "%s", input->chat_id, input->message_id, bot);
    return key_hash(turn, arena_print(arena, "%" PRId64 "|%s|%" PRId64 "%s", input->chat_id, what,
                                      input->date_s ? input->date_s : -input->update_id, bot));
}
