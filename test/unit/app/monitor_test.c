/*
 * monitor_test.c - alerts on their way out.
 */
#include "app/monitor.h"

#include "test/harness/test.h"

/* The default: no webhook. The listener returns before it has written anything, and frees nothing it did not make. */
TEST(alert_changes_state_without_a_webhook)
{
    Daemon daemon = {0};
    Alert  alert  = {.name = "breaker_open", .firing = true};

    mutex_init(&daemon.mutex);
    monitor_alert(&daemon, &alert);
    alert.firing = false;
    monitor_alert(&daemon, &alert);
    mutex_done(&daemon.mutex);
}
