/*
 * setting_value.h - the value of one setting: read from a word, stored into a struct, and the words for what it must
 * be.
 *
 * Threads: any; nothing is kept.
 */
#ifndef BASE_SETTING_VALUE_H
#define BASE_SETTING_VALUE_H

#include "base/setting.h"

typedef struct {
    const char *text;
    int64_t     number; /* INT, DURATION_MS, BOOL, WORDS */
} SettingValue;

/* false: the word is not right for the row. */
bool setting_value_parse(const Setting *row, const char *word, Arena *arena, SettingValue *ret_value);
void setting_value_store(const Setting *row, const SettingValue *value, char *ret_struct);
/* "must be ..., got ...", without the word if the row is a secret. */
void setting_value_refuse(const Setting *row, const char *word, Text *text);
/* The user's word in quotes, cut and escaped, so that a message stays one line. */
void setting_quote_print(const char *word, Text *text);

#endif
