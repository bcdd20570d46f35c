/*
 * lookup.h - documents for templates and conditions under test.
 *
 * Every document is copied to memory of exactly its size, so that AddressSanitizer sees the first byte too far.
 */
#ifndef TEST_PROCESS_LOOKUP_H
#define TEST_PROCESS_LOOKUP_H

#include "process/path.h"

typedef struct {
    const char *state, *item, *index, *result,
        *reserve; /* reserve: the result of the step of that name; NULL: missing */
    char *copies[8];
    int   count;
} Documents;

Value documents_lookup(void *context, const ValuePath *path);
void  documents_done(Documents *documents);
#define scoped_documents __attribute__((cleanup(documents_done)))

#endif
