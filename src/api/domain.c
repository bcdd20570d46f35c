/*
 * domain.c - see domain.h.
 */
#include "api/domain.h"

#include "api/scope.h"
#include "bus/command.h"
#include "bus/send.h"
#include "telegram/outbox.h"

/* Any of the scopes suffices; 0: the route's own do. */
typedef struct {
    bool (*is_one)(const char *domain);
    unsigned    scopes[DOMAIN_USES];
    const char *needed, *commands;
} Reserved;

static const Reserved reserved[] = {
    {send_is_process_domain,
     {[DOMAIN_SEND] = SCOPE_PROCESS | SCOPE_ADMIN,
      [DOMAIN_WORK] = SCOPE_PROCESS | SCOPE_ADMIN,
      [DOMAIN_READ] = SCOPE_PROCESS | SCOPE_ADMIN | SCOPE_READ},
     "process", "processes"        },
    {telegram_domain_is_updates,
     {[DOMAIN_SEND] = SCOPE_ADMIN, [DOMAIN_WORK] = SCOPE_ADMIN, [DOMAIN_READ] = SCOPE_ADMIN},
     "admin",   "updates of a bot" },
    {telegram_domain_is_outbox,
     {[DOMAIN_WORK] = SCOPE_ADMIN, [DOMAIN_READ] = SCOPE_ADMIN},
     "admin",   "messages of a bot"},
};

static const Reserved *reserved_find(const char *domain)
{
    for (size_t i = 0; domain && i < COUNT(reserved); i++)
        if (reserved[i].is_one(domain))
            return &reserved[i];
    return NULL;
}

bool domain_is_open(const Request *request, const char *domain, DomainUse use)
{
    const Reserved *row = reserved_find(domain);

    return !row || !row->scopes[use] || (request_scopes(request) & row->scopes[use]);
}

ErrorCode domain_check(const Request *request, const char *domain, DomainUse use, Error *reterr)
{
    if (domain_is_open(request, domain, use))
        return OK;
    return fail(reterr, ERR_DENIED, "the token must have the scope %s for domain \"%.*s\", whose commands are %s",
                reserved_find(domain)->needed, SEND_DOMAIN_MAX, domain, reserved_find(domain)->commands);
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
