/*
 * settings_change.h - what differs between the settings of the start and those of a reload.
 *
 * Threads: any; nothing is shared. Ownership: both are borrowed.
 */
#ifndef APP_SETTINGS_CHANGE_H
#define APP_SETTINGS_CHANGE_H

#include "app/settings.h"

/* Log the names of settings and sections that were changed and that a running daemon does not take. */
void settings_explain_restart(const Settings *started, const Settings *now);

#endif
