/*
 * domain.c - see domain.h; sql/bus/depth.sql counts.
 */
#include "bus/domain.h"

#include <string.h>

#include "base/text.h"
#include "bus/answers.h"
#include "bus/send.h"
#include "pg/tx.h"
#include "sql.h"

#define PROCESSES "process:"

DB_SHAPE(domain, Domain, DOMAIN_COLUMNS);

const char *const domain_orders[] = {"name", "depth", NULL};

static ErrorCode order_check(const char *order, Error *reterr)
{
    for (const char *const *word = domain_orders; *word; word++)
        if (strcmp(*word, order) == 0)
            return OK;
    return fail(reterr, ERR_INVALID, "order must be \"name\" or \"depth\", got \"%.40s\"", order);
}

static ErrorCode rows_read(Pool *pool, Deadline deadline, Arena *arena, const char *name, const DomainFilter *filter,
                           Domain **ret_list, int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "domain_list", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call_many(pool, &options, sql_bus_domain_list,
                        DB_ARGS(db_text(name), db_text(filter->after), db_i32(filter->limit), db_text(filter->order),
                                db_bound(arena, filter->bound)),
                        &domain_shape, ret_list, ret_count, reterr);
}

ErrorCode domain_list(Pool *pool, Deadline deadline, Arena *arena, const DomainFilter *filter, Domain **ret_list,
                      int *ret_count, Error *reterr)
{
    DomainFilter given = *filter;

    if (!given.order)
        given.order = domain_orders[0];
    TRY(order_check(given.order, reterr));
    if (given.limit < 1 || given.limit > DOMAIN_LIST_MAX)
        return fail(reterr, ERR_INVALID, "limit must be an integer from 1 to %d, got %d", DOMAIN_LIST_MAX, given.limit);
    return rows_read(pool, deadline, arena, NULL, &given, ret_list, ret_count, reterr);
}

static ErrorCode one_read(Pool *pool, Deadline deadline, Arena *arena, const char *name, Domain *ret_domain,
                          Error *reterr)
{
    DomainFilter filter = {.limit = 1, .order = domain_orders[0]};
    Domain      *list;
    int          count;

    TRY(rows_read(pool, deadline, arena, name, &filter, &list, &count, reterr));
    *ret_domain = count > 0 ? list[0] : (Domain){.domain = "", .estimated = "[]"};
    return OK;
}

ErrorCode domain_show(Pool *pool, Deadline deadline, Arena *arena, const char *name, Domain *ret_domain,
                      Domain *ret_processes, Error *reterr)
{
    Domain domain, processes = {.domain = ""};

    TRY(one_read(pool, deadline, arena, name, &domain, reterr));
    if (strncmp(name, PROCESSES, sizeof PROCESSES - 1) != 0)
        TRY(one_read(pool, deadline, arena, arena_print(arena, PROCESSES "%s", name), &processes, reterr));
    if (!domain.domain[0] && !processes.domain[0])
        return fail(reterr, ERR_NOT_FOUND, "domain \"%.*s\" not found: nothing was ever sent to it", SEND_DOMAIN_MAX,
                    name);
    if (!domain.domain[0])
        domain.domain = name;
    *ret_domain    = domain;
    *ret_processes = processes;
    return OK;
}

/* ---- as JSON ---- */

void domain_write(Writer *writer, const void *row)
{
    writer_row(writer, &answer_domain_line, row);
}

void domain_show_write(Writer *writer, const Domain *domain, const Domain *processes)
{
    writer_object(writer, NULL);
    writer_fields(writer, &answer_domain_line, domain);
    if (processes->domain[0]) {
        writer_object(writer, "processes");
        writer_fields(writer, &answer_domain_line, processes);
        writer_end(writer);
    } else {
        writer_null(writer, "processes");
    }
    writer_end(writer);
}
