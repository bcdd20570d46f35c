/*
 * raw.h - a raw HTTP client for tests: it sends whatever bytes a test wants and reads one answer at a time.
 *
 * The functions do not assert, so worker threads may use them; an answer that never came has status 0.
 */
#ifndef UNIT_HTTP_RAW_H
#define UNIT_HTTP_RAW_H

#include <stdbool.h>
#include <stddef.h>

#define RAW_WAIT_MS 60000 /* far beyond what any answer takes: reaching it is a failure */

typedef struct {
    int    fd;
    size_t filled;
    char   bytes[64 << 10]; /* received, not yet taken by raw_read() */
} Raw;

typedef struct {
    int  status; /* 0: none came */
    char head[8 << 10];
    char body[32 << 10];
} Answer;

void raw_open(Raw *client, int port); /* fd is -1 when the port refuses connections */
void raw_done(Raw *client);
bool raw_send(Raw *client, const char *text);
bool raw_send_bytes(Raw *client, const void *bytes, size_t size); /* false: the server closed */
/* Read the next answer; bodiless for one to HEAD. */
Answer raw_read(Raw *client);
Answer raw_read_bodiless(Raw *client);
bool   raw_is_closed(Raw *client); /* waits for the server's end; false: it sent something or stays open */
/* Open, send, read one answer, close. */
Answer raw_ask(int port, const char *text);
/* Is the answer a problem document with this status, the headers it needs, and nothing missing? */
bool answer_is_problem(const Answer *answer, int status);
/* The value of a header in text (any case), "" when absent. Static per thread. */
const char *answer_header(const Answer *answer, const char *name);

#define scoped_raw __attribute__((cleanup(raw_done)))

#endif
