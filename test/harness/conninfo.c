/*
 * conninfo.c - libpq takes the parameters apart, we put them together again.
 */
#include "test/harness/conninfo.h"

#include <libpq-fe.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/text.h"
#include "test/harness/test.h"

#define CHANGES_MAX 8

SCOPED(PQconninfoOption, PQconninfoFree)

static PQconninfoOption *parse(const char *url)
{
    char             *message = NULL;
    PQconninfoOption *options = PQconninfoParse(url, &message);

    if (!options)
        fail_msg("\"%s\" is not a connection string: %s", url, message ? message : "out of memory");
    return options;
}

static void append(Text *text, const char *keyword, const char *value)
{
    text_print(text, "%s%s='", text->length ? " " : "", keyword);
    for (const char *c = value; *c; c++) {
        if (*c == '\'' || *c == '\\')
            text_append_char(text, '\\');
        text_append_char(text, *c);
    }
    text_append_char(text, '\'');
}

static const char *changed(const char *const (*changes)[2], int count, const char *keyword)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(changes[i][0], keyword))
            return changes[i][1];
    return NULL;
}

void conninfo_change(const char *url, char ret_conninfo[static CONNINFO_SIZE], ...)
{
    scoped(PQconninfoFree) PQconninfoOption *options = parse(url);
    scoped_text Text                         text    = {0};
    const char                              *changes[CHANGES_MAX][2];
    int                                      count = 0;
    va_list                                  list;

    va_start(list, ret_conninfo);
    for (const char *keyword; count < CHANGES_MAX && (keyword = va_arg(list, const char *)); count++) {
        changes[count][0] = keyword;
        changes[count][1] = va_arg(list, const char *);
    }
    va_end(list);

    text_init(&text, NULL, CONNINFO_SIZE - 1);
    for (const PQconninfoOption *option = options; option->keyword; option++) {
        const char *value = changed((const char *const(*)[2])changes, count, option->keyword);

        if (!value)
            value = option->val;
        if (value)
            append(&text, option->keyword, value);
    }
    assert_false(text_is_full(&text));
    snprintf(ret_conninfo, CONNINFO_SIZE, "%s", text_string(&text));
}

void conninfo_get(const char *url, const char *keyword, char ret_value[static CONNINFO_SIZE])
{
    scoped(PQconninfoFree) PQconninfoOption *options = parse(url);

    ret_value[0] = '\0';
    for (const PQconninfoOption *option = options; option->keyword; option++)
        if (option->val && !strcmp(option->keyword, keyword))
            snprintf(ret_value, CONNINFO_SIZE, "%s", option->val);
}
