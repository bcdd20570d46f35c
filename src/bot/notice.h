/*
 * notice.h - notifies users whose updates cannot be handled because the database fails: directly, because the outbox
 * is in the database.
 *
 * Invariants
 *   1. A user is notified once per update and pod, for the last NOTICE_KNOWN_MAX updates. A notice that
 *      the server did not accept (429) is sent again; one that it may have received is not.
 *   2. Adding does not wait: a thread sends. Beyond NOTICE_QUEUE_MAX a notice is dropped and logged, the update is
 *      not affected.
 * The functions that add and ask take NULL, and do nothing.
 * Threads: any; one of its own. Ownership: everything is copied.
 */
#ifndef BOT_NOTICE_H
#define BOT_NOTICE_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

#define NOTICE_QUEUE_MAX 256
#define NOTICE_KNOWN_MAX 1024

typedef struct BotNotices BotNotices;
/* ERR_INTERNAL: no thread. */
must_check ErrorCode bot_notices_new(const char *token, const char *api_root, BotNotices **ret_notices, Error *reterr);
/* The bot's username, for commands that name a bot. */
void bot_notices_name(BotNotices *notices, const char *name);
/* An update as JSON, and why it has to wait. */
void bot_notices_add(BotNotices *notices, const char *json, size_t size, const Error *why);
/* Was it added? */
bool bot_notices_has(BotNotices *notices, int64_t update_id);
/* What is queued is dropped; the call under way ends within about a second. */
void bot_notices_stop(BotNotices *notices);
/* After bot_notices_stop(); waits for the thread. */
void bot_notices_free(BotNotices *notices);

#endif
