/*
 * png.h - pixels as a PNG: 8 bits of red, green and blue, no filters, deflated fast.
 *
 * A chart is flat colour: a better compression makes it a tenth smaller and takes four times as long (docs/adr/0025).
 * Threads: any. Ownership: the bytes are appended to the text.
 */
#ifndef RATING_PNG_H
#define RATING_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* Rows of pixels as 0x00RRGGBB, `stride` bytes from one to the next. ERR_LIMIT: the text is full. */
must_check ErrorCode png_write(const unsigned char *pixels, int width, int height, int stride, Text *text,
                               Error *reterr);

#endif
