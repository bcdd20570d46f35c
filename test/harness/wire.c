/*
 * wire.c - protocol 3.0, frontend and backend messages alike.
 */
#include "test/harness/wire.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define PROTOCOL_MAJOR 3

static uint32_t number_at(const char *bytes)
{
    uint32_t number;

    memcpy(&number, bytes, sizeof number);
    return ntohl(number);
}

bool wire_head(const char *bytes, size_t size, bool in_session, WireMessage *ret_message)
{
    if (in_session) {
        if (size < 5)
            return false;
        *ret_message = (WireMessage){.size = 1 + (size_t)number_at(bytes + 1), .type = bytes[0]};
    } else {
        if (size < 8)
            return false;
        *ret_message = (WireMessage){.size = number_at(bytes), .session = number_at(bytes + 4) >> 16 == PROTOCOL_MAJOR};
    }
    return true;
}

const char *wire_sql(const char *bytes, size_t size, size_t *ret_length)
{
    const char *sql = bytes + 5;
    const char *end = bytes + size;

    if (size <= 5 || (bytes[0] != 'Q' && bytes[0] != 'P'))
        return NULL;
    if (bytes[0] == 'P') { /* the statement's name comes first */
        sql = memchr(sql, '\0', (size_t)(end - sql));
        if (!sql || ++sql == end)
            return NULL;
    }
    *ret_length = strnlen(sql, (size_t)(end - sql));
    return sql;
}

bool wire_is_commit(const char *sql, size_t length)
{
    static const char word[] = "commit";

    while (length && isspace((unsigned char)*sql)) {
        sql++;
        length--;
    }
    const char *end = memchr(sql, ';', length);
    if (end)
        length = (size_t)(end - sql);
    while (length && isspace((unsigned char)sql[length - 1]))
        length--;
    return length == strlen(word) && !strncasecmp(sql, word, length);
}

bool wire_contains(const char *sql, size_t length, const char *part)
{
    size_t part_length = strlen(part);

    for (; length >= part_length; sql++, length--)
        if (!strncasecmp(sql, part, part_length))
            return true;
    return false;
}
