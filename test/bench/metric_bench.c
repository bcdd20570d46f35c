/*
 * metric_bench.c - what it costs an activation to find the metrics of its domain, with one domain and with a hundred, and to count.
 *
 *     metric_bench       prints nanoseconds per lookup and per count
 */
#include <stdio.h>

#include "base/clock.h"
#include "process/metric.h"

#define CYCLES  1000000
#define DOMAINS 100

static double lookup_ns(int domains)
{
    char names[DOMAINS][32];

    for (int i = 0; i < domains; i++) {
        snprintf(names[i], sizeof names[i], "process:domain%d", i);
        process_metrics_of(names[i]);
    }
    Mono began = clock_mono();

    for (int n = 0; n < CYCLES; n++)
        process_metrics_of(names[n % domains]);
    return (double)mono_us_between(began, clock_mono()) * 1000 / CYCLES;
}

static double count_ns(void)
{
    ProcessMetrics *metrics = process_metrics_of("process:domain0");
    Mono            began   = clock_mono();

    for (int n = 0; n < CYCLES; n++)
        metric_add(&metrics->steps_done, 1);
    return (double)mono_us_between(began, clock_mono()) * 1000 / CYCLES;
}

int main(void)
{
    double one = lookup_ns(1), many = lookup_ns(DOMAINS);

    printf("lookup: 1 domain %.0f ns, %d domains %.0f ns; count: %.1f ns\n", one, DOMAINS, many, count_ns());
    return 0;
}
