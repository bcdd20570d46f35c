/*
 * banned.h - calls that do not compile here, after git's idea. Forced into every file by the build.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef sprintf /* a macro where clang meets _FORTIFY_SOURCE */
#pragma GCC poison strcpy strcat sprintf vsprintf strncpy strncat strtok gmtime localtime ctime asctime atoi atol atof \
    gets tmpnam

#endif
