/*
 * token.h - whose token is this? The server's question to its application.
 *
 * A network thread asks ServerAuth, which answers from memory. What memory does not know is looked up: the request
 * waits without a thread, so unknown tokens cost other clients nothing.
 */
#ifndef HTTP_TOKEN_H
#define HTTP_TOKEN_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "http/route.h"

#define TOKEN_NAME_SIZE 64

typedef struct {
    const char *token;
    Deadline    deadline;
    Arena      *arena; /* the application's until on_done */
    void (*on_done)(void *context);
    void *context;
    /* The verdict. */
    Error       error; /* code OK: the token is good. ERR_NO_TOKEN: unknown. ERR_BUSY: too many are being looked up */
    Scope       scopes;
    const void *bound; /* the application's, in the arena: what the token is bound to; NULL: it is not */
    char        name[TOKEN_NAME_SIZE];
} TokenCheck;

/* Must not wait. false: memory does not know, and the check is as it was. */
typedef bool ServerAuth(void *app, TokenCheck *check);
/* on_done is called once, by any thread, also by the caller. The check is borrowed until then. */
typedef void ServerAuthSubmit(void *app, TokenCheck *check);

#endif
