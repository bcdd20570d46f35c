/*
 * names.h - the names below ".test" for this program: libcurl's resolver threads find this getaddrinfo() before the C library's.
 *
 *   loopback.test      127.0.0.1
 *   other.test         127.0.0.1
 *   metadata.test      169.254.169.254
 *   hang.test          no answer until names_release()
 */
#ifndef UNIT_CLIENT_NAMES_H
#define UNIT_CLIENT_NAMES_H

void names_hang(void);    /* hang.test hangs from now on */
void names_release(void); /* it is not found; waits until every question was answered */

#endif
