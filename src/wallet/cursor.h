/*
 * cursor.h - the position at which a list of entries continues, as one word that a client sends back.
 *
 * It carries its filter, so that the next page is one of the same list whatever else is said or left out. It is bound to
 * the owner and to the list that it came from. It is neither secret nor an authorization: a caller that may read may read from any position.
 *
 * Threads: any. Ownership: results live in the arena.
 */
#ifndef WALLET_CURSOR_H
#define WALLET_CURSOR_H

#include "wallet/entry.h"

/* list: "entries", "statement". number: of the last entry returned. */
const char *cursor_text(Arena *arena, const char *list, const EntryFilter *filter, int64_t number);
/* Into the filter, which has what was given beside the cursor. cursor NULL: nothing happens. ERR_INVALID begins with the
 * parameter: "cursor" when it is not one of this list and owner, else the one that differs from what it carries. */
must_check ErrorCode cursor_take(Arena *arena, const char *list, const char *cursor, EntryFilter *filter,
                                 Error *reterr);

#endif
