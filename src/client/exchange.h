/*
 * exchange.h - one request to one target and its answer, over one libcurl handle; redirects are the caller's.
 *
 * Threads: one at a time. Ownership: exchange_done() frees the texts. The request, its client and its target are
 * borrowed.
 */
#ifndef CLIENT_EXCHANGE_H
#define CLIENT_EXCHANGE_H

#include <stdatomic.h>

#include "base/text.h"
#include "client/handle.h"

struct Client {
    ClientOptions options; /* defaults filled in, texts copied */
    Handles       handles;
    atomic_bool   stopping;
    atomic_int    under_way; /* requests */
};

typedef struct {
    Client              *client;
    const ClientRequest *request;
    const Target        *target;
    bool                 with_secrets; /* the origin is the one that the caller named */
    CURL                *curl;

    int    status;
    Text   head, body;
    size_t head_bytes; /* of all header lines, also of those that head does not hold */
    bool   head_done;  /* the empty line came: what follows are trailers, or the head of a final answer */
    bool   head_is_long, body_is_long;
    bool   met_private; /* an address was not connected to */
} Exchange;

/* Errors as client_send() has them. */
must_check ErrorCode exchange_run(Exchange *exchange, Error *reterr);
void                 exchange_done(Exchange *exchange);
/* The value of a header in the answer, copied into the buffer; false: absent, or longer. */
bool exchange_header(const Exchange *exchange, const char *name, char *ret_value, size_t size);

#define scoped_exchange __attribute__((cleanup(exchange_done)))

#endif
