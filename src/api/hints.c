/*
 * hints.c - see hints.h.
 */
#include "api/hints.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "pg/combiner.h"
#include "process/process.h"

#define KNOWN_COUNT  4096
#define LOOKUPS_MAX  50 /* of one turn */
#define LOOKUP_MS    500
#define LOOKUP_BYTES ((size_t)1 << 20)
#define NAMES_MAX    5 /* of one request with many items */

struct Hints {
    Pool     *pool;
    Combiner *lookups;
    _Atomic uint64_t
        known[KNOWN_COUNT]; /* hashes of names without a hint; each has one place, which the last one takes */
};

/* ---- names ---- */

static bool item_is_process(const SendItem *item)
{
    return strncmp(item->domain, PROCESS_DOMAIN_PREFIX, strlen(PROCESS_DOMAIN_PREFIX)) == 0;
}

static uint64_t text_hash(uint64_t hash, const char *text) /* FNV-1a */
{
    do
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    while (*text++);
    return hash;
}

/* Of what the hint is about: of a process its type, too. */
static uint64_t item_hash(const SendItem *item)
{
    uint64_t hash = text_hash(0xcbf29ce484222325, item->domain);

    return item_is_process(item) ? text_hash(hash, item->type) : hash;
}

static bool item_is_known(Hints *hints, const SendItem *item)
{
    uint64_t hash = item_hash(item);

    return atomic_load_explicit(&hints->known[hash % KNOWN_COUNT], memory_order_relaxed) == hash;
}

static bool items_are_alike(const SendItem *a, const SendItem *b)
{
    return strcmp(a->domain, b->domain) == 0 && (!item_is_process(a) || strcmp(a->type, b->type) == 0);
}

/* ---- lookups ---- */

static const char *process_hint(Hints *hints, const SendItem *item, Deadline deadline, Arena *arena, bool *ret_found)
{
    const char *note = NULL;

    *ret_found = process_type_note(hints->pool, deadline, arena, item->domain + strlen(PROCESS_DOMAIN_PREFIX),
                                   item->type, &note, NULL) == OK;
    return note;
}

static const char *command_hint(Hints *hints, const SendItem *item, Deadline deadline, Arena *arena, bool *ret_found)
{
    const char *nearest;
    bool        is_new;

    *ret_found = send_domain_nearest(hints->pool, deadline, arena, item->domain, &is_new, &nearest, NULL) == OK;
    if (!*ret_found || !is_new)
        return NULL;
    return arena_print(arena, "nothing was sent to domain \"%s\" before%s%s%s", item->domain,
                       nearest ? ", did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

/* NULL: none. */
static const char *hint_find(Hints *hints, const SendItem *item, Deadline deadline, Arena *arena)
{
    uint64_t    hash = item_hash(item);
    bool        found;
    const char *text = item_is_process(item) ? process_hint(hints, item, deadline, arena, &found)
                                             : command_hint(hints, item, deadline, arena, &found);

    if (found && !text)
        atomic_store_explicit(&hints->known[hash % KNOWN_COUNT], hash, memory_order_relaxed);
    return text;
}

static ErrorCode lookups_run(void *context, void **list, int count, Deadline deadline, Error *reterr)
{
    Hints                    *hints = context;
    scoped(arena_free) Arena *arena = arena_new(LOOKUP_BYTES * LOOKUPS_MAX);

    (void)reterr;
    for (int i = 0; i < count; i++) {
        Hint       *hint = list[i];
        const char *text = NULL;
        int         same = 0;

        while (!items_are_alike(((const Hint *)list[same])->item, hint->item))
            same++;
        if (same < i)
            text = ((const Hint *)list[same])->text;
        else if (!item_is_known(hints, hint->item))
            text = hint_find(hints, hint->item, deadline, arena);
        snprintf(hint->text, sizeof hint->text, "%s", text ? text : "");
    }
    return OK;
}

static void lookup_done(void *context, const Error *error)
{
    const Hint *hint = context;

    (void)error;
    hint->on_done(hint->context);
}

static Deadline lookup_deadline(Deadline deadline)
{
    return deadline_sooner(deadline, deadline_in_ms(LOOKUP_MS));
}

/* ---- public ---- */

Hints *hints_new(Pool *pool)
{
    Hints *hints = memory_new(1, sizeof *hints);

    hints->pool    = pool;
    hints->lookups = combiner_new(
        &(CombinerOptions){.run = lookups_run, .context = hints, .slots_max = 1, .batch_max = LOOKUPS_MAX});
    return hints;
}

void hints_free(Hints *hints)
{
    combiner_free(hints->lookups);
    free(hints);
}

void hint_submit(Hints *hints, Deadline deadline, Hint *hint)
{
    hint->text[0] = '\0';
    if (item_is_known(hints, hint->item) || send_check(hint->item, NULL) != OK)
        hint->on_done(hint->context);
    else
        combiner_submit(hints->lookups, hint, lookup_deadline(deadline), lookup_done);
}

const char *hints_of(Hints *hints, Deadline deadline, SendItem *const *items, int count, Arena *arena)
{
    const SendItem *asked[NAMES_MAX];
    int             asked_count = 0;
    const char     *texts       = NULL;

    for (int i = 0; i < count && asked_count < NAMES_MAX; i++) {
        const char *text;
        int         same = 0;

        while (same < asked_count && !items_are_alike(asked[same], items[i]))
            same++;
        if (same < asked_count || item_is_known(hints, items[i]))
            continue;
        asked[asked_count++] = items[i];
        text                 = hint_find(hints, items[i], lookup_deadline(deadline), arena);
        if (text)
            texts = texts ? arena_print(arena, "%s; %s", texts, text) : text;
    }
    return texts;
}
