/*
 * resume_offer.c - handlers that are offered to a call that resumes commands: how the call names them, and what it says it has started; see offer.h.
 */
#include <string.h>

#include "base/fault.h"
#include "base/value.h"
#include "base/writer.h"
#include "bus/offer.h"

#define STARTED_BYTES_MAX ((size_t)16 << 20)

static void texts_write(Writer *writer, const char *name, const char *const *texts)
{
    if (!texts)
        return;
    writer_array(writer, name);
    while (*texts)
        writer_text(writer, NULL, *texts++);
    writer_end(writer);
}

static void offer_write(Writer *writer, const Offer *offer, int64_t token)
{
    writer_object(writer, NULL);
    writer_text(writer, "domain", offer->domain);
    writer_i64(writer, "token", token);
    writer_text(writer, "worker", offer->name);
    writer_i64(writer, "lease_ms", offer->lease_ms);
    texts_write(writer, "types", offer->types);
    texts_write(writer, "allowed", offer->allowed);
    writer_array(writer, "after");
    for (int i = 0; i < PRIORITY_COUNT; i++)
        writer_i64(writer, NULL, offer->after[i]);
    writer_end(writer);
    writer_end(writer);
}

DbArg resume_offers_arg(Arena *arena, const ResumeOffers *offers)
{
    Writer writer;
    Text   text;

    if (offers->count == 0)
        return db_null();
    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_array(&writer, NULL);
    for (int i = 0; i < offers->count; i++)
        offer_write(&writer, &offers->list[i], offers->tokens[i]);
    writer_end(&writer);
    return db_jsonb(text_string(&text));
}

static ClaimedCommand started_read(Value item, Arena *arena)
{
    int64_t id = value_i64(value_field(item, "id"));

    return (ClaimedCommand){.id           = id,
                            .token        = value_i64(value_field(item, "token")),
                            .pos          = id,
                            .command_id   = value_text(value_field(item, "command_id"), arena),
                            .type         = value_text(value_field(item, "type"), arena),
                            .payload      = value_raw(value_member(item, "payload", strlen("payload")), arena),
                            .loaded       = value_raw(value_field(item, "loaded"), arena),
                            .attempt      = (int32_t)value_i64(value_field(item, "attempt")),
                            .max_attempts = (int32_t)value_i64(value_field(item, "max_attempts")),
                            .priority     = (int32_t)value_i64(value_field(item, "priority"))};
}

static int started_find(const char *started, int64_t token, Arena *arena, ClaimedCommand *ret_command)
{
    Value       items = value_trim(started, strlen(started)), item;
    const char *at    = NULL;

    while (value_item_next(items, &at, &item))
        if (value_i64(value_field(item, "token")) == token) {
            *ret_command = started_read(item, arena);
            return 1;
        }
    return 0;
}

void resume_offers_end(ResumeOffers *offers, const char *started)
{
    scoped(arena_free) Arena *arena = started ? arena_new(STARTED_BYTES_MAX) : NULL;

    if (started && FAULT("bus.resume.before"))
        started = NULL;
    for (int i = 0; i < offers->count; i++) {
        ClaimedCommand command;
        int            count = started ? started_find(started, offers->tokens[i], arena, &command) : 0;

        offer_end(&offers->list[i], &command, count);
    }
    offers->count = 0;
}
