/*
 * letter.h - a dead letter as JSON, the same for HTTP and the command line.
 */
#ifndef APP_LETTER_H
#define APP_LETTER_H

#include "base/writer.h"
#include "pg/dead_letter.h"

void letter_write(Writer *writer, const DeadLetter *letter);

#endif
