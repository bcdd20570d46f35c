/*
 * bot.c - see bot.h.
 */
#include "telegram/bot.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/scan.h"
#include "base/text.h"
#include "base/value.h"
#include "base/writer.h"

#define ANSWER_BYTES_MAX ((size_t)15 << 20) /* 100 updates, with much to spare */
#define ROOT_BYTES_MAX   1024
#define TOKEN_BYTES_MAX  256
#define BOUNDARY_BYTES   16
#define TOKEN_ID_BYTES   6
#define TOKEN_DIGITS_MAX 18

struct TelegramBot {
    Client *client;
    char   *prefix; /* root, "/bot", token, "/" : secret */
    int64_t id;
};

/* ---- life ---- */

ErrorCode telegram_token_check(const char *token, Error *reterr)
{
    size_t length = strlen(token);

    if (length == 0 || length > TOKEN_BYTES_MAX)
        return fail(reterr, ERR_USAGE, "the token must have 1 to %d characters, got %zu", TOKEN_BYTES_MAX, length);
    for (const char *c = token; *c; c++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_-", *c))
            return fail(reterr, ERR_USAGE,
                        "the token must be letters, digits, \":\", \"_\" and \"-\", as BotFather gives it");
    return OK;
}

bool telegram_token_is_botfathers(const char *token)
{
    size_t digits = strspn(token, "0123456789");

    return digits > 0 && digits <= TOKEN_DIGITS_MAX && token[digits] == ':' && token[digits + 1];
}

/* "424242:AA...": the number is the bot's user id. A server of one's own may have other tokens. */
int64_t telegram_token_id(const char *token)
{
    long long     id = telegram_token_is_botfathers(token) ? strtoll(token, NULL, 10) : 0;
    unsigned char hash[crypto_generichash_BYTES];
    int64_t       made = 0;

    if (id > 0)
        return id;
    crypto_generichash(hash, sizeof hash, (const unsigned char *)token, strlen(token), NULL, 0);
    for (size_t i = 0; i < TOKEN_ID_BYTES; i++)
        made = made << 8 | hash[i];
    return made + 1;
}

ErrorCode telegram_root_check(const char *root, Error *reterr)
{
    if (strlen(root) > ROOT_BYTES_MAX || strpbrk(root, "?#"))
        return fail(reterr, ERR_USAGE, "the API root must be a URL of at most %d bytes without \"?\" and \"#\"",
                    ROOT_BYTES_MAX);
    if (client_check_url(root, NULL) != OK)
        return fail(reterr, ERR_USAGE, "the API root must be a URL such as " TELEGRAM_API_ROOT);
    return OK;
}

ErrorCode telegram_bot_new(const char *token, const char *root, TelegramBot **ret_bot, Error *reterr)
{
    Client *client;

    if (!root)
        root = TELEGRAM_API_ROOT;
    TRY(telegram_token_check(token, reterr));
    TRY(telegram_root_check(root, reterr));
    TRY(client_new(&(ClientOptions){.body_bytes_max = ANSWER_BYTES_MAX}, &client, reterr));
    TelegramBot     *bot    = memory_new(1, sizeof *bot);
    size_t           length = strlen(root);
    scoped_text Text prefix = {0};

    while (length > 0 && root[length - 1] == '/')
        length--;
    text_init(&prefix, NULL, TEXT_MAX_LINE);
    text_print(&prefix, "%.*s/bot%s/", (int)length, root, token);
    bot->client = client;
    bot->prefix = memory_text(text_string(&prefix));
    bot->id     = telegram_token_id(token);
    *ret_bot    = bot;
    return OK;
}

void telegram_bot_free(TelegramBot *bot)
{
    client_free(bot->client);
    sodium_memzero(bot->prefix, strlen(bot->prefix));
    free(bot->prefix);
    free(bot);
}

void telegram_bot_stop(TelegramBot *bot)
{
    client_stop(bot->client);
}

int64_t telegram_bot_id(const TelegramBot *bot)
{
    return bot->id;
}

/* ---- the request ---- */

static void write_json(const TelegramCall *call, Text *body)
{
    Writer writer;

    writer_open(&writer, body);
    writer_object(&writer, NULL);
    for (const TelegramField *field = call->fields; field && field->name; field++)
        if (field->value && field->is_json)
            writer_raw(&writer, field->name, field->value);
        else if (field->value)
            writer_text(&writer, field->name, field->value);
    writer_end(&writer);
}

/* Its 128 random bits are in none of the parts. */
static void write_multipart(const TelegramCall *call, const char *boundary, Text *body)
{
    const TelegramFile *file = call->file;

    for (const TelegramField *field = call->fields; field && field->name; field++)
        if (field->value)
            text_print(body, "--%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n", boundary, field->name,
                       field->value);
    text_print(body, "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\nContent-Type: %s\r\n\r\n",
               boundary, file->field, file->name, file->type);
    text_append_bytes(body, file->bytes, file->size);
    text_print(body, "\r\n--%s--\r\n", boundary);
}

/* Calls that may be made twice: the client may then send them over a connection that the server is closing. */
static bool is_repeatable(const char *method)
{
    static const char *const once[] = {"sendMessage", "sendPhoto", "sendDocument"};

    for (size_t i = 0; i < COUNT(once); i++)
        if (strcmp(method, once[i]) == 0)
            return false;
    return true;
}

static ErrorCode call_send(TelegramBot *bot, const TelegramCall *call, Arena *arena, ClientResponse *ret_response,
                           Error *reterr)
{
    scoped_text Text url = {0}, body = {0}, type = {0};
    unsigned char    random[BOUNDARY_BYTES];
    char             boundary[2 * BOUNDARY_BYTES + 1];

    text_init(&url, NULL, TEXT_MAX_LINE);
    text_init(&body, NULL, TEXT_MAX_BODY);
    text_init(&type, NULL, TEXT_MAX_LINE);
    text_print(&url, "%s%s", bot->prefix, call->method);
    if (call->file) {
        randombytes_buf(random, sizeof random);
        sodium_bin2hex(boundary, sizeof boundary, random, sizeof random);
        text_print(&type, "multipart/form-data; boundary=%s", boundary);
        write_multipart(call, boundary, &body);
    } else {
        text_append(&type, "application/json");
        write_json(call, &body);
    }
    if (text_is_full(&body))
        return fail(reterr, ERR_LIMIT, "the request is too large");
    return client_send(bot->client,
                       &(ClientRequest){.method        = CLIENT_POST,
                                        .url           = text_string(&url),
                                        .body          = text_string(&body),
                                        .body_size     = body.length,
                                        .type          = text_string(&type),
                                        .deadline      = call->deadline,
                                        .is_repeatable = is_repeatable(call->method)},
                       arena, ret_response, reterr);
}

/* ---- the answer ---- */

/* Seconds as milliseconds, rounded up: a number, with a fraction or not, or one in a string. 0: none. */
static int64_t retry_read(Value value)
{
    int64_t seconds = 0;

    if (value.size == 0)
        return 0;
    const char *at = value.bytes + (value_kind(value) == VALUE_STRING);
    if (*at < '0' || *at > '9')
        return 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (seconds < TELEGRAM_RETRY_MS_MAX)
            seconds = seconds * 10 + (*at - '0');
    if (*at == '.' || *at == 'e' || *at == 'E')
        seconds++;
    return seconds < TELEGRAM_RETRY_MS_MAX / 1000 ? seconds * 1000 : TELEGRAM_RETRY_MS_MAX;
}

/* false: it is no answer of the Bot API. */
static bool answer_parse(const ClientResponse *response, Arena *arena, TelegramAnswer *answer, bool *ret_ok)
{
    Value json = value_trim(response->body, response->body_size), parameters, said;

    if (scan_check(response->body, response->body_size, "answer", NULL) != OK || value_kind(json) != VALUE_OBJECT)
        return false;
    parameters              = value_field(json, "parameters");
    said                    = value_field(json, "ok");
    const char *result      = value_raw(value_field(json, "result"), arena);
    const char *description = value_text(value_field(json, "description"), arena);
    int64_t     code        = value_i64(value_field(json, "error_code"));

    answer->result      = result ? result : "null";
    answer->description = description ? description : "";
    answer->migrate_to  = value_i64(value_field(parameters, "migrate_to_chat_id"));
    answer->retry_ms    = retry_read(value_field(parameters, "retry_after"));
    if (value_kind(said) == VALUE_FALSE) {
        answer->status = code >= 400 && code < 600 ? (int)code : *ret_ok ? 500 : answer->status;
        *ret_ok        = false;
    }
    return value_true(said) || value_kind(said) == VALUE_FALSE;
}

/* Success is an object with ok:true. A proxy's page with status 200 is no success. */
static void answer_read(const ClientResponse *response, Arena *arena, TelegramAnswer *ret_answer, bool *ret_ok)
{
    TelegramAnswer answer = {.status = response->status, .result = "null", .description = ""};
    bool           ok     = response->status >= 200 && response->status < 300;

    if (!answer_parse(response, arena, &answer, &ok) && ok) {
        answer.description = "not an answer of the Bot API";
        answer.body        = response->body;
        answer.body_size   = response->body_size;
        ok                 = false;
    }
    if (answer.retry_ms == 0)
        answer.retry_ms = response->retry_ms;
    *ret_answer = answer;
    *ret_ok     = ok;
}

static ErrorCode answer_judge(const char *method, const TelegramAnswer *answer, Error *reterr)
{
    int         status = answer->status;
    ErrorCode   code   = status == 429 ? ERR_RATE : status >= 400 && status < 500 ? ERR_REFUSED : ERR_UNAVAILABLE;
    const char *words  = answer->description;

    (void)fail(reterr, code, "%s got status %d%s%.150s", method, status, *words ? ": " : "", words);
    if (reterr)
        reterr->retry_ms = answer->retry_ms > INT32_MAX ? INT32_MAX : (int)answer->retry_ms;
    return code;
}

ErrorCode telegram_call(TelegramBot *bot, const TelegramCall *call, Arena *arena, TelegramAnswer *ret_answer,
                        Error *reterr)
{
    ClientResponse response;
    bool           ok;

    *ret_answer = (TelegramAnswer){.result = "null", .description = ""};
    TRY(call_send(bot, call, arena, &response, reterr));
    if (!arena_has_space(arena, response.body_size * 2 + 1024))
        return fail(reterr, ERR_LIMIT, "the answer to %s is too large", call->method);
    answer_read(&response, arena, ret_answer, &ok);
    return ok ? OK : answer_judge(call->method, ret_answer, reterr);
}

ErrorCode telegram_get_member(TelegramBot *bot, int64_t chat_id, int64_t user_id, Deadline deadline, Arena *arena,
                              const char **ret_status, Error *reterr)
{
    TelegramAnswer answer;
    TelegramField  fields[] = {
        {"chat_id", arena_print(arena, "%lld", (long long)chat_id), .is_json = true},
        {"user_id", arena_print(arena, "%lld", (long long)user_id), .is_json = true},
        {NULL}
    };

    TRY(telegram_call(bot, &(TelegramCall){.method = "getChatMember", .fields = fields, .deadline = deadline}, arena,
                      &answer, reterr));
    const char *status = value_text(value_field(value_trim(answer.result, strlen(answer.result)), "status"), arena);

    *ret_status = status ? status : "";
    return OK;
}
