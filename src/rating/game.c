/*
 * game.c - see game.h: who is seen, limits, topics, and which command it is.
 */
#include "rating/game.h"

#include <string.h>

#include "base/log.h"
#include "rating/game_inner.h"
#include "rating/metric.h"

/* ---- who is seen ---- */

static int per_user(const GameInput *input)
{
    return input->per_user ? input->per_user : GAME_PER_USER;
}

static int per_group(const GameInput *input)
{
    return input->per_group ? input->per_group : GAME_PER_GROUP;
}

/* The author first, so that he is players[0]. */
static void asked_list(const Turn *turn, OpeningAsk *asked)
{
    const GameInput *input = turn->input;
    const Ask       *ask   = &turn->ask;
    int64_t         *users = arena_array(turn->tx->arena, int64_t, ASK_WORDS_MAX + 2);
    const char     **names = arena_array(turn->tx->arena, const char *, ASK_WORDS_MAX + 1);

    asked->users = users;
    asked->names = names;
    if (input->from)
        users[asked->users_count++] = input->from->id;
    if (input->reply_to)
        users[asked->users_count++] = input->reply_to->id;
    for (int i = 0; i < ask->count && i < ASK_WORDS_MAX; i++)
        if (ask->words[i].user)
            users[asked->users_count++] = ask->words[i].user->id;
        else if (ask->words[i].is_name)
            names[asked->names_count++] = ask->words[i].text + 1;
}

static void turn_ask(Turn *turn)
{
    const GameInput *input = turn->input;
    PlayerSeen      *seen  = arena_array(turn->tx->arena, PlayerSeen, PLAYERS_SEEN_MAX);

    turn->asked = (OpeningAsk){
        .chat_id    = input->chat_id,
        .title      = input->chat_title,
        .language   = input->language ? language_codes[language_of(input->language)] : NULL,
        .date_s     = input->date_s,
        .seen       = seen,
        .seen_count = game_seen_list(turn->tx->arena, input, seen),
        .author_id  = input->from ? input->from->id : input->sender_chat,
        .per_user   = per_user(input),
        .is_counted = input->kind == GAME_BUTTON || (input->kind == GAME_MESSAGE && turn->ask.kind != ASK_NONE),
    };
    asked_list(turn, &turn->asked);
}

/* Those that are about a group and its players. */
static bool turn_is_opened(const Turn *turn)
{
    const GameInput *input = turn->input;

    return input->chat_id && !input->is_private && input->kind != GAME_MOVED && input->kind != GAME_REMOVED;
}

static ErrorCode turns_open(Tx *tx, Turn *turns, int count, Error *reterr)
{
    const OpeningAsk **asks     = arena_array(tx->arena, const OpeningAsk *, count);
    Opening          **openings = arena_array(tx->arena, Opening *, count);
    int                opened   = 0;

    for (int i = 0; i < count; i++)
        if (turn_is_opened(&turns[i])) {
            turn_ask(&turns[i]);
            asks[opened]       = &turns[i].asked;
            openings[opened++] = &turns[i].opening;
        }
    if (opened > 0)
        TRY(openings_run(tx, asks, opened, openings, reterr));
    for (int i = 0; i < count; i++) {
        Turn *turn = &turns[i];

        if (!turn_is_opened(turn))
            continue;
        turn->group    = turn->opening.group;
        turn->language = language_of(turn->group.language);
        if (turn->input->from && turn->opening.players[0].is_present)
            turn->from_id = turn->opening.players[0].player_id;
    }
    return OK;
}

/* ---- limits, topics ---- */

/* Does it ask for a match, by a message or by the button of a question? */
static bool turn_is_match(const Turn *turn)
{
    const char *data = turn->input->kind == GAME_BUTTON ? turn->input->button_data : NULL;

    return turn->ask.kind == ASK_MATCH || (data && strncmp(data, "again:", 6) == 0);
}

/* Beyond a limit only the first command is answered, because more answers would add to the flood. Where others have
 * used up the group's limit, a user is notified of the first command. A match is always answered: who sent it
 * believes that it counts. */
static bool limits_refused(Turn *turn, const Usage *usage)
{
    int  most = per_user(turn->input), most_all = per_group(turn->input);
    bool by_others = usage->by_player <= most && usage->by_group > most_all;

    if (usage->by_player <= most && !by_others)
        return false;
    metric_add(&rating_metrics.limited, 1);
    if (turn_is_match(turn) && !turn->input->is_private)
        turn_say(turn, PHRASE_TOO_MANY_MATCH, NULL);
    else if (usage->by_player == most + 1 || (by_others && (usage->by_group == most_all + 1 || usage->by_player == 1)))
        turn_say(turn, PHRASE_TOO_MANY, NULL);
    else
        turn->output->is_ignored = true;
    return true;
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
        turn_reply(turn, GAME_SAY, turn_topic_text(turn, PHRASE_WRONG_TOPIC_MATCH, turn->group.match_topic));
        return true;
    case ASK_RANKING:
    case ASK_ME:
    case ASK_STATS:
    case ASK_HISTORY:
    case ASK_H2H:
    case ASK_CHART:
        if (!topic_is_wrong(turn, turn->group.ranking_topic))
            return false;
        turn_reply(turn, GAME_SAY, turn_topic_text(turn, PHRASE_WRONG_TOPIC_RANKING, turn->group.ranking_topic));
        return true;
    default:
        return false;
    }
}

/* ---- commands ---- */

static const struct {
    GameCommand *run;
    PhraseId     help;
    int          players; /* that it takes */
} commands[ASK_COUNT] = {
    [ASK_START]    = {NULL,          PHRASE_WELCOME,       0                 },
    [ASK_HELP]     = {NULL,          PHRASE_WELCOME,       0                 },
    [ASK_MATCH]    = {game_match,    PHRASE_HELP_MATCH,    2                 },
    [ASK_RANKING]  = {game_ranking,  PHRASE_HELP_RANKING,  0                 },
    [ASK_ME]       = {game_me,       PHRASE_HELP_ME,       0                 },
    [ASK_STATS]    = {game_stats,    PHRASE_HELP_STATS,    1                 },
    [ASK_HISTORY]  = {game_history,  PHRASE_HELP_HISTORY,  1                 },
    [ASK_H2H]      = {game_h2h,      PHRASE_HELP_H2H,      2                 },
    [ASK_CHART]    = {game_chart,    PHRASE_HELP_CHART,    GAME_CHART_PLAYERS},
    [ASK_UNDO]     = {game_undo,     PHRASE_HELP_UNDO,     0                 },
    [ASK_SETTINGS] = {game_settings, PHRASE_HELP_SETTINGS, 0                 },
    [ASK_EXPORT]   = {game_export,   PHRASE_HELP_EXPORT,   0                 },
};

static ErrorCode command_run(Turn *turn, Error *reterr)
{
    AskKind kind = turn->ask.kind;

    if (limits_refused(turn, &turn->opening.usage))
        return OK;
    if (turn->input->is_forwarded)
        return turn_say(turn, PHRASE_FORWARDED, NULL);
    if (turn->ask.wants_help || !commands[kind].run)
        return turn_say(turn,
                        kind == ASK_UNDO && turn->group.undo_hours == 0 ? PHRASE_HELP_UNDO_ADMINS : commands[kind].help,
                        turn_number(turn, turn->group.undo_hours));
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
        {"no:",    game_press_no   },
        {"undo:",  game_press_undo },
        {"top:",   game_press_top  },
        {"set:",   game_press_set  },
    };
    const char *data    = turn->input->button_data;
    bool        refused = limits_refused(turn, &turn->opening.usage);

    for (size_t i = 0; data && !refused && i < COUNT(presses); i++)
        if (strncmp(data, presses[i].prefix, strlen(presses[i].prefix)) == 0)
            return presses[i].run(turn, data + strlen(presses[i].prefix), reterr);
    if (turn->output->count == 0 && !refused)
        turn_reply(turn, GAME_TOAST, NULL); /* ends the progress that the button shows */
    return OK;
}

static ErrorCode private_run(Turn *turn, Error *reterr)
{
    bool    is_press = turn->input->kind == GAME_BUTTON;
    int64_t user     = turn->input->from ? turn->input->from->id : turn->input->chat_id;
    Usage   usage;

    if (!is_press && turn->ask.kind == ASK_NONE)
        return OK;
    TRY(usage_add(turn->tx, user > 0 ? -user : user, 0, turn->input->date_s, per_user(turn->input), &usage, reterr));
    if (limits_refused(turn, &usage))
        return OK;
    if (!is_press)
        return turn_say(turn,
                        turn->ask.kind == ASK_START || turn->ask.kind == ASK_HELP ? PHRASE_WELCOME_PRIVATE
                                                                                  : PHRASE_ONLY_IN_GROUPS,
                        NULL);
    turn_reply(turn, GAME_TOAST, NULL);
    return OK;
}

/* Of the two updates that tell of a move one comes first; the other finds nothing to move. */
static ErrorCode moved_run(Turn *turn, Error *reterr)
{
    int64_t from = turn->input->chat_id, to = turn->input->moved_to;
    Error   error = {0};
    bool    moved;

    if (!to || to == from)
        return OK;
    TRY(group_move(turn->tx, from, to, &moved, reterr));
    if (!moved && group_get(turn->tx, from, &turn->group, &error) == OK && turn->group.chat_id == from)
        log_write(LOG_ERROR, "rating", "a group moved to a chat that has matches of its own; both are kept",
                  LOG_INT("from", from), LOG_INT("to", to));
    return OK;
}

static ErrorCode removed_run(Turn *turn, Error *reterr)
{
    Error     error = {0};
    ErrorCode code  = group_get(turn->tx, turn->input->chat_id, &turn->group, &error);

    if (code == ERR_NOT_FOUND)
        return OK;
    TRY(error_pass(code, &error, reterr));
    if (turn->group.chat_id != turn->input->chat_id) /* the chat that it had before it moved */
        return OK;
    TRY(group_set(turn->tx, turn->group.id, "is_published", "false", reterr));
    return group_set(turn->tx, turn->group.id, "is_active", "false", reterr);
}

static ErrorCode group_run(Turn *turn, Error *reterr)
{
    const GameInput *input = turn->input;

    if (!turn->group.is_active &&
        input->kind != GAME_BUTTON) /* messages of a bot that was removed keep their buttons */
        TRY(group_set(turn->tx, turn->group.id, "is_active", "true", reterr));
    if (input->kind == GAME_BUTTON)
        return press_run(turn, reterr);
    if (input->kind == GAME_ADDED)
        turn_say(turn, PHRASE_WELCOME, NULL);
    if (input->kind != GAME_MESSAGE || turn->ask.kind == ASK_NONE)
        return OK;
    return command_run(turn, reterr);
}

static ErrorCode turn_run(Turn *turn, Error *reterr)
{
    if (turn->input->chat_id == 0)
        return OK;
    if (turn->input->is_private)
        return private_run(turn, reterr);
    if (turn->input->kind == GAME_MOVED)
        return moved_run(turn, reterr);
    if (turn->input->kind == GAME_REMOVED)
        return removed_run(turn, reterr);
    return group_run(turn, reterr);
}

/* The answer to a change is sent, however many messages wait. */
static bool is_change(const Ask *ask)
{
    return !ask->wants_help &&
           (ask->kind == ASK_MATCH || ask->kind == ASK_UNDO || (ask->kind == ASK_SETTINGS && ask->count > 0));
}

void game_input_parse(GameInput *input, Arena *arena)
{
    input->ask = (Ask){0};
    if (input->kind == GAME_MESSAGE)
        ask_parse(input->text, input->links, input->links_count, input->bot_name, arena, &input->ask);
}

ErrorCode game_run(Tx *tx, const GameInput *inputs, int count, GameOutput *ret_outputs, Error *reterr)
{
    Error local = {0};
    Turn *turns = arena_array(tx->arena, Turn, count);

    reterr = reterr ? reterr : &local;
    for (int i = 0; i < count; i++) {
        const GameInput *input = &inputs[i];

        turns[i]       = (Turn){.tx       = tx,
                                .input    = input,
                                .ask      = input->ask,
                                .language = language_of(input->language),
                                .output   = &ret_outputs[i]};
        ret_outputs[i] = (GameOutput){0};
    }
    TRY(turns_open(tx, turns, count, reterr));
    for (int i = 0; i < count; i++) {
        if (!is_change(&turns[i].ask))
            ret_outputs[i].busy = phrase_text(turns[i].language, PHRASE_BUSY);
        TRY(turn_run(&turns[i], reterr));
    }
    return game_matches_register(tx, turns, count, reterr);
}

int game_links_taken(const GameInput *input, bool *ret_taken)
{
    const Ask *ask   = &input->ask;
    int        taken = 0;

    memset(ret_taken, 0, sizeof *ret_taken * (size_t)input->links_count);
    if (input->kind != GAME_MESSAGE || input->is_private || input->is_forwarded)
        return 0;
    for (int i = 0; i < ask->count && i < ASK_WORDS_MAX && taken < commands[ask->kind].players; i++)
        for (int link = 0; link < input->links_count; link++)
            if (ask->words[i].user && input->links[link].user == ask->words[i].user) {
                ret_taken[link] = true;
                taken++;
                break;
            }
    return taken;
}

ErrorCode game_is_within_limits(Tx *tx, int64_t group_id, const GameInput *input, bool *ret_is, Error *reterr)
{
    return usage_is_left(tx, group_id, input->from ? input->from->id : input->sender_chat, input->date_s,
                         per_user(input), per_group(input), ret_is, reterr);
}

bool game_needs_admin(const GameInput *input)
{
    const Ask *ask = &input->ask;

    if (input->is_private || !input->from || input->is_anonymous)
        return false;
    if (input->kind == GAME_BUTTON)
        return input->button_data &&
               (strncmp(input->button_data, "undo:", 5) == 0 || strncmp(input->button_data, "set:", 4) == 0);
    return input->kind == GAME_MESSAGE && (ask->kind == ASK_UNDO || ask->kind == ASK_SETTINGS) && !ask->wants_help;
}

const char *game_operation(const GameInput *input)
{
    const Ask *ask = &input->ask;

    if (input->is_private || (input->kind != GAME_MESSAGE && input->kind != GAME_BUTTON))
        return NULL;
    if (input->kind == GAME_BUTTON) {
        const char *data = input->button_data ? input->button_data : "";

        return strncmp(data, "undo:", 5) == 0 ? GAME_UNDO : strncmp(data, "again:", 6) == 0 ? GAME_MATCH : NULL;
    }
    if (ask->wants_help)
        return NULL;
    return ask->kind == ASK_MATCH ? GAME_MATCH : ask->kind == ASK_UNDO ? GAME_UNDO : NULL;
}

bool game_failed(const GameInput *input, const Error *why, Arena *arena, GameOutput *ret_output)
{
    Tx        tx        = {.arena = arena};
    GameInput undone    = *input;
    Language  said      = language_of(input->language);
    Turn      turn      = {.tx = &tx, .input = &undone, .ask = input->ask, .language = said, .output = ret_output};
    bool      is_outage = why->code == ERR_UNAVAILABLE || why->code == ERR_TIMEOUT || why->code == ERR_REFUSED ||
                     why->code == ERR_UNKNOWN || (why->code == ERR_BUSY && strcmp(why->sqlstate, MATCH_CONFLICT) != 0);

    *ret_output    = (GameOutput){0};
    undone.is_late = false;
    if (input->kind != GAME_BUTTON && turn.ask.kind == ASK_NONE)
        return false;
    turn_say(&turn,
             is_outage               ? PHRASE_FAILED_LATER
             : why->code == ERR_BUSY ? PHRASE_FAILED_CONFLICT
                                     : PHRASE_FAILED,
             NULL);
    return true;
}
