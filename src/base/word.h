/*
 * word.h - a value that is one of a few words. Threads: any.
 */
#ifndef BASE_WORD_H
#define BASE_WORD_H

#include "base/error.h"

/* words: ended by NULL. A NULL word is fine: it was not given. ERR_INVALID names the field, the nearest word, and all
 * of them. */
must_check ErrorCode word_check(const char *field, const char *word, const char *const *words, Error *reterr);

#endif
