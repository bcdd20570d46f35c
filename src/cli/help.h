/*
 * help.h - help made from the table of commands.
 */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

/* All commands, or those of one group with their flags; an unknown group gives all. */
void help_print(const char *group, FILE *out);

#endif
