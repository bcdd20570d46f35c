/*
 * bound.h - requests of keys that are bound to domains and owners (key.h): what a request touches, and whether the key has it.
 *
 * A row of the table of routes says in `touches` how that is known; parameters, captures and fields of bodies say which of them name a domain or an
 * owner (FieldNames). api_bound() runs in place of the handler, checks all of it, and then runs the handler.
 *
 * Invariants
 *   1. A route whose row says nothing refuses keys that are bound.
 *   2. What a client names is judged by the patterns alone, so the answer is the same whether it exists or not: 403.
 *   3. What an id stands for is looked up. What is not within the binding is not found: 404, by the same words as where there is nothing. What
 *      is found is pinned: the parameter "domain" is set, so the handler reads and changes no other command of this id.
 *   4. A list has rows within the binding only; its handler passes the binding on to the database.
 * The lookup may precede the change, because what it reads never changes: the domain of a command, the owners of a transaction. Threads: any.
 */
#ifndef API_BOUND_H
#define API_BOUND_H

#include "api/key.h"
#include "http/route.h"

/* Route.touches. */
typedef enum {
    TOUCHES_UNSAID,      /* a new route: refused */
    TOUCHES_SERVICE,     /* what belongs to all domains and owners: refused */
    TOUCHES_NOTHING,     /* no domain and no owner */
    TOUCHES_NAMED,       /* what path, parameters and body name, which is at least one domain or owner */
    TOUCHES_DOMAINS,     /* a list: its handler uses api_bound_domains() */
    TOUCHES_OWNERS,      /* a list: its handler uses api_bound_owners() */
    TOUCHES_COMMAND,     /* {id} is a command */
    TOUCHES_PROCESS,     /* {id} is a process */
    TOUCHES_BATCH,       /* {id} is a batch */
    TOUCHES_TRANSACTION, /* {txn_id} is a transaction or a hold */
    TOUCHES_COUNT
} Touches;
extern const char *const touches_names[TOUCHES_COUNT]; /* "service", "domains": for OpenAPI */

RouteHandler api_bound;

/* For clients that are bound, in place of what differs from the first use of the txn_id. */
#define API_BOUND_REUSED "txn_id %s was used before for another operation"

/* For lists and texts; NULL: the key is not bound. */
const Bound *api_bound_domains(const Request *request);
const Bound *api_bound_owners(const Request *request);
/* Is a domain, "process:shop" too, within the binding? */
bool bound_has_domain(const Bound *domains, const char *domain);
bool bound_has_owner(const Bound *owners, const char *owner);
/* ERR_DENIED: not within the binding of the request's key, if it has one. field: where it was named. */
must_check ErrorCode bound_check_domain(Request *request, const char *field, const char *domain, Error *reterr);

#endif
