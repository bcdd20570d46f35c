/*
 * game.c - see game.h: who is seen, limits, topics, and which command it is.
 */
#include "rating/game.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rating/game_inner.h"
#include "rating/metric.h"

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

const char *turn_name(const Turn *turn, const char *name, const char *username, int64_t user_id)
{
    if (name && name[0])
        return turn_escaped(turn, name);
    if (username && username[0])
        return turn_escaped(turn, arena_print(turn->tx->arena, "@%s", username));
    return turn_number(turn, user_id);
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

GameReply *turn_reply(Turn *turn, GameReplyKind kind, const char *html)
{
    GameOutput *output = turn->output;
    GameReply  *reply  = &output->list[output->count < GAME_REPLIES_MAX ? output->count++ : GAME_REPLIES_MAX - 1];

    *reply = (GameReply){.kind = kind, .html = html};
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

void turn_say(Turn *turn, PhraseId id, const char *value)
{
    Text text;

    turn_text(turn, &text);
    PHRASE(&text, turn->language, id, value);
    turn_reply(turn, turn->input->kind == GAME_BUTTON ? GAME_TOAST : GAME_SAY, text_string(&text));
}

GameReply *turn_answer(Turn *turn, const char *html)
{
    if (turn->input->kind != GAME_BUTTON)
        return turn_reply(turn, GAME_SAY, html);
    turn_reply(turn, GAME_TOAST, NULL);
    return turn_reply(turn, GAME_EDIT, html);
}

/* ---- who is meant ---- */

ErrorCode turn_player(Turn *turn, const AskWord *word, Player *ret_player, bool *ret_found, Error *reterr)
{
    if (word->user) {
        TRY(players_of_users(turn->tx, turn->group.id, &word->user->id, 1, ret_player, reterr));
    } else if (word->is_name) {
        const char *name = word->text + 1;

        TRY(players_named(turn->tx, turn->group.id, &name, 1, ret_player, reterr));
    } else {
        *ret_player = (Player){0};
    }
    *ret_found = ret_player->player_id && (ret_player->is_member || ret_player->is_bot);
    if (!*ret_found)
        turn_say(turn, PHRASE_PLAYER_UNKNOWN, turn_escaped(turn, word->text));
    return OK;
}

const char *turn_key(const Turn *turn, const char *what)
{
    const GameInput *input = turn->input;
    unsigned char    hash[16];
    char             hex[sizeof hash * 2 + 1];
    const char      *text;

    if (input->kind == GAME_BUTTON && input->button_id && input->button_id[0])
        return arena_print(turn->tx->arena, "press:%.150s", input->button_id);
    if (input->kind == GAME_MESSAGE && input->message_id)
        return arena_print(turn->tx->arena, "%" PRId64 ":%" PRId64, input->chat_id, input->message_id);
    text = arena_print(turn->tx->arena, "%" PRId64 "|%s|%" PRId64, input->chat_id, what, input->date_s);
    crypto_generichash(hash, sizeof hash, (const unsigned char *)text, strlen(text), NULL, 0);
    sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
    return arena_print(turn->tx->arena, "hash:%s", hex);
}

/* ---- who is seen ---- */

static PlayerSeen seen_of(const GameUser *user, PlayerSight sight)
{
    return (PlayerSeen){
        .user_id = user->id, .name = user->name, .username = user->username, .is_bot = user->is_bot, .sight = sight};
}

static ErrorCode players_remember(Turn *turn, Error *reterr)
{
    const GameInput *input = turn->input;
    PlayerSeen       seen[PLAYERS_SEEN_MAX];
    int64_t          ids[PLAYERS_SEEN_MAX] = {0};
    int              count                 = 0;

    if (input->from && !input->is_anonymous)
        seen[count++] = seen_of(input->from, PLAYER_PRESENT);
    if (input->reply_to)
        seen[count++] = seen_of(input->reply_to, PLAYER_NAMED);
    for (int i = 0; i < input->links_count && count < PLAYERS_SEEN_MAX; i++)
        if (input->links[i].user)
            seen[count++] = seen_of(input->links[i].user, PLAYER_NAMED);
    for (int i = 0; i < input->came_count && count < PLAYERS_SEEN_MAX; i++)
        seen[count++] = seen_of(&input->came[i], PLAYER_PRESENT);
    for (int i = 0; i < input->left_count && count < PLAYERS_SEEN_MAX; i++)
        seen[count++] = seen_of(&input->left[i], PLAYER_LEFT);
    if (count == 0)
        return OK;
    TRY(players_seen(turn->tx, turn->group.id, input->date_s ? input->date_s : clock_wall().us / 1000000, seen, count,
                     ids, reterr));
    if (input->from && !input->is_anonymous)
        turn->from_id = ids[0];
    return OK;
}

/* ---- limits, topics ---- */

/* Beyond a limit only the first command is answered: more answers would add to the flood. */
static ErrorCode limits_check(Turn *turn, bool *ret_refused, Error *reterr)
{
    Usage usage;

    TRY(usage_add(turn->tx, turn->group.id, turn->from_id, &usage, reterr));
    *ret_refused = usage.by_player > GAME_PER_PLAYER || usage.by_group > GAME_PER_GROUP;
    if (*ret_refused)
        metric_add(&rating_metrics.limited, 1);
    if (usage.by_player == GAME_PER_PLAYER + 1 || usage.by_group == GAME_PER_GROUP + 1)
        turn_say(turn, PHRASE_TOO_MANY, NULL);
    return OK;
}

static bool topic_is_wrong(const Turn *turn, const char *topic)
{
    return topic && strtoll(topic, NULL, 10) != turn->input->topic;
}

static bool topic_refused(Turn *turn, AskKind kind)
{
    switch (kind) {
    case ASK_MATCH:
        if (!topic_is_wrong(turn, turn->group.match_topic))
            return false;
        turn_say(turn, PHRASE_WRONG_TOPIC_MATCH, NULL);
        return true;
    case ASK_RANKING:
    case ASK_ME:
    case ASK_STATS:
    case ASK_HISTORY:
    case ASK_H2H:
    case ASK_CHART:
        if (!topic_is_wrong(turn, turn->group.ranking_topic))
            return false;
        turn_say(turn, PHRASE_WRONG_TOPIC_RANKING, NULL);
        return true;
    default:
        return false;
    }
}

/* ---- commands ---- */

static const struct {
    GameCommand *run;
    PhraseId     help;
} commands[ASK_COUNT] = {
    [ASK_START]    = {NULL,          PHRASE_WELCOME      },
    [ASK_HELP]     = {NULL,          PHRASE_WELCOME      },
    [ASK_MATCH]    = {game_match,    PHRASE_HELP_MATCH   },
    [ASK_RANKING]  = {game_ranking,  PHRASE_HELP_RANKING },
    [ASK_ME]       = {game_me,       PHRASE_HELP_ME      },
    [ASK_STATS]    = {game_stats,    PHRASE_HELP_STATS   },
    [ASK_HISTORY]  = {game_history,  PHRASE_HELP_HISTORY },
    [ASK_H2H]      = {game_h2h,      PHRASE_HELP_H2H     },
    [ASK_CHART]    = {game_chart,    PHRASE_HELP_CHART   },
    [ASK_UNDO]     = {game_undo,     PHRASE_HELP_UNDO    },
    [ASK_SETTINGS] = {game_settings, PHRASE_HELP_SETTINGS},
    [ASK_EXPORT]   = {game_export,   PHRASE_HELP_EXPORT  },
};

static ErrorCode command_run(Turn *turn, Error *reterr)
{
    AskKind kind = turn->ask.kind;
    bool    refused;

    if (turn->input->is_forwarded) {
        turn_say(turn, PHRASE_FORWARDED, NULL);
        return OK;
    }
    TRY(limits_check(turn, &refused, reterr));
    if (refused)
        return OK;
    if (turn->ask.wants_help || !commands[kind].run) {
        turn_say(turn, commands[kind].help, turn_number(turn, turn->group.undo_hours));
        return OK;
    }
    if (topic_refused(turn, kind))
        return OK;
    return commands[kind].run(turn, reterr);
}

static ErrorCode press_run(Turn *turn, Error *reterr)
{
    static const struct {
        const char *prefix;
        GamePress  *run;
    } presses[] = {
        {"again:", game_press_again},
        {"no",     game_press_no   },
        {"undo:",  game_press_undo },
        {"top:",   game_press_top  },
        {"set:",   game_press_set  },
    };
    const char *data = turn->input->button_data;
    bool        refused;

    TRY(limits_check(turn, &refused, reterr));
    for (size_t i = 0; data && !refused && i < COUNT(presses); i++)
        if (strncmp(data, presses[i].prefix, strlen(presses[i].prefix)) == 0)
            return presses[i].run(turn, data + strlen(presses[i].prefix), reterr);
    if (turn->output->count == 0)
        turn_reply(turn, GAME_TOAST, NULL); /* ends the progress that the button shows */
    return OK;
}

static void private_run(Turn *turn)
{
    if (turn->ask.kind == ASK_START || turn->ask.kind == ASK_HELP)
        turn_say(turn, PHRASE_WELCOME_PRIVATE, NULL);
    else if (turn->ask.kind != ASK_NONE)
        turn_say(turn, PHRASE_ONLY_IN_GROUPS, NULL);
    else if (turn->input->kind == GAME_BUTTON)
        turn_reply(turn, GAME_TOAST, NULL);
}

static ErrorCode removed_run(Turn *turn, Error *reterr)
{
    Error     error = {0};
    ErrorCode code  = group_get(turn->tx, turn->input->chat_id, &turn->group, &error);

    if (code == ERR_NOT_FOUND)
        return OK;
    if (code != OK) {
        *reterr = error;
        return code;
    }
    return group_set(turn->tx, turn->group.id, "is_active", "false", reterr);
}

static ErrorCode group_run(Turn *turn, Error *reterr)
{
    const GameInput *input = turn->input;

    TRY(group_open(turn->tx, input->chat_id, input->chat_title, language_codes[language_of(input->language)],
                   &turn->group, reterr));
    if (!turn->group.is_active)
        TRY(group_set(turn->tx, turn->group.id, "is_active", "true", reterr));
    turn->language = language_of(turn->group.language);
    TRY(players_remember(turn, reterr));
    if (input->kind == GAME_BUTTON)
        return press_run(turn, reterr);
    if (input->kind != GAME_MESSAGE || turn->ask.kind == ASK_NONE)
        return OK;
    return command_run(turn, reterr);
}

ErrorCode game_run(Tx *tx, const GameInput *input, GameOutput *ret_output, Error *reterr)
{
    Error local = {0};
    Turn  turn  = {.tx = tx, .input = input, .language = language_of(input->language), .output = ret_output};
    bool  moved;

    reterr      = reterr ? reterr : &local;
    *ret_output = (GameOutput){0};
    if (input->chat_id == 0)
        return OK;
    if (input->kind == GAME_MESSAGE)
        ask_parse(input->text, input->links, input->links_count, input->bot_name, tx->arena, &turn.ask);
    if (input->is_private) {
        private_run(&turn);
        return OK;
    }
    if (input->kind == GAME_MOVED)
        return input->moved_to && input->moved_to != input->chat_id
                   ? group_move(tx, input->chat_id, input->moved_to, &moved, reterr)
                   : OK;
    if (input->kind == GAME_REMOVED)
        return removed_run(&turn, reterr);
    return group_run(&turn, reterr);
}

bool game_needs_admin(const GameInput *input, Arena *arena)
{
    Ask ask;

    if (input->is_private || !input->from || input->is_anonymous)
        return false;
    if (input->kind == GAME_BUTTON)
        return input->button_data &&
               (strncmp(input->button_data, "undo:", 5) == 0 || strncmp(input->button_data, "set:", 4) == 0);
    if (input->kind != GAME_MESSAGE)
        return false;
    ask_parse(input->text, input->links, input->links_count, input->bot_name, arena, &ask);
    return (ask.kind == ASK_UNDO || ask.kind == ASK_SETTINGS) && !ask.wants_help;
}

bool game_failed(const GameInput *input, const Error *why, Arena *arena, GameOutput *ret_output)
{
    Tx   tx        = {.arena = arena};
    Turn turn      = {.tx = &tx, .input = input, .language = language_of(input->language), .output = ret_output};
    bool is_outage = why->code == ERR_UNAVAILABLE || why->code == ERR_TIMEOUT || why->code == ERR_REFUSED ||
                     why->code == ERR_UNKNOWN || (why->code == ERR_BUSY && strcmp(why->sqlstate, MATCH_CONFLICT) != 0);

    *ret_output = (GameOutput){0};
    if (input->kind == GAME_MESSAGE)
        ask_parse(input->text, input->links, input->links_count, input->bot_name, arena, &turn.ask);
    if (input->kind != GAME_BUTTON && turn.ask.kind == ASK_NONE)
        return false;
    turn_say(&turn,
             is_outage               ? PHRASE_FAILED_LATER
             : why->code == ERR_BUSY ? PHRASE_FAILED_CONFLICT
                                     : PHRASE_FAILED,
             NULL);
    return true;
}
