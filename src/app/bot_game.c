/*
 * bot_game.c - see bot_game.h: reads updates for the game of module rating, and
 * writes what it says as messages.
 */
#include "app/bot_game.h"

#include <string.h>

#include "pg/tx.h"
#include "rating/game.h"
#include "rating/player.h"
#include "telegram/markup.h"
#include "telegram/member.h"
#include "telegram/outbox.h"

#define ADMIN_MS \
    5000 /* for the question whether a user is an administrator; without an      \
          answer the game says that it does not know */

/* ---- command menus ---- */

/* clang-format off */
#define MENU(scope, language, command, description) {scope, language, command, description},
#define GROUP_EN(command, kind, en, ru)   MENU("all_group_chats", "", command, en)
#define GROUP_RU(command, kind, en, ru)   MENU("all_group_chats", "ru", command, ru)
#define ADMIN_EN(command, kind, en, ru)   MENU("all_chat_administrators", "", command, en)
#define ADMIN_RU(command, kind, en, ru)   MENU("all_chat_administrators", "ru", command, ru)
const TelegramCommand bot_game_commands[] = {
    ASK_COMMANDS(GROUP_EN)
    ASK_COMMANDS(GROUP_RU)
    ASK_COMMANDS(ADMIN_EN) ASK_COMMANDS_OF_ADMINS(ADMIN_EN)
    ASK_COMMANDS(ADMIN_RU) ASK_COMMANDS_OF_ADMINS(ADMIN_RU)
    MENU("all_private_chats", "", "help", "what I can do")
    MENU("all_private_chats", "ru", "help", "что я умею")
    {0},
};
/* clang-format on */

/* ---- from an update to the game's input ---- */

static GameUser user_of(const TelegramUser *user, Arena *arena)
{
    const char *first = user->first_name ? user->first_name : "", *last = user->last_name ? user->last_name : "";

    return (GameUser){.id       = user->id,
                      .is_bot   = user->is_bot,
                      .name     = arena_print(arena, "%s%s%s", first, first[0] && last[0] ? " " : "", last),
                      .username = user->username};
}

static const GameUser *users_of(const TelegramUser *users, int count, Arena *arena)
{
    GameUser *list = arena_array(arena, GameUser, count ? count : 1);

    for (int i = 0; i < count; i++)
        list[i] = user_of(&users[i], arena);
    return list;
}

static const GameUser *user_new(const TelegramUser *user, Arena *arena)
{
    return user && user->id ? users_of(user, 1, arena) : NULL;
}

/* Servers that leave the type out: groups have negative numbers. */
static bool chat_is_private(const TelegramChat *chat)
{
    return chat->type == TELEGRAM_CHAT_PRIVATE || (chat->type == TELEGRAM_CHAT_UNKNOWN && chat->id > 0);
}

/* What bot_game_prepare() found out. */
typedef struct {
    Admin admin;
    bool *strangers; /* by link; NULL: none is known to be one */
} Prepared;

static void links_take(const TelegramMessage *message, const Prepared *prepared, Arena *arena, GameInput *input)
{
    GameLink *links = arena_array(arena, GameLink, message->entities_count + 1);

    for (int i = 0; i < message->entities_count; i++) {
        const TelegramEntity *entity = &message->entities[i];

        if (entity->type == TELEGRAM_ENTITY_TEXT_MENTION && entity->user && entity->user->id)
            links[input->links_count++] = (GameLink){entity->offset, entity->length, user_new(entity->user, arena)};
    }
    for (int i = 0; prepared && prepared->strangers && i < input->links_count; i++)
        links[i].is_stranger = prepared->strangers[i];
    input->links = links;
}

/* In a forum every message answers the one that opened its topic; that is no
 * reply. */
static const TelegramMessage *reply_of(const TelegramMessage *message)
{
    const TelegramMessage *reply = message->reply_to;

    return reply && !(message->thread_id && reply->id == message->thread_id) ? reply : NULL;
}

static bool message_read(const TelegramMessage *message, const Prepared *prepared, Arena *arena, GameInput *input)
{
    const TelegramMessage *reply = reply_of(message);

    if (message->chat.type == TELEGRAM_CHAT_CHANNEL)
        return false;
    input->kind         = GAME_MESSAGE;
    input->chat_id      = message->chat.id;
    input->chat_title   = message->chat.title;
    input->is_private   = chat_is_private(&message->chat);
    input->topic        = message->thread_id;
    input->message_id   = message->id;
    input->date_s       = message->date;
    input->is_anonymous = message->is_anonymous;
    input->sender_chat  = message->is_anonymous && message->sender_chat < 0 ? message->sender_chat : 0;
    input->is_forwarded = message->is_forwarded;
    /* Any member may write in the name of a channel; older servers name no chat. */
    if (message->is_anonymous)
        input->admin = message->is_own_name ? ADMIN_YES : message->has_sender_chat ? ADMIN_NO : ADMIN_UNKNOWN;
    input->from     = message->is_anonymous ? NULL : user_new(message->from, arena);
    input->language = message->from ? message->from->language_code : NULL;
    input->text     = message->text;
    links_take(message, prepared, arena, input);
    input->is_reply = reply != NULL;
    input->reply_to = reply && !reply->is_anonymous ? user_new(reply->from, arena) : NULL;
    if (message->members_new_count || message->member_left) {
        input->kind       = GAME_MEMBERS;
        input->came       = users_of(message->members_new, message->members_new_count, arena);
        input->came_count = message->members_new_count;
        input->left       = user_new(message->member_left, arena);
        input->left_count = input->left ? 1 : 0;
        input->from       = NULL; /* who leaves is `from` too */
        if (message->member_left && message->member_left->id == input->bot_id)
            input->kind = GAME_REMOVED;
    }
    if (message->migrate_to || message->migrate_from) {
        input->kind     = GAME_MOVED;
        input->chat_id  = message->migrate_from ? message->migrate_from : message->chat.id;
        input->moved_to = message->migrate_from ? message->chat.id : message->migrate_to;
    }
    return true;
}

static bool member_read(const TelegramUpdate *update, Arena *arena, GameInput *input)
{
    const TelegramMember *member = update->member;

    input->chat_id    = member->chat.id;
    input->chat_title = member->chat.title;
    input->language   = member->by ? member->by->language_code : NULL;
    input->is_private = chat_is_private(&member->chat);
    if (input->is_private || member->chat.type == TELEGRAM_CHAT_CHANNEL)
        return false;
    if (update->kind == TELEGRAM_MY_MEMBER) {
        input->kind = member->is_in ? GAME_MEMBERS : GAME_REMOVED;
        return true;
    }
    input->kind = GAME_MEMBERS;
    if (!member->user || member->was_in == member->is_in)
        return false;
    input->came = input->left = user_new(member->user, arena);
    input->came_count         = member->is_in ? 1 : 0;
    input->left_count         = member->is_in ? 0 : 1;
    return input->came != NULL;
}

static bool callback_read(const TelegramCallback *callback, Arena *arena, GameInput *input)
{
    if (callback->message) {
        (void)message_read(callback->message, NULL, arena, input);
        input->text = NULL;
    }
    input->kind         = GAME_BUTTON;
    input->is_anonymous = false;
    input->sender_chat  = 0;
    input->admin        = ADMIN_NO;
    input->is_reply     = false;
    input->reply_to     = NULL;
    input->links_count  = 0;
    input->date_s       = 0; /* of the message, not of the press */
    input->from         = user_new(callback->from, arena);
    input->language     = callback->from ? callback->from->language_code : NULL;
    input->button_id    = callback->id;
    input->button_data  = callback->is_shown ? callback->data : NULL;
    return true;
}

/* false: nothing for the game. Edits are not: an edit of a command is no new
 * command. */
static bool input_read(const BotTurn *turn, GameInput *ret_input)
{
    const TelegramUpdate *update = turn->update;

    *ret_input = (GameInput){.bot_name  = turn->bot_name,
                             .bot_id    = turn->bot_id,
                             .update_id = update->id,
                             .per_user  = turn->per_user,
                             .per_group = turn->per_group,
                             .escape    = telegram_escape,
                             .is_late   = turn->is_late};
    switch (update->kind) {
    case TELEGRAM_MESSAGE:
        return update->message && message_read(update->message, turn->prepared, turn->arena, ret_input);
    case TELEGRAM_CALLBACK:
        return update->callback && callback_read(update->callback, turn->arena, ret_input);
    case TELEGRAM_MEMBER:
    case TELEGRAM_MY_MEMBER:
        return update->member && member_read(update, turn->arena, ret_input);
    default:
        return false;
    }
}

/* ---- from the game's replies to messages ---- */

/* Answers to presses are plain text. */
static const char *plain_of(const char *html, Arena *arena)
{
    static const char *const references[][2] = {
        {"&lt;",  "<"},
        {"&gt;",  ">"},
        {"&amp;", "&"}
    };
    Text text;

    if (!html)
        return NULL;
    text_init(&text, arena, TEXT_MAX_LINE);
    while (*html) {
        size_t i = 0;

        if (*html == '<' && strchr(html, '>')) {
            html = strchr(html, '>') + 1;
            continue;
        }
        while (i < COUNT(references) && strncmp(html, references[i][0], strlen(references[i][0])) != 0)
            i++;
        if (i < COUNT(references)) {
            text_append(&text, references[i][1]);
            html += strlen(references[i][0]);
        } else {
            text_append_char(&text, *html++);
        }
    }
    return telegram_shorten(text_string(&text), TELEGRAM_ANSWER_MAX, arena);
}

static const TelegramButton *buttons_of(const GameReply *reply, Arena *arena)
{
    TelegramButton *buttons = arena_array(arena, TelegramButton, reply->buttons_count + 1);

    for (int i = 0; i < reply->buttons_count; i++)
        buttons[i] = (TelegramButton){reply->buttons[i].text, reply->buttons[i].data, reply->buttons[i].ends_row};
    return buttons;
}

static void reply_send(BotTurn *turn, const GameInput *input, const GameReply *reply)
{
    bool             is_press = input->kind == GAME_BUTTON;
    TelegramOutgoing item     = {.chat_id       = input->chat_id,
                                 .thread_id     = input->topic,
                                 .reply_to      = is_press ? 0 : input->message_id,
                                 .html          = reply->html,
                                 .buttons       = buttons_of(reply, turn->arena),
                                 .buttons_count = reply->buttons_count,
                                 .reference     = reply->reference,
                                 .file          = reply->file,
                                 .file_size     = reply->file_size,
                                 .file_name     = reply->file_name};

    switch (reply->kind) {
    case GAME_SAY:
        item.method = TELEGRAM_SEND;
        break;
    case GAME_EDIT:
        item.method     = input->message_id ? TELEGRAM_EDIT : TELEGRAM_SEND;
        item.message_id = input->message_id;
        break;
    case GAME_PHOTO:
        item.method = TELEGRAM_PHOTO;
        break;
    case GAME_DOCUMENT:
        item.method = TELEGRAM_DOCUMENT;
        break;
    case GAME_TOAST:
        item = (TelegramOutgoing){.method      = TELEGRAM_ANSWER,
                                  .callback_id = input->button_id,
                                  .html        = plain_of(reply->html, turn->arena),
                                  .is_alert    = reply->html != NULL};
        break;
    }
    if (item.chat_id || item.method == TELEGRAM_ANSWER)
        bot_turn_send(turn, &item);
}

/* The answer takes the place of the message that showed progress. */
static void progress_end(BotTurn *turn, const GameInput *input, int first)
{
    if (!turn->progress || !turn->progress->is_shown || turn->outgoing_count == first)
        return;
    const TelegramOutgoing *last = &turn->outgoing[turn->outgoing_count - 1];

    if (turn->outgoing[first].method == TELEGRAM_SEND)
        turn->outgoing[first].replaces = turn->progress->message_id;
    else if (input->kind == GAME_BUTTON && input->chat_id &&
             last->html) /* which has changed the message with the button, too */
        bot_turn_send(turn, &(TelegramOutgoing){.method    = TELEGRAM_EDIT,
                                                .chat_id   = input->chat_id,
                                                .thread_id = input->topic,
                                                .html      = last->html,
                                                .replaces  = turn->progress->message_id});
}

static void progress_show(void *context, const char *html)
{
    const BotTurn *turn = context;
    GameInput      input;

    if (input_read(turn, &input) && input.chat_id)
        bot_progress_show(turn->progress, &(TelegramOutgoing){.method    = TELEGRAM_SEND,
                                                              .chat_id   = input.chat_id,
                                                              .thread_id = input.topic,
                                                              .reply_to  = input.message_id,
                                                              .html      = html});
}

static void output_send(BotTurn *turn, const GameInput *input, const GameOutput *output)
{
    int first = turn->outgoing_count;

    /* A press that got no answer shows progress until it expires. */
    if (input->kind == GAME_BUTTON && output->count == 0 && !output->is_ignored && input->button_id &&
        input->button_id[0])
        reply_send(turn, input, &(GameReply){.kind = GAME_TOAST});
    for (int i = 0; i < output->count; i++)
        reply_send(turn, input, &output->list[i]);
    progress_end(turn, input, first);
}

/* ---- the three functions ---- */

/* ---- users who are named by a link ---- */

typedef struct {
    int64_t  chat_id;
    int64_t *users;
    int      count;
    bool    *known; /* members of the group */
} KnownAsk;

static ErrorCode known_body(Tx *tx, void *context, Error *reterr)
{
    KnownAsk *ask     = context;
    Player   *players = arena_array(tx->arena, Player, ask->count);
    Error     error   = {0};
    Group     group;
    ErrorCode code = group_get(tx, ask->chat_id, &group, &error);

    if (code == ERR_NOT_FOUND)
        return OK;
    if (code != OK) {
        *reterr = error;
        return code;
    }
    TRY(players_of_users(tx, group.id, ask->users, ask->count, players, reterr));
    for (int i = 0; i < ask->count; i++)
        ask->known[i] = players[i].is_member;
    return OK;
}

static const char *status_of(const BotTurn *turn, int64_t chat_id, int64_t user_id, Deadline deadline)
{
    TelegramMemberAsk ask = {
        .pool = turn->pool, .bot = turn->bot, .chat_id = chat_id, .user_id = user_id, .deadline = deadline};

    return telegram_member_status(&ask, turn->arena);
}

/* A link names any user of the messenger: one who has not been seen in the group is asked about. What the server does not know is no reason
 * to refuse. */
static bool is_stranger(BotTurn *turn, int64_t chat_id, int64_t user_id, Deadline deadline)
{
    const char *status = status_of(turn, chat_id, user_id, deadline);

    return strcmp(status, "left") == 0 || strcmp(status, "kicked") == 0;
}

/* ret_strangers[i]: of link i. */
static ErrorCode strangers_find(BotTurn *turn, const GameInput *input, bool *ret_strangers, Error *reterr)
{
    Deadline  deadline = deadline_sooner(turn->deadline, deadline_in_ms(ADMIN_MS));
    KnownAsk  ask      = {.chat_id = input->chat_id,
                          .users   = arena_array(turn->arena, int64_t, input->links_count),
                          .count   = input->links_count,
                          .known   = arena_array(turn->arena, bool, input->links_count)};
    TxOptions options  = {.name = "known", .deadline = turn->deadline, .arena = turn->arena, .keyed = true};

    for (int i = 0; i < ask.count; i++)
        ask.users[i] = input->links[i].user->id;
    TRY(tx_run(turn->pool, &options, known_body, &ask, reterr));
    for (int i = 0; i < ask.count; i++)
        if (!ask.known[i] && !input->links[i].user->is_bot && !deadline_passed(deadline))
            ret_strangers[i] = is_stranger(turn, input->chat_id, ask.users[i], deadline);
    return OK;
}

/* What the server cannot answer is unknown, and no reason to try the update
 * again. */
static Admin admin_find(BotTurn *turn, int64_t chat_id, int64_t user_id)
{
    const char *status = status_of(turn, chat_id, user_id, deadline_sooner(turn->deadline, deadline_in_ms(ADMIN_MS)));

    if (!status[0])
        return ADMIN_UNKNOWN;
    return strcmp(status, "administrator") == 0 || strcmp(status, "creator") == 0 ? ADMIN_YES : ADMIN_NO;
}

ErrorCode bot_game_prepare(BotTurn *turn, Error *reterr)
{
    Prepared *prepared = arena_array(turn->arena, Prepared, 1);
    GameInput input;

    prepared->admin = ADMIN_UNKNOWN;
    if (!input_read(turn, &input) || !input.chat_id) {
        turn->prepared = prepared;
        return OK;
    }
    if (game_needs_admin(&input, turn->arena))
        prepared->admin = admin_find(turn, input.chat_id, input.from->id);
    if (input.links_count > 0 && !input.is_private) {
        prepared->strangers = arena_array(turn->arena, bool, input.links_count);
        TRY(strangers_find(turn, &input, prepared->strangers, reterr));
    }
    turn->prepared = prepared;
    return OK;
}

bool bot_game_is_shared(BotTurn *turn)
{
    const char *operation = bot_game_operation(turn);

    return turn->update->kind == TELEGRAM_MESSAGE && operation && strcmp(operation, GAME_MATCH) == 0;
}

/* What an undo refers to by answering a message. */
static ErrorCode reference_read(Tx *tx, BotTurn *turn, GameInput *input, Error *reterr)
{
    const char *operation = game_operation(input, tx->arena);

    if (input->kind != GAME_MESSAGE || !input->is_reply || !operation || strcmp(operation, GAME_UNDO) != 0)
        return OK;
    return telegram_reference_find(tx, turn->bot_id, input->chat_id, turn->update->message->reply_to->id,
                                   &input->reply_reference, reterr);
}

ErrorCode bot_game_update(Tx *tx, BotTurn *const *turns, int count, Error *reterr)
{
    GameInput  *inputs  = arena_array(tx->arena, GameInput, count);
    GameOutput *outputs = arena_array(tx->arena, GameOutput, count);
    BotTurn   **given   = arena_array(tx->arena, BotTurn *, count);
    int         all     = 0;

    for (int i = 0; i < count; i++) {
        const Prepared *prepared = turns[i]->prepared;
        GameInput      *input    = &inputs[all];

        if (!input_read(turns[i], input))
            continue;
        if (!input->is_anonymous)
            input->admin = prepared ? prepared->admin : ADMIN_UNKNOWN;
        TRY(reference_read(tx, turns[i], input, reterr));
        if (turns[i]->progress) {
            input->progress         = progress_show;
            input->progress_context = turns[i];
        }
        given[all++] = turns[i];
    }
    if (all > 0)
        TRY(game_run(tx, inputs, all, outputs, reterr));
    for (int i = 0; i < all; i++)
        output_send(given[i], &inputs[i], &outputs[i]);
    return OK;
}

const char *bot_game_operation(BotTurn *turn)
{
    GameInput input;

    return input_read(turn, &input) ? game_operation(&input, turn->arena) : NULL;
}

bool bot_game_is_long(BotTurn *turn)
{
    const char *operation = bot_game_operation(turn);

    return operation && strcmp(operation, GAME_UNDO) == 0;
}

void bot_game_failed(BotTurn *turn, const Error *why)
{
    GameInput   input;
    GameOutput *output = arena_alloc(turn->arena, sizeof *output);

    if (input_read(turn, &input) && game_failed(&input, why, turn->arena, output))
        output_send(turn, &input, output);
}
