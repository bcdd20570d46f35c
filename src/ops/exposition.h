/*
 * exposition.h - all metrics in Prometheus' text format, version 0.0.4.
 */
#ifndef OPS_EXPOSITION_H
#define OPS_EXPOSITION_H

#include "base/text.h"

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

void exposition_write(Text *text);

#endif
