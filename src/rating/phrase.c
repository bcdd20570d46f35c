/*
 * phrase.c - see phrase.h.
 */
#include "rating/phrase.h"

#include <string.h>
#include <strings.h>

const char *const language_codes[LANGUAGE_COUNT] = {"en", "ru"};

#define X(id, en, ru) {en, ru},
static const char *const phrases[PHRASE_COUNT][LANGUAGE_COUNT] = {PHRASES(X)};
#undef X

Language language_of(const char *code)
{
    return code && strncasecmp(code, "ru", 2) == 0 ? LANGUAGE_RU : LANGUAGE_EN;
}

const char *phrase_text(Language language, PhraseId id)
{
    return phrases[id][language];
}

PhraseId phrase_of_number(Language language, PhraseId id, int64_t number)
{
    int64_t last = number % 10, two = number % 100;

    if (language == LANGUAGE_EN)
        return number == 1 ? id : (PhraseId)(id + 2);
    if (two >= 11 && two <= 14)
        return (PhraseId)(id + 2);
    return last == 1 ? id : last >= 2 && last <= 4 ? (PhraseId)(id + 1) : (PhraseId)(id + 2);
}

void phrase_append(Text *text, Language language, PhraseId id, const char *const *values, size_t count)
{
    const char *from = phrases[id][language];

    while (*from) {
        size_t plain = strcspn(from, "{");

        text_append_bytes(text, from, plain);
        from += plain;
        if (from[0] == '{' && from[1] >= '0' && from[1] <= '9' && from[2] == '}') {
            size_t number = (size_t)(from[1] - '0');

            text_append(text, number < count && values[number] ? values[number] : "");
            from += 3;
        } else if (*from) {
            text_append_char(text, *from++);
        }
    }
}
