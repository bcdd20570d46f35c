/*
 * claims_response.c - the responses to claims, written before the leases are kept: what is leased is in a response.
 */
#include "api/claims_internal.h"
#include "base/log.h"
#include "bus/lease.h"
#include "bus/settle.h"

#define CLOSING   "]}"
#define BYTES_MAX (TEXT_MAX_BODY - (sizeof CLOSING - 1))

typedef struct {
    Claims         *claims;
    const Served   *served;
    Arena          *arena; /* for one item at a time */
    ClaimedCommand *left;  /* to be released */
    int             left_count;
} Writing;

/* Appends the nth of the found commands, or nothing. */
static ErrorCode item_append(const Writing *writing, const ClaimWait *wait, Writer *writer, int n, Error *reterr)
{
    Writer    before = *writer;
    size_t    length = writer->text->length;
    ArenaMark mark   = arena_mark(writing->arena);
    ErrorCode code   = wait->write(wait, writer, writing->served->list, n, writing->arena, reterr);

    arena_rewind(writing->arena, mark);
    if (code == OK && text_is_full(writer->text))
        code = fail(reterr, ERR_LIMIT, "it takes more than the %zu bytes that a worker over HTTP can be given",
                    TEXT_MAX_BODY);
    if (code != OK) {
        *writer = before;
        text_shorten(writer->text, length);
    }
    return code;
}

/* No worker over HTTP can be given it: an operator decides. */
static void item_refuse(const Writing *writing, int n, const Error *error)
{
    const ClaimedCommand *command = &writing->served->list[n];
    SettleItem  item  = {.id = command->id, .token = command->token, .outcome = OUTCOME_FAIL, .error = error->text};
    SettleItem *items = &item;

    settle_each(writing->claims->pool, deadline_in_ms(CALL_MS), NULL, &items, 1);
}

/* `count` of the found commands from `first` on. */
static void response_write(Writing *writing, ClaimWait *wait, int first, int count)
{
    const ClaimedCommand *list = writing->served->list;
    Error                 error;
    Writer                writer;
    bool                  is_full = false;

    wait->arena = arena_new(ARENA_BYTES_DEFAULT);
    wait->list  = arena_array(wait->arena, ClaimedCommand, count);
    text_init(&wait->body, /* arena= */ NULL, BYTES_MAX);
    writer_open(&writer, &wait->body);
    writer_object(&writer, NULL);
    writer_array(&writer, "items");
    for (int n = first; n < first + count; n++) {
        error = (Error){0};
        if (!is_full && item_append(writing, wait, &writer, n, &error) == OK) {
            wait->list[wait->count++] = (ClaimedCommand){.id = list[n].id, .token = list[n].token};
        } else if (wait->count == 0) {
            item_refuse(writing, n, &error);
        } else {
            is_full                              = true;
            writing->left[writing->left_count++] = list[n];
        }
    }
    wait->body.length_max = TEXT_MAX_BODY;
    writer_end(&writer);
    writer_end(&writer);
    if (wait->count > 0)
        return;
    text_done(&wait->body);
    arena_free(take(wait->arena));
}

/* A lease that cannot be released expires. */
static void left_release(const Writing *writing)
{
    Error error = {0};

    if (writing->left_count > 0 && lease_release(writing->claims->pool, deadline_in_ms(CALL_MS), writing->served->arena,
                                                 writing->left, writing->left_count, NULL, &error) != OK)
        log_error(LOG_WARN, "claims", "commands that did not fit into a response were not released", &error);
}

void claim_responses_write(Claims *claims, Served *served)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    Writing                   writing = {.claims = claims, .served = served, .arena = arena};
    int                       given   = 0;

    if (served->count == 0)
        return;
    writing.left = arena_array(served->arena, ClaimedCommand, served->count);
    for (int i = 0; i < served->wait_count && given < served->count; i++) {
        ClaimWait *wait  = served->waits[i];
        int        share = served->count - given < wait->limit ? served->count - given : wait->limit;

        response_write(&writing, wait, given, share);
        given += share;
    }
    left_release(&writing);
}
