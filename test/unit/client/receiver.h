/*
 * receiver.h - an HTTP server for tests of the client: each request is handed to a function that writes whatever bytes it wants.
 *
 * A connection has a thread of its own. The functions that answer do not assert: they run on that thread.
 */
#ifndef UNIT_CLIENT_RECEIVER_H
#define UNIT_CLIENT_RECEIVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/sync.h"

#define RECEIVER_CONNECTIONS_MAX 512
#define RECEIVER_BYTES_MAX       (64 << 10)

typedef struct {
    int         fd;
    int         number; /* of the request on its connection, from 1 */
    const char *head;   /* with the request line; the empty line is cut off */
    const char *body;
} Received;

typedef struct Receiver Receiver;
/* false: close the connection. */
typedef bool ReceiverAnswer(Receiver *receiver, const Received *received);

struct Receiver {
    int             port;
    char            url[64]; /* "http://127.0.0.1:PORT" */
    ReceiverAnswer *answer;
    const char     *text; /* for the function */
    atomic_int      connections, open, requests;
    int             fd;
    pthread_t       thread;
    Mutex           mutex; /* guards all below */
    int             fds[RECEIVER_CONNECTIONS_MAX];
    pthread_t       threads[RECEIVER_CONNECTIONS_MAX];
    const char     *greeting;                 /* NULL: none */
    char            last[RECEIVER_BYTES_MAX]; /* head, empty line and body of the last request */
};

void receiver_init(Receiver *receiver, ReceiverAnswer *answer, const char *text);
void receiver_done(Receiver *receiver);
/* Send this at the beginning of each connection from now on, before anything was received. */
void receiver_greet(Receiver *receiver, const char *greeting);
/* The last request; asserts that there was one. */
const char *receiver_last(Receiver *receiver);
#define scoped_receiver __attribute__((cleanup(receiver_done)))

bool receiver_write(const Received *received, const char *bytes, size_t size);
/* Wait until the client closes the connection. */
void receiver_await_end(const Received *received);

/* Answers with receiver->text as it is and keeps the connection. */
ReceiverAnswer answer_text;
/* The same, and closes it. */
ReceiverAnswer answer_text_close;
/* Answers "200 OK" with the request's body. */
ReceiverAnswer answer_echo;
/* Never answers. */
ReceiverAnswer answer_never;

#endif
