/*
 * wire.h - just enough of PostgreSQL's protocol to find one statement in a stream of bytes.
 *
 * A message is a type byte, a length that counts itself, and a body. Packets before the session begins (encryption
 * requests, cancel, startup) have no type byte.
 */
#ifndef HARNESS_WIRE_H
#define HARNESS_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#define WIRE_HEADER_SIZE 8 /* enough bytes to know a packet's size, and the kind of one without a type */

typedef struct {
    size_t size;    /* with type byte and length */
    char   type;    /* '\0': a packet before the session */
    bool   session; /* this startup packet begins it: later packets are messages */
} WireMessage;

/* Look at the head of a packet. false: more bytes are needed. */
bool wire_head(const char *bytes, size_t size, bool in_session, WireMessage *ret_message);
/* The SQL of a Query or Parse message, NULL for any other; as much of it as there is when it is cut short. Borrowed,
 * and terminated by a NUL only if the message is whole: the length stands in *ret_length. */
const char *wire_sql(const char *bytes, size_t size, size_t *ret_length);
/* Is its first statement "commit", in any case, with or without blanks? */
bool wire_is_commit(const char *sql, size_t length);
bool wire_contains(const char *sql, size_t length, const char *part);

#endif
