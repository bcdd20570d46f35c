/*
 * word.c - see word.h.
 */
#include "base/word.h"

#include <string.h>

#include "base/text.h"

ErrorCode word_check(const char *field, const char *word, const char *const *words, Error *reterr)
{
    const char      *near;
    scoped_text Text names = {0};
    size_t           count = 0;

    for (; words[count]; count++)
        if (word && strcmp(words[count], word) == 0)
            return OK;
    if (!word)
        return OK;
    near = text_nearest(word, words, count);
    text_init(&names, NULL, TEXT_MAX_LINE);
    for (size_t i = 0; i < count; i++)
        text_print(&names, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", words[i]);
    return fail(reterr, ERR_INVALID, "%s \"%.40s\" is unknown%s%s%s%s", field, word, near ? ", did you mean \"" : "",
                near ? near : "", near ? "\"? It must be " : "; it must be ", text_string(&names));
}
