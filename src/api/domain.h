/*
 * domain.h - domains whose commands are not an application's own, and what a token needs to use them.
 *
 * The scope `command` opens every other domain. A process holds the state of its owner, and an update of the bot acts with the rights of the
 * person that it names; so neither is sent, claimed or read with that scope alone.
 */
#ifndef API_DOMAIN_H
#define API_DOMAIN_H

#include <stdbool.h>

#include "api/api.h"

typedef enum { DOMAIN_SEND, DOMAIN_WORK, DOMAIN_READ, DOMAIN_USES } DomainUse; /* a cancel is DOMAIN_SEND */

/* ERR_DENIED names the scope that is missing. domain may be NULL. */
must_check ErrorCode domain_check(const Request *request, const char *domain, DomainUse use, Error *reterr);
/* The same for a command that is named by its id, and by ?domain= where that is given. If several domains have the id, the request is refused in
 * any case. */
must_check ErrorCode domain_check_id(Api *api, Request *request, const char *id, DomainUse use, Error *reterr);
bool                 domain_is_open(const Request *request, const char *domain, DomainUse use);

#endif
