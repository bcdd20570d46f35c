/*
 * module.c - see module.h.
 */
#include "base/module.h"

#include <stdlib.h>
#include <string.h>

static const Module *modules[MODULES_MAX];
static size_t        module_count;

void module_join(const Module *module)
{
    size_t at = module_count;

    for (size_t i = 0; i < module_count; i++)
        if (modules[i] == module)
            return;
    if (module_count == MODULES_MAX)
        abort();
    /* Sorted, because the order of constructors depends on the linker, and generated pages must not. */
    for (; at > 0 && strcmp(modules[at - 1]->name, module->name) > 0; at--)
        modules[at] = modules[at - 1];
    modules[at] = module;
    module_count++;
}

const Module *module_at(size_t index)
{
    return index < module_count ? modules[index] : NULL;
}

const MetricTable *module_metrics(size_t index)
{
    for (size_t i = 0; i < module_count; i++)
        for (const MetricTable *const *table = modules[i]->metrics; *table; table++)
            if (index-- == 0)
                return *table;
    return NULL;
}

const MetricSum *module_sum(size_t index)
{
    for (size_t i = 0; i < module_count; i++)
        for (const MetricSum *sum = modules[i]->sums; sum && sum->name; sum++)
            if (index-- == 0)
                return sum;
    return NULL;
}

const MetricStat *module_stat(size_t index)
{
    for (size_t i = 0; i < module_count; i++)
        for (const MetricStat *stat = modules[i]->stats; stat && stat->measure; stat++)
            if (index-- == 0)
                return stat;
    return NULL;
}
