/*
 * conninfo.c - see conninfo.h.
 */
#include "pg/conninfo.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *conninfo_value(const PQconninfoOption *options, const char *keyword)
{
    for (; options->keyword; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val && options->val[0] ? options->val : NULL;
    return NULL;
}

/* A quoted punctuation mark is libpq's own: missing "=" after "secret". */
static bool is_mark(const char *quote)
{
    return quote[1] && strchr("=:/]", quote[1]) && quote[2] == '"';
}

/* libpq quotes the text that it could not parse, which may be the password. Everything from the first quotation of that
 * text to the last quotation mark is replaced by "...", so a quotation mark in the password reveals nothing. */
static void quotes_mask(const char *message, char *ret_masked, size_t size)
{
    const char *first = strchr(message, '"'), *last = strrchr(message, '"');

    while (first && is_mark(first))
        first = strchr(first + strlen("\"=\""), '"');
    if (first)
        snprintf(ret_masked, size, "%.*s\"...\"%s", (int)(first - message), message, last + 1);
    else
        snprintf(ret_masked, size, "%s", message);
    ret_masked[strcspn(ret_masked, "\n")] = '\0';
}

/* Neither "keyword=value" nor a URL that libpq knows: it would miss a "=", which does not help a user who gave
 * mysql://, host:port or host/database. */
static bool is_foreign(const char *conninfo)
{
    char end = conninfo[strcspn(conninfo, "= :/")];

    return (end == ':' || end == '/' || !end) && strncmp(conninfo, "postgresql://", strlen("postgresql://")) != 0 &&
           strncmp(conninfo, "postgres://", strlen("postgres://")) != 0;
}

/* libpq says it when it connects, in a message that looks like an outage. What stands there may be a part of a password
 * with a "/" in it, so it is not shown. */
static ErrorCode ports_check(const char *ports, Error *reterr)
{
    char port[32], *end;
    long number;

    for (int i = 0; ports && i < conninfo_count(ports); i++) {
        conninfo_item(ports, i, port, sizeof port);
        number = strtol(port, &end, 10);
        if (port[0] && (number < 1 || number > 65535 || end[strspn(end, " ")]))
            return fail(reterr, ERR_USAGE, "the database url's port must be a number from 1 to 65535");
    }
    return OK;
}

ErrorCode conninfo_parse(const char *conninfo, PQconninfoOption **ret_options, Error *reterr)
{
    char                                    *message = NULL;
    scoped(PQconninfoFree) PQconninfoOption *options = PQconninfoParse(conninfo, &message);

    if (!options) {
        char masked[CONNINFO_TEXT_SIZE];

        quotes_mask(message ? message : "out of memory", masked, sizeof masked);
        if (is_foreign(conninfo))
            (void)fail(reterr, ERR_USAGE,
                       "database url must begin with postgresql://, as in postgresql://user@host:5432/database");
        else
            (void)fail(reterr, ERR_USAGE,
                       "database url is malformed (%s): it must look like postgresql://user@host:5432/database",
                       masked);
        PQfreemem(message);
        return ERR_USAGE;
    }
    TRY(ports_check(conninfo_value(options, "port"), reterr));
    *ret_options = take(options);
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
