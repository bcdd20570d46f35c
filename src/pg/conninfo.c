/*
 * conninfo.c - see conninfo.h.
 */
#include "pg/conninfo.h"

#include <stdio.h>
#include <string.h>

const char *conninfo_value(const PQconninfoOption *options, const char *keyword)
{
    for (; options->keyword; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val && options->val[0] ? options->val : NULL;
    return NULL;
}

/* libpq quotes what it could not understand, and that may be the password: keep the words before the first quote. */
static void cut_at_quote(char *message)
{
    size_t length = strcspn(message, "\"\n");

    while (length > 0 && strchr(": ", message[length - 1]))
        length--;
    message[length] = '\0';
}

ErrorCode conninfo_parse(const char *conninfo, PQconninfoOption **ret_options, Error *reterr)
{
    char             *message = NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &message);

    if (!options) {
        if (message)
            cut_at_quote(message);
        (void)fail(reterr, ERR_USAGE,
                   "database url is malformed (%s): a right one is postgresql://user@host:5432/database",
                   message ? message : "out of memory");
        PQfreemem(message);
        return ERR_USAGE;
    }
    *ret_options = options;
    return OK;
}

ErrorCode conninfo_describe(const char *conninfo, char *ret_text, Error *reterr)
{
    static const char *const                 shown[] = {"host", "hostaddr", "port", "dbname", "user"};
    scoped(PQconninfoFree) PQconninfoOption *options = NULL;
    size_t                                   used    = 0;

    TRY(conninfo_parse(conninfo, &options, reterr));
    ret_text[0] = '\0';
    for (size_t i = 0; i < COUNT(shown); i++) {
        const char *value = conninfo_value(options, shown[i]);

        if (value && used < CONNINFO_TEXT_SIZE) {
            int size =
                snprintf(ret_text + used, CONNINFO_TEXT_SIZE - used, "%s%s=%s", used ? " " : "", shown[i], value);

            used += size > 0 ? (size_t)size : 0;
        }
    }
    return OK;
}

/* ---- lists ---- */

void conninfo_item(const char *list, int n, char *ret_item, size_t size)
{
    const char *end;

    for (; n > 0 && strchr(list, ','); n--)
        list = strchr(list, ',') + 1;
    end = strchrnul(list, ',');
    snprintf(ret_item, size, "%.*s", (int)(end - list), list);
}

int conninfo_count(const char *list)
{
    int count = 1;

    for (; list && (list = strchr(list, ',')); list++)
        count++;
    return count;
}
