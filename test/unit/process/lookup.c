/*
 * lookup.c - see lookup.h.
 */
#include "test/unit/process/lookup.h"

#include <stdlib.h>
#include <string.h>

static Value document(Documents *documents, const char *json)
{
    size_t size = json ? strlen(json) : 0;

    if (size == 0)
        return (Value){0};
    char *copy = malloc(size);
    if (!copy)
        abort();
    memcpy(copy, json, size);
    free(documents->copies[documents->count % 8]);
    documents->copies[documents->count++ % 8] = copy;
    return value_trim(copy, size);
}

Value documents_lookup(void *context, const ValuePath *path)
{
    Documents *documents = context;

    switch (path->root) {
    case PATH_STATE:
        return document(documents, documents->state);
    case PATH_STEP:
        return document(documents, strcmp(path->step, "reserve") == 0 ? documents->reserve : NULL);
    case PATH_PROCESS_ID:
        return document(documents, "\"0190a5d0-0000-7000-8000-000000000001\"");
    case PATH_PROCESS_TYPE:
        return document(documents, "\"order\"");
    case PATH_PROCESS_DOMAIN:
        return document(documents, "\"shop\"");
    case PATH_ITEM:
        return document(documents, documents->item);
    case PATH_INDEX:
        return document(documents, documents->index);
    case PATH_RESULT:
        return document(documents, documents->result);
    case PATH_ROOT_COUNT:
        break;
    }
    abort();
}

void documents_done(Documents *documents)
{
    for (int i = 0; i < 8; i++)
        free(documents->copies[i]);
}
