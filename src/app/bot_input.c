/*
 * bot_input.c - from an update to the game's input.
 */
#include "app/bot_game_internal.h"
#include "telegram/markup.h"

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

static void links_take(const TelegramMessage *message, const BotPrepared *prepared, Arena *arena, GameInput *input)
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

/* In a forum every message answers the one that opened its topic; that is no reply. */
static const TelegramMessage *reply_of(const TelegramMessage *message)
{
    const TelegramMessage *reply = message->reply_to;

    return reply && !(message->thread_id && reply->id == message->thread_id) ? reply : NULL;
}

static bool message_read(const TelegramMessage *message, const BotPrepared *prepared, Arena *arena, GameInput *input)
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

bool bot_input_read(const BotTurn *turn, GameInput *ret_input)
{
    const TelegramUpdate *update = turn->update;

    *ret_input = (GameInput){.bot_name  = turn->bot_name,
                             .bot_id    = turn->bot_id,
                             .update_id = update->id,
                             .per_user  = turn->per_user,
                             .per_group = turn->per_group,
                             .escape    = telegram_escape,
                             .topic_url = telegram_topic_url,
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
