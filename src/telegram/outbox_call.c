/*
 * outbox_call.c - the call of the Bot API for one message: its method, its fields, its file.
 */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "base/writer.h"
#include "telegram/markup.h"
#include "telegram/outbox_internal.h"

static const char *number(Arena *arena, int64_t value)
{
    return value ? arena_print(arena, "%" PRId64, value) : NULL;
}

static const char *write_reply(const TelegramOutgoing *item, Arena *arena)
{
    if (!item->reply_to)
        return NULL;
    return arena_print(arena, "{\"message_id\":%" PRId64 ",\"allow_sending_without_reply\":true}", item->reply_to);
}

static const char *write_keyboard(const TelegramOutgoing *item, Arena *arena)
{
    Text   text;
    Writer writer;

    if (item->buttons_count == 0)
        return NULL;
    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    writer_array(&writer, "inline_keyboard");
    for (int i = 0; i < item->buttons_count; i++) {
        if (i == 0 || item->buttons[i - 1].ends_row)
            writer_array(&writer, NULL);
        writer_object(&writer, NULL);
        writer_text(&writer, "text", item->buttons[i].text);
        writer_text(&writer, "callback_data", item->buttons[i].data);
        writer_end(&writer);
        if (item->buttons[i].ends_row || i + 1 == item->buttons_count)
            writer_end(&writer);
    }
    writer_end(&writer);
    writer_end(&writer);
    return text_string(&text);
}

static const char *file_type(const char *name)
{
    const char *dot = strrchr(name, '.');

    if (dot && strcmp(dot, ".png") == 0)
        return "image/png";
    return dot && strcmp(dot, ".csv") == 0 ? "text/csv" : "application/octet-stream";
}

static ErrorCode item_answer(TelegramBot *bot, const TelegramOutgoing *item, Deadline deadline, Arena *arena,
                             TelegramAnswer *ret_answer, Error *reterr)
{
    TelegramField fields[] = {
        {"callback_query_id", item->callback_id},
        {"text", item->html ? telegram_shorten(item->html, TELEGRAM_ANSWER_MAX, arena) : NULL},
        {"show_alert", item->is_alert ? "true" : NULL, .is_json = true},
        {NULL}
    };

    return telegram_call(bot, &(TelegramCall){.method = "answerCallbackQuery", .fields = fields, .deadline = deadline},
                         arena, ret_answer, reterr);
}

ErrorCode outbox_call(TelegramBot *bot, const TelegramOutgoing *item, Deadline deadline, Arena *arena,
                      TelegramAnswer *ret_answer, Error *reterr)
{
    static const char *const methods[TELEGRAM_METHOD_COUNT] = {[TELEGRAM_SEND]     = "sendMessage",
                                                               [TELEGRAM_EDIT]     = "editMessageText",
                                                               [TELEGRAM_PHOTO]    = "sendPhoto",
                                                               [TELEGRAM_DOCUMENT] = "sendDocument"};
    bool                     has_file = item->method == TELEGRAM_PHOTO || item->method == TELEGRAM_DOCUMENT;
    bool                     is_edit  = item->method == TELEGRAM_EDIT;
    size_t                   most     = has_file ? TELEGRAM_CAPTION_MAX : TELEGRAM_TEXT_MAX;
    const char              *html     = item->html ? telegram_html_shorten(item->html, most, arena) : NULL;
    TelegramField            fields[] = {
        {"chat_id", number(arena, item->chat_id), .is_json = true},
        {"message_thread_id", is_edit ? NULL : number(arena, item->thread_id), .is_json = true},
        {"message_id", is_edit ? number(arena, item->message_id) : NULL, .is_json = true},
        {has_file ? "caption" : "text", html},
        {"parse_mode", html ? "HTML" : NULL},
        {"reply_parameters", is_edit ? NULL : write_reply(item, arena), .is_json = true},
        {"reply_markup", write_keyboard(item, arena), .is_json = true},
        {"link_preview_options", has_file ? NULL : "{\"is_disabled\":true}", .is_json = true},
        {"disable_notification", item->is_silent ? "true" : NULL, .is_json = true},
        {NULL}
    };
    TelegramFile file = {.field = item->method == TELEGRAM_PHOTO ? "photo" : "document",
                         .name  = item->file_name,
                         .bytes = item->file,
                         .size  = item->file_size};

    if (item->method == TELEGRAM_ANSWER)
        return item_answer(bot, item, deadline, arena, ret_answer, reterr);
    if (has_file)
        file.type = file_type(item->file_name);
    return telegram_call(bot,
                         &(TelegramCall){.method   = methods[item->method],
                                         .fields   = fields,
                                         .file     = has_file ? &file : NULL,
                                         .deadline = deadline},
                         arena, ret_answer, reterr);
}

ErrorCode telegram_send_directly(TelegramBot *bot, const TelegramOutgoing *item, Deadline deadline, Arena *arena,
                                 Error *reterr)
{
    TelegramAnswer answer;

    return outbox_call(bot, item, deadline, arena, &answer, reterr);
}
