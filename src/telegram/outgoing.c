/*
 * outgoing.c - see outgoing.h. Operators read payloads in `pawl command show`, so they are plain JSON; files are
 * base64.
 */
#include "telegram/outgoing.h"

#include <sodium.h>
#include <string.h>

#include "base/scan.h"
#include "base/text.h"
#include "base/uuid.h"
#include "base/value.h"
#include "base/writer.h"
#include "telegram/markup.h"

#define HTML_BYTES_MAX   ((size_t)256 << 10)
#define BUTTON_BYTES_MAX 256
#define NAME_BYTES_MAX   200

const char *const telegram_method_types[TELEGRAM_METHOD_COUNT + 1] = {[TELEGRAM_SEND]     = "send",
                                                                      [TELEGRAM_EDIT]     = "edit",
                                                                      [TELEGRAM_PHOTO]    = "photo",
                                                                      [TELEGRAM_DOCUMENT] = "document",
                                                                      [TELEGRAM_ANSWER]   = "answer"};

static bool has_file(const TelegramOutgoing *item)
{
    return item->method == TELEGRAM_PHOTO || item->method == TELEGRAM_DOCUMENT;
}

/* ---- checks ---- */

static ErrorCode check_text(const char *field, const char *text, size_t bytes_max, Error *reterr)
{
    size_t size = text ? strlen(text) : 0;

    if (size > bytes_max)
        return fail(reterr, ERR_LIMIT, "%s must have at most %zu bytes, got %zu", field, bytes_max, size);
    if (text && !text_is_utf8(text, size))
        return fail(reterr, ERR_INVALID, "%s must be UTF-8", field);
    return OK;
}

static ErrorCode check_buttons(const TelegramOutgoing *item, Error *reterr)
{
    if (item->buttons_count < 0 || item->buttons_count > TELEGRAM_KEYS_MAX)
        return fail(reterr, ERR_INVALID, "a message must have at most %d buttons, got %d", TELEGRAM_KEYS_MAX,
                    item->buttons_count);
    for (int i = 0; i < item->buttons_count; i++) {
        const TelegramButton *button = &item->buttons[i];

        if (!button->text || !*button->text || !button->data || !*button->data)
            return fail(reterr, ERR_INVALID, "a button must have a text and data");
        TRY(check_text("a button's text", button->text, BUTTON_BYTES_MAX, reterr));
        TRY(check_text("a button's data", button->data, TELEGRAM_DATA_MAX, reterr));
    }
    return OK;
}

static ErrorCode check_file(const TelegramOutgoing *item, Error *reterr)
{
    if (!has_file(item))
        return OK;
    if (!item->file || item->file_size == 0 || item->file_size > TELEGRAM_FILE_MAX)
        return fail(reterr, ERR_LIMIT, "a file must have 1 to %zu bytes, got %zu", TELEGRAM_FILE_MAX, item->file_size);
    if (!item->file_name || !*item->file_name || strpbrk(item->file_name, "\"\\\r\n/"))
        return fail(reterr, ERR_INVALID, "a file must have a name without quotes, slashes and line breaks");
    return check_text("a file's name", item->file_name, NAME_BYTES_MAX, reterr);
}

static ErrorCode outgoing_check(const TelegramOutgoing *item, Error *reterr)
{
    char id[UUID_TEXT_SIZE];

    if (item->method == TELEGRAM_ANSWER) {
        if (!item->callback_id || !*item->callback_id)
            return fail(reterr, ERR_INVALID, "an answer must have a callback_id");
    } else if (item->chat_id == 0) {
        return fail(reterr, ERR_INVALID, "a message must have a chat_id other than 0");
    }
    if (item->method == TELEGRAM_EDIT && item->message_id == 0 && !item->replaces)
        return fail(reterr, ERR_INVALID, "an edit must have a message_id");
    if (item->replaces && !uuid_parse(item->replaces, id))
        return fail(reterr, ERR_INVALID, "replaces must be the id of a command");
    if ((item->method == TELEGRAM_SEND || item->method == TELEGRAM_EDIT) && (!item->html || !*item->html))
        return fail(reterr, ERR_INVALID, "a message must have a text");
    TRY(check_text("callback_id", item->callback_id, NAME_BYTES_MAX, reterr));
    TRY(check_text("text", item->html, HTML_BYTES_MAX, reterr));
    TRY(check_text("reference", item->reference, TELEGRAM_REFERENCE_MAX, reterr));
    TRY(check_buttons(item, reterr));
    return check_file(item, reterr);
}

/* ---- writing ---- */

static void write_i64(Writer *writer, const char *name, int64_t value)
{
    if (value)
        writer_i64(writer, name, value);
}

static void write_text(Writer *writer, const char *name, const char *value)
{
    if (value)
        writer_text(writer, name, value);
}

static void write_flag(Writer *writer, const char *name, bool value)
{
    if (value)
        writer_bool(writer, name, true);
}

static void write_buttons(Writer *writer, const TelegramOutgoing *item)
{
    bool in_row = false;

    if (item->buttons_count == 0)
        return;
    writer_array(writer, "buttons");
    for (int i = 0; i < item->buttons_count; i++) {
        if (!in_row)
            writer_array(writer, NULL);
        writer_object(writer, NULL);
        writer_text(writer, "text", item->buttons[i].text);
        writer_text(writer, "data", item->buttons[i].data);
        writer_end(writer);
        in_row = !item->buttons[i].ends_row && i + 1 < item->buttons_count;
        if (!in_row)
            writer_end(writer);
    }
    writer_end(writer);
}

static void write_file(Writer *writer, const TelegramOutgoing *item, Arena *arena)
{
    size_t size = sodium_base64_ENCODED_LEN(item->file_size, sodium_base64_VARIANT_ORIGINAL);
    char  *text = arena_alloc(arena, size);

    sodium_bin2base64(text, size, item->file, item->file_size, sodium_base64_VARIANT_ORIGINAL);
    writer_text(writer, "file_name", item->file_name);
    writer_text(writer, "file", text);
}

ErrorCode telegram_outgoing_write(const TelegramOutgoing *item, Arena *arena, const char **ret_payload, Error *reterr)
{
    Text   text;
    Writer writer;

    TRY(outgoing_check(item, reterr));
    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    write_i64(&writer, "chat_id", item->chat_id);
    write_i64(&writer, "thread_id", item->thread_id);
    write_i64(&writer, "reply_to", item->reply_to);
    write_i64(&writer, "message_id", item->message_id);
    write_text(&writer, "replaces", item->replaces);
    write_text(&writer, "callback_id", item->callback_id);
    write_text(&writer, "text", item->html);
    write_buttons(&writer, item);
    write_flag(&writer, "alert", item->is_alert);
    write_flag(&writer, "silent", item->is_silent);
    write_flag(&writer, "first", item->is_first);
    write_flag(&writer, "busy", item->is_busy);
    write_text(&writer, "reference", item->reference);
    if (has_file(item))
        write_file(&writer, item, arena);
    writer_end(&writer);
    if (text_is_full(&text))
        return fail(reterr, ERR_LIMIT, "a message is too large");
    *ret_payload = text_string(&text);
    return OK;
}

/* ---- reading ---- */

size_t telegram_outgoing_units_max(TelegramMethod method)
{
    if (method == TELEGRAM_ANSWER)
        return TELEGRAM_ANSWER_MAX;
    return method == TELEGRAM_PHOTO || method == TELEGRAM_DOCUMENT ? TELEGRAM_CAPTION_MAX : TELEGRAM_TEXT_MAX;
}

/* The outbox splits or shortens what the bot says; an application must not lose the end of a text without an error. */
static ErrorCode units_check(const TelegramOutgoing *item, Error *reterr)
{
    size_t most = telegram_outgoing_units_max(item->method), units;

    if (!item->html || item->method == TELEGRAM_ANSWER)
        return OK;
    units = telegram_html_units(item->html);
    return units <= most
               ? OK
               : fail(reterr, ERR_LIMIT, "text must have at most %zu UTF-16 units without tags, got %zu", most, units);
}

static void read_buttons(Value rows, Arena *arena, TelegramOutgoing *item)
{
    TelegramButton *list  = NULL;
    int             count = 0;
    Value           row, button;

    for (const char *at = NULL; value_item_next(rows, &at, &row);) {
        int before = count;

        for (const char *in_row = NULL; count < TELEGRAM_KEYS_MAX && value_item_next(row, &in_row, &button);) {
            if (!list)
                list = arena_array(arena, TelegramButton, TELEGRAM_KEYS_MAX);
            list[count++] = (TelegramButton){.text = value_text(value_field(button, "text"), arena),
                                             .data = value_text(value_field(button, "data"), arena)};
        }
        if (count > before)
            list[count - 1].ends_row = true;
    }
    item->buttons       = list;
    item->buttons_count = count;
}

static void read_file(const char *text, Arena *arena, TelegramOutgoing *item)
{
    if (!text)
        return;
    size_t         size  = strlen(text);
    unsigned char *bytes = arena_alloc(arena, size + 1);

    if (sodium_base642bin(bytes, size, text, size, NULL, &item->file_size, NULL, sodium_base64_VARIANT_ORIGINAL) == 0)
        item->file = bytes;
}

ErrorCode telegram_outgoing_read(const char *type, const char *payload, const char *file, Arena *arena,
                                 TelegramOutgoing *ret_item, Error *reterr)
{
    TelegramOutgoing item = {.method = TELEGRAM_METHOD_COUNT};
    size_t           size = strlen(payload);

    for (TelegramMethod i = 0; i < TELEGRAM_METHOD_COUNT; i++)
        if (strcmp(type, telegram_method_types[i]) == 0)
            item.method = i;
    if (item.method == TELEGRAM_METHOD_COUNT)
        return fail(reterr, ERR_INVALID, "type must be send, edit, photo, document or answer, got \"%s\"", type);
    TRY(scan_check(payload, size, "payload", reterr));
    if (!arena_has_space(arena, size * 3 + sizeof(TelegramButton) * TELEGRAM_KEYS_MAX))
        return fail(reterr, ERR_LIMIT, "a message of %zu bytes exceeds the memory that is left", size);
    Value json = value_trim(payload, size);

    item.chat_id     = value_i64(value_field(json, "chat_id"));
    item.thread_id   = value_i64(value_field(json, "thread_id"));
    item.reply_to    = value_i64(value_field(json, "reply_to"));
    item.message_id  = value_i64(value_field(json, "message_id"));
    item.replaces    = value_text(value_field(json, "replaces"), arena);
    item.callback_id = value_text(value_field(json, "callback_id"), arena);
    item.html        = value_text(value_field(json, "text"), arena);
    item.is_alert    = value_true(value_field(json, "alert"));
    item.is_silent   = value_true(value_field(json, "silent"));
    item.is_first    = value_true(value_field(json, "first"));
    item.is_busy     = value_true(value_field(json, "busy"));
    item.reference   = value_text(value_field(json, "reference"), arena);
    item.file_name   = value_text(value_field(json, "file_name"), arena);
    read_buttons(value_field(json, "buttons"), arena, &item);
    read_file(file ? file : value_text(value_field(json, "file"), arena), arena, &item);
    TRY(outgoing_check(&item, reterr));
    TRY(units_check(&item, reterr));
    *ret_item = item;
    return OK;
}
