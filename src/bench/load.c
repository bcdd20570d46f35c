/*
 * load.c - see load.h.
 */
#include "bench/load.h"

#include "base/sync.h"

#define CALL_MS     30000
#define ARENA_BYTES ((size_t)256 << 20)
#define PAYLOAD     "{\"to\": \"somebody\", \"amount\": 100}"

/* One thread's share. */
typedef struct {
    Bench      *bench;
    const Load *load;
    Sender     *sender; /* NULL: in batches */
    int64_t     count;
    ErrorCode   code;
    Error       error;
} Client;

SendItem load_item(const char *payload)
{
    return (SendItem){.domain       = BENCH_DOMAIN,
                      .type         = "noop",
                      .payload      = payload,
                      .priority     = SEND_DEFAULT,
                      .max_attempts = SEND_DEFAULT};
}

static ErrorCode batch_send(const Client *client, Arena *arena, int count, Error *reterr)
{
    SendItem  *items = arena_array(arena, SendItem, count);
    SendItem **list  = arena_array(arena, SendItem *, count);

    for (int i = 0; i < count; i++) {
        items[i]          = load_item(PAYLOAD);
        items[i].delay_ms = client->load->delay_ms;
        list[i]           = &items[i];
    }
    return send_many(client->load->place->pool, deadline_in_ms(CALL_MS), arena, list, count, reterr);
}

static ErrorCode client_send(Client *client, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES);
    int64_t                   batch = client->bench->options.batch;

    for (int64_t sent = 0; sent < client->count; sent += batch) {
        int64_t count = client->count - sent < batch ? client->count - sent : batch;

        TRY(bench_continue(client->bench, reterr));
        TRY(batch_send(client, arena, (int)count, reterr));
        arena_reset(arena);
        atomic_fetch_add(&client->bench->done, count);
    }
    return OK;
}

static ErrorCode client_send_singly(Client *client, Error *reterr)
{
    for (int64_t i = 0; i < client->count; i++) {
        SendItem item = load_item(PAYLOAD);

        TRY(bench_continue(client->bench, reterr));
        TRY(sender_send(client->sender, deadline_in_ms(CALL_MS), &item, reterr));
        atomic_fetch_add(&client->bench->done, 1);
    }
    return OK;
}

static void *client_run(void *context)
{
    Client *client = context;

    client->code = (client->sender ? client_send_singly : client_send)(client, &client->error);
    return NULL;
}

ErrorCode load_send(Bench *bench, const Load *load, int64_t *ret_us, Error *reterr)
{
    scoped(sender_free) Sender *sender  = load->single ? sender_new(load->place->pool) : NULL;
    int                         count   = (int)bench->options.clients;
    Client                     *clients = arena_array(bench->arena, Client, count);
    pthread_t                  *threads = arena_array(bench->arena, pthread_t, count);
    Mono                        start   = clock_mono();
    ErrorCode                   code    = OK;

    for (int i = 0; i < count; i++) {
        clients[i] = (Client){.bench = bench, .load = load, .sender = sender, .count = load->count / count};
        clients[i].count += i < load->count % count;
        threads[i] = thread_start("client", client_run, &clients[i]);
    }
    for (int i = 0; i < count; i++) {
        thread_join(threads[i]);
        if (clients[i].code != OK) {
            code    = clients[i].code;
            *reterr = clients[i].error;
        }
    }
    *ret_us = mono_us_between(start, clock_mono());
    return code;
}
