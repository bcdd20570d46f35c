/*
 * translate.c - see translate.h.
 */
#include "bot/translate.h"

#include <string.h>

#include "telegram/markup.h"

/* ---- command menus ---- */

/* clang-format off */
#define MENU(scope, language, command, description) {scope, language, command, description},
#define GROUP_EN(command, kind, en, ru)   MENU("all_group_chats", "", command, en)
#define GROUP_RU(command, kind, en, ru)   MENU("all_group_chats", "ru", command, ru)
#define ADMIN_EN(command, kind, en, ru)   MENU("all_chat_administrators", "", command, en)
#define ADMIN_RU(command, kind, en, ru)   MENU("all_chat_administrators", "ru", command, ru)
const TelegramCommand bot_commands[] = {
    ASK_COMMANDS(GROUP_EN)
    ASK_COMMANDS(GROUP_RU)
    ASK_COMMANDS(ADMIN_EN) ASK_COMMANDS_OF_ADMINS(ADMIN_EN)
    ASK_COMMANDS(ADMIN_RU) ASK_COMMANDS_OF_ADMINS(ADMIN_RU)
    MENU("all_private_chats", "", "help", "what I can do")
    MENU("all_private_chats", "ru", "help", "что я умею")
    {0},
};
/* clang-format on */

/* ---- from an update to an input ---- */

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

static void links_take(const TelegramMessage *message, Arena *arena, GameInput *input)
{
    GameLink *links = arena_array(arena, GameLink, message->entities_count + 1);

    for (int i = 0; i < message->entities_count; i++) {
        const TelegramEntity *entity = &message->entities[i];

        if (entity->type == TELEGRAM_ENTITY_TEXT_MENTION && entity->user && entity->user->id)
            links[input->links_count++] = (GameLink){entity->offset, entity->length, user_new(entity->user, arena)};
    }
    input->links = links;
}

/* In a forum every message answers the one that opened its topic; that is no reply. */
static const TelegramMessage *reply_of(const TelegramMessage *message)
{
    const TelegramMessage *reply = message->reply_to;

    return reply && !(message->thread_id && reply->id == message->thread_id) ? reply : NULL;
}

static bool message_read(const TelegramMessage *message, Arena *arena, GameInput *input)
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
    links_take(message, arena, input);
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
        input->kind = !member->is_in ? GAME_REMOVED : member->was_in ? GAME_MEMBERS : GAME_ADDED;
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
        (void)message_read(callback->message, arena, input);
        input->text = NULL;
    }
    input->kind         = GAME_BUTTON;
    input->is_anonymous = false;
    input->sender_chat  = 0;
    input->admin        = ADMIN_UNKNOWN;
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

static bool update_read(const TelegramUpdate *update, Arena *arena, GameInput *input)
{
    switch (update->kind) {
    case TELEGRAM_MESSAGE:
        return update->message && message_read(update->message, arena, input);
    case TELEGRAM_CALLBACK:
        return update->callback && callback_read(update->callback, arena, input);
    case TELEGRAM_MEMBER:
    case TELEGRAM_MY_MEMBER:
        return update->member && member_read(update, arena, input);
    default:
        return false;
    }
}

bool bot_input_read(const TelegramUpdate *update, Arena *arena, GameInput *input)
{
    input->update_id = update->id;
    input->admin     = ADMIN_UNKNOWN;
    input->escape    = telegram_escape;
    input->topic_url = telegram_topic_url;
    if (!update_read(update, arena, input))
        return false;
    game_input_parse(input, arena);
    return true;
}

/* ---- from replies to messages ---- */

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

/* Beyond BOT_MESSAGES_MAX they are dropped. */
static void message_add(BotMessages *messages, const TelegramOutgoing *item)
{
    if (messages->count < BOT_MESSAGES_MAX)
        messages->list[messages->count++] = *item;
}

static void reply_add(BotMessages *messages, const GameInput *input, const GameReply *reply, Arena *arena)
{
    bool             is_press = input->kind == GAME_BUTTON;
    TelegramOutgoing item     = {.chat_id       = input->chat_id,
                                 .thread_id     = input->topic,
                                 .reply_to      = is_press ? 0 : input->message_id,
                                 .html          = reply->html,
                                 .buttons       = buttons_of(reply, arena),
                                 .buttons_count = reply->buttons_count,
                                 .is_first      = game_operation(input) != NULL, /* before all other messages */
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
    case GAME_EDIT_ABOUT:
        if (!reply->message_id)
            return;
        item.method     = TELEGRAM_EDIT;
        item.message_id = reply->message_id;
        item.reference  = NULL;
        item.is_first   = false; /* it confirms nothing: if it is refused, no new message is needed */
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
                                  .html        = plain_of(reply->html, arena),
                                  .is_alert    = reply->html && !reply->is_brief};
        break;
    }
    if (item.chat_id || item.method == TELEGRAM_ANSWER)
        message_add(messages, &item);
}

/* The answer replaces the message that showed the progress. first: of the messages of this answer. */
static void progress_end(BotMessages *messages, int first, const GameInput *input, const char *progress_id)
{
    if (!progress_id || messages->count == first)
        return;
    const TelegramOutgoing *last = &messages->list[messages->count - 1];

    if (messages->list[first].method == TELEGRAM_SEND)
        messages->list[first].replaces = progress_id;
    else if (input->kind == GAME_BUTTON && input->chat_id &&
             last->html) /* it changed the message with the button, too */
        message_add(messages, &(TelegramOutgoing){.method    = TELEGRAM_EDIT,
                                                  .chat_id   = input->chat_id,
                                                  .thread_id = input->topic,
                                                  .html      = last->html,
                                                  .is_first  = last->is_first,
                                                  .replaces  = progress_id});
}

void bot_messages_add(BotMessages *messages, const GameInput *input, const GameOutput *output, const char *progress_id,
                      Arena *arena)
{
    int first = messages->count;

    /* A button shows progress until its press is answered. */
    if (input->kind == GAME_BUTTON && output->count == 0 && !output->is_ignored && input->button_id &&
        input->button_id[0])
        reply_add(messages, input, &(GameReply){.kind = GAME_TOAST}, arena);
    for (int i = 0; i < output->count; i++)
        reply_add(messages, input, &output->list[i], arena);
    progress_end(messages, first, input, progress_id);
}

void bot_messages_add_failure(BotMessages *messages, const GameInput *input, const Error *why, const char *progress_id,
                              Arena *arena)
{
    GameOutput *output = arena_array(arena, GameOutput, 1);

    if (game_failed(input, why, arena, output))
        bot_messages_add(messages, input, output, progress_id, arena);
}
