/*
 * domain.h - what a token needs to use a reserved domain (bus/reserved_domain.h). The scope `command` opens every other domain. Threads: any.
 */
#ifndef API_DOMAIN_H
#define API_DOMAIN_H

#include <stdbool.h>

#include "api/api.h"
#include "bus/reserved_domain.h"

/* ERR_DENIED names the scope that is missing. domain may be NULL. */
must_check ErrorCode domain_check(const Request *request, const char *domain, DomainUse use, Error *reterr);
/* The same for a command that is named by its id, and by ?domain= where that is given. If several domains have the id, the request is refused in
 * any case. */
must_check ErrorCode domain_check_id(Api *api, Request *request, const char *id, DomainUse use, Error *reterr);
bool                 domain_is_open(const Request *request, const char *domain, DomainUse use);

#endif
