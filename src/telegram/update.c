/*
 * update.c - see update.h.
 */
#include "telegram/update.h"

#include <string.h>

#include "base/scan.h"
#include "base/text.h"
#include "base/value.h"
#include "base/writer.h"
#include "telegram/markup.h"

/* What a message may have of each; the Bot API has fewer. */
#define ENTITIES_MAX 256
#define MEMBERS_MAX  256
/* Structs and decoded texts of an update, for each of its bytes and beside them. */
#define ARENA_FACTOR 4
#define ARENA_MORE   ((size_t)128 << 10)
/* Seconds until the year 5138; what is larger counts milliseconds, as some emulators do. */
#define SECONDS_MAX INT64_C(100000000000)

const char telegram_allowed_updates[] =
    "[\"message\",\"edited_message\",\"callback_query\",\"my_chat_member\",\"chat_member\"]";

/* ---- parts of a message ---- */

static int64_t parse_date(Value value)
{
    int64_t date = value_i64(value);

    if (date > SECONDS_MAX)
        date /= 1000;
    return date > 0 && date <= SECONDS_MAX ? date : 0;
}

static void user_read(Value json, Arena *arena, TelegramUser *ret_user)
{
    *ret_user = (TelegramUser){
        .id            = value_i64(value_field(json, "id")),
        .is_bot        = value_true(value_field(json, "is_bot")),
        .first_name    = value_text(value_field(json, "first_name"), arena),
        .last_name     = value_text(value_field(json, "last_name"), arena),
        .username      = value_text(value_field(json, "username"), arena),
        .language_code = value_text(value_field(json, "language_code"), arena),
    };
}

/* Ignore a user without an id. */
static const TelegramUser *parse_user(Value json, Arena *arena)
{
    if (value_i64(value_field(json, "id")) == 0)
        return NULL;
    TelegramUser *user = arena_array(arena, TelegramUser, 1);

    user_read(json, arena, user);
    return user;
}

static const TelegramUser *parse_users(Value array, Arena *arena, int *ret_count)
{
    TelegramUser *users = NULL;
    int           count = 0;
    Value         item;

    for (const char *at = NULL; count < MEMBERS_MAX && value_item_next(array, &at, &item);) {
        if (value_i64(value_field(item, "id")) == 0)
            continue;
        if (!users)
            users = arena_array(arena, TelegramUser, MEMBERS_MAX);
        user_read(item, arena, &users[count++]);
    }
    *ret_count = count;
    return users;
}

static TelegramChat parse_chat(Value json, Arena *arena)
{
    static const char *const names[] = {[TELEGRAM_CHAT_PRIVATE]    = "private",
                                        [TELEGRAM_CHAT_GROUP]      = "group",
                                        [TELEGRAM_CHAT_SUPERGROUP] = "supergroup",
                                        [TELEGRAM_CHAT_CHANNEL]    = "channel"};
    TelegramChat             chat    = {.id       = value_i64(value_field(json, "id")),
                                        .title    = value_text(value_field(json, "title"), arena),
                                        .is_forum = value_true(value_field(json, "is_forum"))};
    const char              *type    = value_text(value_field(json, "type"), arena);

    for (size_t i = TELEGRAM_CHAT_PRIVATE; type && i < COUNT(names); i++)
        if (strcmp(type, names[i]) == 0)
            chat.type = (TelegramChatType)i;
    return chat;
}

/* ---- entities ---- */

static TelegramEntityType entity_type(Value json, Arena *arena)
{
    const char *type = value_text(value_field(json, "type"), arena);

    if (!type)
        return TELEGRAM_ENTITY_OTHER;
    if (strcmp(type, "bot_command") == 0)
        return TELEGRAM_ENTITY_COMMAND;
    if (strcmp(type, "mention") == 0)
        return TELEGRAM_ENTITY_MENTION;
    return strcmp(type, "text_mention") == 0 ? TELEGRAM_ENTITY_TEXT_MENTION : TELEGRAM_ENTITY_OTHER;
}

/* Where the last entity began: entities come in order, so the text is walked once. */
typedef struct {
    const char *text;
    size_t      size, size_units, units, offset;
} EntityCursor;

/* false: it points outside of the text. */
static bool entity_place(EntityCursor *cursor, Value json, TelegramEntity *entity)
{
    int64_t begin = value_i64(value_field(json, "offset")), length = value_i64(value_field(json, "length"));

    if (begin < 0 || length <= 0 || (size_t)begin >= cursor->size_units ||
        (size_t)length > cursor->size_units - (size_t)begin)
        return false;
    if ((size_t)begin < cursor->units)
        cursor->units = cursor->offset = 0;
    entity->offset = telegram_bytes_at(cursor->text, cursor->size, cursor->offset, (size_t)begin - cursor->units);
    entity->length = telegram_bytes_at(cursor->text, cursor->size, entity->offset, (size_t)length) - entity->offset;
    cursor->units  = (size_t)begin;
    cursor->offset = entity->offset;
    return entity->length > 0;
}

static void parse_entities(Value array, Arena *arena, TelegramMessage *message)
{
    size_t          size   = strlen(message->text);
    EntityCursor    cursor = {.text = message->text, .size = size, .size_units = telegram_units(message->text, size)};
    TelegramEntity *list   = NULL;
    int             count  = 0;
    Value           item;

    for (const char *at = NULL; count < ENTITIES_MAX && value_item_next(array, &at, &item);) {
        TelegramEntity entity = {.type = entity_type(item, arena)};

        if (!entity_place(&cursor, item, &entity))
            continue;
        if (entity.type == TELEGRAM_ENTITY_TEXT_MENTION)
            entity.user = parse_user(value_field(item, "user"), arena);
        if (entity.type == TELEGRAM_ENTITY_TEXT_MENTION && !entity.user)
            continue;
        if (!list)
            list = arena_array(arena, TelegramEntity, ENTITIES_MAX);
        list[count++] = entity;
    }
    message->entities       = list;
    message->entities_count = count;
}

static void parse_text(Value json, Arena *arena, TelegramMessage *message)
{
    bool is_text = value_field(json, "text").size > 0;

    message->text = value_text(value_field(json, is_text ? "text" : "caption"), arena);
    if (message->text)
        parse_entities(value_field(json, is_text ? "entities" : "caption_entities"), arena, message);
}

/* ---- messages ---- */

/* In the General topic, and in threads of replies outside of forums, an answer must not name one. */
static int64_t parse_thread(Value json, const TelegramChat *chat)
{
    int64_t thread = value_i64(value_field(json, "message_thread_id"));
    bool    topic  = value_true(value_field(json, "is_topic_message")) || chat->is_forum;

    return topic && thread > 1 ? thread : 0;
}

static bool is_anonymous(Value json, const TelegramUser *from)
{
    /* 1087968824 is @GroupAnonymousBot, 136817688 @Channel_Bot: the senders that older servers name. */
    return value_field(json, "sender_chat").size > 0 ||
           (from && (from->id == INT64_C(1087968824) || from->id == INT64_C(136817688)));
}

static const TelegramMessage *parse_message(Value json, bool with_reply, Arena *arena)
{
    if (value_kind(json) != VALUE_OBJECT)
        return NULL;
    TelegramMessage *message = arena_array(arena, TelegramMessage, 1);

    message->id              = value_i64(value_field(json, "message_id"));
    message->date            = parse_date(value_field(json, "date"));
    message->chat            = parse_chat(value_field(json, "chat"), arena);
    message->thread_id       = parse_thread(json, &message->chat);
    message->from            = parse_user(value_field(json, "from"), arena);
    message->is_anonymous    = is_anonymous(json, message->from);
    message->has_sender_chat = value_field(json, "sender_chat").size > 0;
    message->sender_chat     = value_i64(value_field(value_field(json, "sender_chat"), "id"));
    message->is_own_name     = message->chat.id != 0 && message->sender_chat == message->chat.id;
    message->is_forwarded    = value_field(json, "forward_origin").size || value_field(json, "forward_date").size ||
                            value_field(json, "forward_from").size || value_field(json, "forward_from_chat").size;
    message->members_new  = parse_users(value_field(json, "new_chat_members"), arena, &message->members_new_count);
    message->member_left  = parse_user(value_field(json, "left_chat_member"), arena);
    message->migrate_to   = value_i64(value_field(json, "migrate_to_chat_id"));
    message->migrate_from = value_i64(value_field(json, "migrate_from_chat_id"));
    parse_text(json, arena, message);
    if (with_reply)
        message->reply_to = parse_message(value_field(json, "reply_to_message"), /* with_reply= */ false, arena);
    return message;
}

/* ---- updates ---- */

/* Does the keyboard of a message have a button with this data? */
static bool keyboard_has(Value message, const char *data, Arena *arena)
{
    Value rows = value_field(value_field(message, "reply_markup"), "inline_keyboard"), row, button;

    for (const char *at = NULL; data && value_item_next(rows, &at, &row);)
        for (const char *in_row = NULL; value_item_next(row, &in_row, &button);) {
            const char *shown = value_text(value_field(button, "callback_data"), arena);

            if (shown && strcmp(shown, data) == 0)
                return true;
        }
    return false;
}

static void parse_callback(Value json, Arena *arena, TelegramUpdate *update)
{
    TelegramCallback *callback = arena_array(arena, TelegramCallback, 1);
    const char       *id       = value_text(value_field(json, "id"), arena);

    callback->id       = id ? id : "";
    callback->from     = parse_user(value_field(json, "from"), arena);
    callback->data     = value_text(value_field(json, "data"), arena);
    callback->message  = parse_message(value_field(json, "message"), /* with_reply= */ true, arena);
    callback->is_shown = keyboard_has(value_field(json, "message"), callback->data, arena);
    update->callback   = callback;
    update->message    = callback->message;
}

static const char *parse_status(Value json, Arena *arena, bool *ret_is_in)
{
    const char *status = value_text(value_field(json, "status"), arena);

    if (!status)
        status = "";
    *ret_is_in = strcmp(status, "creator") == 0 || strcmp(status, "administrator") == 0 ||
                 strcmp(status, "member") == 0 ||
                 (strcmp(status, "restricted") == 0 && value_true(value_field(json, "is_member")));
    return status;
}

static void parse_member(Value json, Arena *arena, TelegramUpdate *update)
{
    TelegramMember *member = arena_array(arena, TelegramMember, 1);
    Value           before = value_field(json, "old_chat_member"), after = value_field(json, "new_chat_member");

    member->chat          = parse_chat(value_field(json, "chat"), arena);
    member->by            = parse_user(value_field(json, "from"), arena);
    member->user          = parse_user(value_field(after.size ? after : before, "user"), arena);
    member->status_before = parse_status(before, arena, &member->was_in);
    member->status_after  = parse_status(after, arena, &member->is_in);
    update->member        = member;
}

static const struct {
    const char        *name;
    TelegramUpdateKind kind;
} kinds[] = {
    {"message",        TELEGRAM_MESSAGE       },
    {"edited_message", TELEGRAM_EDITED_MESSAGE},
    {"callback_query", TELEGRAM_CALLBACK      },
    {"chat_member",    TELEGRAM_MEMBER        },
    {"my_chat_member", TELEGRAM_MY_MEMBER     },
};

static const char *kind_name(TelegramUpdateKind kind)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].kind == kind)
            return kinds[i].name;
    return NULL;
}

static void parse_kind(Value json, Arena *arena, TelegramUpdate *update)
{
    Value content = {0};

    for (size_t i = 0; i < COUNT(kinds) && update->kind == TELEGRAM_OTHER; i++) {
        content = value_field(json, kinds[i].name);
        if (value_kind(content) == VALUE_OBJECT)
            update->kind = kinds[i].kind;
    }
    if (update->kind == TELEGRAM_MESSAGE || update->kind == TELEGRAM_EDITED_MESSAGE)
        update->message = parse_message(content, /* with_reply= */ true, arena);
    else if (update->kind == TELEGRAM_CALLBACK)
        parse_callback(content, arena, update);
    else if (update->kind != TELEGRAM_OTHER)
        parse_member(content, arena, update);
}

ErrorCode telegram_update_parse(const char *json, size_t size, Arena *arena, TelegramUpdate *ret_update, Error *reterr)
{
    TelegramUpdate update = {0};

    TRY(scan_check(json, size, "update", reterr));
    if (!arena_has_space(arena, size * ARENA_FACTOR + ARENA_MORE))
        return fail(reterr, ERR_LIMIT, "an update of %zu bytes exceeds the memory that is left", size);
    Value object = value_trim(json, size);

    update.id = value_i64(value_field(object, "update_id"));
    if (update.id < 1)
        return fail(reterr, ERR_INVALID, "an update must be an object with an update_id from 1");
    parse_kind(object, arena, &update);
    *ret_update = update;
    return OK;
}

/* ---- what is stored ---- */

/* A text is a command, or is not for the bot. */
static bool is_command(const TelegramMessage *message)
{
    return message->text && message->text[strspn(message->text, " \t\r\n")] == '/';
}

static void members_copy(Writer *writer, Value json, const char *const *names, Arena *arena)
{
    for (; *names; names++) {
        Value value = value_field(json, *names);

        if (value.size)
            writer_raw(writer, *names, value_raw(value, arena));
    }
}

/* What of a message is read besides who wrote it where. */
typedef enum { PART_AUTHOR, PART_TEXT, PART_KEYBOARD } Part;

static void message_copy(Writer *writer, const char *name, Value json, Part part, Arena *arena)
{
    static const char *const about[]    = {"message_id",
                                           "date",
                                           "chat",
                                           "from",
                                           "sender_chat",
                                           "message_thread_id",
                                           "is_topic_message",
                                           "forward_date",
                                           "new_chat_members",
                                           "left_chat_member",
                                           "forward_from",
                                           "migrate_to_chat_id",
                                           "migrate_from_chat_id",
                                           NULL};
    static const char *const text[]     = {"text", "entities", "caption", "caption_entities", NULL};
    static const char *const keyboard[] = {"reply_markup", NULL};
    Value                    reply      = value_field(json, "reply_to_message");

    writer_object(writer, name);
    members_copy(writer, json, about, arena);
    if (value_field(json, "forward_origin").size || value_field(json, "forward_from_chat").size)
        writer_bool(writer, "forward_origin", true); /* that it was forwarded, not from where */
    if (part == PART_TEXT)
        members_copy(writer, json, text, arena);
    if (part == PART_KEYBOARD)
        members_copy(writer, json, keyboard, arena);
    if (value_kind(reply) == VALUE_OBJECT && strcmp(name, "reply_to_message") != 0)
        message_copy(writer, "reply_to_message", reply, PART_AUTHOR, arena);
    writer_end(writer);
}

/* With the keyboard of the message, which says whether the press is one of its buttons. */
static void callback_copy(Writer *writer, Value json, Arena *arena)
{
    static const char *const about[] = {"id", "from", "data", NULL};
    Value                    message = value_field(json, "message");

    writer_object(writer, "callback_query");
    members_copy(writer, json, about, arena);
    if (value_kind(message) == VALUE_OBJECT)
        message_copy(writer, "message", message, PART_KEYBOARD, arena);
    writer_end(writer);
}

static void member_copy(Writer *writer, const char *name, Value json, Arena *arena)
{
    static const char *const about[]    = {"chat", "from", "date", NULL};
    static const char *const standing[] = {"user", "status", "is_member", NULL};
    static const char *const sides[]    = {"old_chat_member", "new_chat_member"};

    writer_object(writer, name);
    members_copy(writer, json, about, arena);
    for (size_t i = 0; i < COUNT(sides); i++) {
        Value side = value_field(json, sides[i]);

        if (value_kind(side) != VALUE_OBJECT)
            continue;
        writer_object(writer, sides[i]);
        members_copy(writer, side, standing, arena);
        writer_end(writer);
    }
    writer_end(writer);
}

const char *telegram_update_reduce(const TelegramUpdate *update, const char *json, Arena *arena)
{
    const char *name    = kind_name(update->kind);
    Value       content = name ? value_field(value_trim(json, strlen(json)), name) : (Value){0};
    Text        text;
    Writer      writer;

    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    writer_i64(&writer, "update_id", update->id);
    if (update->kind == TELEGRAM_CALLBACK)
        callback_copy(&writer, content, arena);
    else if (update->member)
        member_copy(&writer, name, content, arena);
    else if (name && update->message)
        message_copy(&writer, name, content,
                     update->kind == TELEGRAM_MESSAGE && is_command(update->message) ? PART_TEXT : PART_AUTHOR, arena);
    writer_end(&writer);
    return text_is_full(&text) ? json : text_string(&text);
}

TelegramUse telegram_update_use(const TelegramUpdate *update)
{
    const TelegramMessage *message = update->message;

    switch (update->kind) {
    case TELEGRAM_CALLBACK:
    case TELEGRAM_MEMBER:
    case TELEGRAM_MY_MEMBER:
        return TELEGRAM_USE_WHOLE;
    case TELEGRAM_MESSAGE:
        return is_command(message) || message->members_new_count || message->member_left || message->migrate_to ||
                       message->migrate_from
                   ? TELEGRAM_USE_WHOLE
                   : TELEGRAM_USE_AUTHOR;
    case TELEGRAM_EDITED_MESSAGE:
    case TELEGRAM_OTHER:
        break;
    }
    return TELEGRAM_USE_NONE;
}

int64_t telegram_update_chat(const TelegramUpdate *update)
{
    if (update->member)
        return update->member->chat.id;
    return update->message ? update->message->chat.id : 0;
}
