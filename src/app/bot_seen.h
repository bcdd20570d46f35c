/*
 * bot_seen.h - who writes in groups: messages that are no commands make their authors known to the game, and nothing else.
 * Threads: any.
 */
#ifndef APP_BOT_SEEN_H
#define APP_BOT_SEEN_H

#include "telegram/intake.h"

/* Let the game note the authors, in a transaction of its own. */
void bot_seen_watch(TelegramIntake *intake);

#endif
