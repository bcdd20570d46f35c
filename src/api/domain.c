/*
 * domain.c - see domain.h.
 */
#include "api/domain.h"

#include <string.h>

#include "api/key.h"
#include "bus/command.h"
#include "bus/send.h"

/* The bits of "process admin". */
static unsigned scopes_of(const char *names)
{
    unsigned scopes = 0;

    for (size_t length; *names; names += length + (names[length] == ' ')) {
        length = strcspn(names, " ");
        scopes |= scope_find(names, length);
    }
    return scopes;
}

bool domain_is_open(const Request *request, const char *domain, DomainUse use)
{
    const ReservedDomain *row = reserved_domain_find(domain);

    return !row || !row->scopes[use] || (request_scopes(request) & scopes_of(row->scopes[use]));
}

ErrorCode domain_check(const Request *request, const char *domain, DomainUse use, Error *reterr)
{
    const ReservedDomain *row = reserved_domain_find(domain);

    if (domain_is_open(request, domain, use))
        return OK;
    return fail(reterr, ERR_DENIED, "the token must have the scope %.*s for domain \"%.*s\", whose commands are %s",
                (int)strcspn(row->scopes[use], " "), row->scopes[use], SEND_DOMAIN_MAX, domain, row->commands);
}

ErrorCode domain_check_id(Api *api, Request *request, const char *id, DomainUse use, Error *reterr)
{
    const char **domains;
    int          count;

    if (request_scopes(request) & SCOPE_ADMIN)
        return OK;
    if (request_query(request, "domain"))
        return domain_check(request, request_query(request, "domain"), use, reterr);
    TRY(command_domains(api->pool, request_deadline(request), request_arena(request), id, &domains, &count, reterr));
    return count == 1 ? domain_check(request, domains[0], use, reterr) : OK;
}
