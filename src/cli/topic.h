/*
 * topic.h - help topics besides commands: the tables of settings, metrics, errors, routes and fields of process definitions.
 */
#ifndef CLI_TOPIC_H
#define CLI_TOPIC_H

#include <stdbool.h>

#include "base/arena.h"

/* To standard output, as a page or as a JSON array; false: there is no such topic. */
bool topic_print(const char *name, bool json, Arena *arena);

#endif
