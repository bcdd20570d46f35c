/*
 * telegram.c - the bot's webhook: an update is stored, then acknowledged. The server delivers it again until it gets a 2xx.
 */
#include <sodium.h>
#include <string.h>

#include "api/api.h"
#include "telegram/outbox.h"

#define STORE_MS      5000 /* then it gets a 503, and delivers it again */
#define SECRET_HEADER "X-Telegram-Bot-Api-Secret-Token"

/* Hashes are compared, so the time tells neither the length nor how much is right. */
static bool secret_is_right(const char *given, const char *secret)
{
    unsigned char a[crypto_generichash_BYTES], b[crypto_generichash_BYTES];

    crypto_generichash(a, sizeof a, (const unsigned char *)given, strlen(given), NULL, 0);
    crypto_generichash(b, sizeof b, (const unsigned char *)secret, strlen(secret), NULL, 0);
    return sodium_memcmp(a, b, sizeof a) == 0;
}

ErrorCode api_telegram_webhook_head(void *context, Request *request, Error *reterr)
{
    const Api  *api   = context;
    const char *given = request_header(request, SECRET_HEADER);

    if (!api->telegram_secret)
        return fail(reterr, ERR_NOT_FOUND, "no webhook is set up: PAWL_TELEGRAM_MODE must be webhook");
    if (!given || !secret_is_right(given, api->telegram_secret))
        return fail(reterr, ERR_NO_TOKEN, "header " SECRET_HEADER " must be PAWL_TELEGRAM_WEBHOOK_SECRET");
    return OK;
}

ErrorCode api_telegram_webhook(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api = context;
    size_t      size;
    const char *body = request_body(request, &size);
    char        domain[TELEGRAM_DOMAIN_SIZE];
    bool        is_new;

    TRY(telegram_intake_one(&api->telegram, body, size,
                            deadline_sooner(request_deadline(request), deadline_in_ms(STORE_MS)),
                            request_arena(request), &is_new, reterr));
    if (is_new) {
        telegram_domain_updates(api->telegram.bot_id, domain);
        waker_notify(api->waker, domain);
    }
    text_append(&response->body, "{\"status\":\"received\"}");
    return OK;
}
