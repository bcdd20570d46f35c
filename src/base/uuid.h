/*
 * uuid.h - ids that grow with time (UUID version 7), so that index writes stay on a few warm pages.
 *
 * Threads: any. Two ids made by one process are never equal and sort in the order they were made.
 */
#ifndef BASE_UUID_H
#define BASE_UUID_H

#include <stdbool.h>

#define UUID_TEXT_SIZE 37 /* with the NUL */
#define UUID_BYTES     16

void uuid_new(char *ret_text);
/* The id that follows from a hash of at least UUID_BYTES bytes: version 8, a scheme of our own. */
void uuid_from_hash(const unsigned char *hash, char *ret_text);
/* Any case and any version; ret_text gets the lower-case form. false: not a UUID, ret_text untouched. */
bool uuid_parse(const char *text, char *ret_text);
/* The same as UUID_BYTES bytes, which may be changed on failure too. */
bool uuid_bytes(const char *text, unsigned char *ret_bytes);

#endif
