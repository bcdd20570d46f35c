/*
 * record.c - see record.h.
 */
#include "process/record.h"

#include <stdlib.h>
#include <string.h>

#define X(kind, name) [kind] = name,
const char *const record_kind_names[]   = {RECORD_KINDS(X)[RECORD_KIND_COUNT] = NULL};
const char *const step_end_names[]      = {STEP_ENDS(X)[STEP_END_COUNT] = NULL};
const char *const response_kind_names[] = {RESPONSE_KINDS(X)[RESPONSE_KIND_COUNT] = NULL};
#undef X

bool step_end_is_final(StepEnd end)
{
    return end == END_FINAL || end == END_REFUSED;
}

RecordId record_of(const char *step)
{
    return (RecordId){.step = step};
}

RecordId record_as(RecordId id, RecordKind kind)
{
    id.kind = kind;
    return id;
}

static int items_compare(const RecordId *a, const RecordId *b)
{
    for (int i = 0; i < a->depth && i < b->depth; i++)
        if (a->item[i] != b->item[i])
            return a->item[i] < b->item[i] ? -1 : 1;
    return a->depth - b->depth;
}

int record_compare(const RecordId *a, const RecordId *b)
{
    int order = strcmp(a->step, b->step);

    order = order ? order : items_compare(a, b);
    order = order ? order : (int)a->undo - (int)b->undo;
    order = order ? order : (int)a->kind - (int)b->kind;
    return order ? order : (a->aside > b->aside) - (a->aside < b->aside);
}

bool record_is_step(const RecordId *a, const RecordId *b)
{
    return strcmp(a->step, b->step) == 0 && items_compare(a, b) == 0;
}

const char *record_text(Arena *arena, const RecordId *id)
{
    Text text;

    text_init(&text, arena, TEXT_MAX_LINE);
    text_print(&text, "%s%s", id->undo ? "~" : "", id->step);
    for (int i = 0; i < id->depth; i++)
        text_print(&text, "[%d]", (int)id->item[i]);
    if (id->kind != RECORD_STEP)
        text_print(&text, ":%s", record_kind_names[id->kind]);
    if (id->aside)
        text_print(&text, ":gone%d", id->aside);
    return text_string(&text);
}

void record_write_items(Writer *writer, const char *name, const RecordId *id)
{
    writer_array(writer, name);
    for (int i = 0; i < id->depth; i++)
        writer_i64(writer, NULL, id->item[i]);
    writer_end(writer);
}

void record_write_place(Writer *writer, const RecordId *id)
{
    if (id->depth)
        record_write_items(writer, "item", id);
    if (id->undo)
        writer_bool(writer, "undo", true);
    if (id->aside)
        writer_i64(writer, "aside", id->aside);
}

void record_write(Writer *writer, const RecordId *id)
{
    writer_text(writer, "step", id->step);
    record_write_place(writer, id);
    if (id->kind != RECORD_STEP)
        writer_text(writer, "kind", record_kind_names[id->kind]);
}

void record_item_read(Value item, RecordId *id)
{
    const char *at = NULL;
    Value       index;

    for (id->depth = 0; id->depth < RECORD_DEPTH_MAX && value_item_next(item, &at, &index); id->depth++)
        id->item[id->depth] = (int32_t)strtol(index.bytes, NULL, 10);
}

/* ---- responses ---- */

ResponseOf response_signal(const char *name)
{
    return (ResponseOf){RESPONSE_SIGNAL, record_of(name)};
}

ResponseOf response_reply(RecordId step)
{
    return (ResponseOf){RESPONSE_REPLY, record_as(step, RECORD_STEP)};
}

ResponseOf response_any(void)
{
    return (ResponseOf){RESPONSE_ANY, record_of("")};
}

int response_compare(const ResponseOf *a, const ResponseOf *b)
{
    int order = (int)a->kind - (int)b->kind;

    return order ? order : record_compare(&a->of, &b->of);
}

bool taken_next(const char **at, int64_t *ret_first, int64_t *ret_behind)
{
    const char *open = strchr(*at, '[');
    char       *end;

    if (!open)
        return false;
    *ret_first  = strtoll(open + 1, &end, 10);
    *ret_behind = *end ? strtoll(end + 1, &end, 10) : *ret_first;
    *at         = end;
    return true;
}

void taken_add(Text *ranges, int64_t position)
{
    text_print(ranges, "%s[%lld,%lld)", ranges->length ? "," : "{", (long long)position, (long long)position + 1);
}

const char *taken_end(Text *ranges)
{
    text_append(ranges, ranges->length ? "}" : "{}");
    return text_string(ranges);
}

int record_word(const char *const *words, const char *bytes, size_t size)
{
    for (int i = 0; words[i]; i++)
        if (strlen(words[i]) == size && memcmp(words[i], bytes, size) == 0)
            return i;
    return -1;
}
