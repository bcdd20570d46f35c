/*
 * cairo_load.h - the functions of cairo that charts call, loaded when the first chart is drawn.
 *
 * cairo depends on X11, fontconfig and a dozen other libraries: linked in, they would cost every call of pawl
 * milliseconds and every pod 2 MB, although only bots draw.
 *
 * Invariant: after cairo_load() has returned OK, every member of `cairo_library` is set and stays so.
 * Threads: any. Ownership: the library stays loaded until the program ends.
 */
#ifndef RATING_CAIRO_LOAD_H
#define RATING_CAIRO_LOAD_H

#include <cairo.h>

#include "base/error.h"

#define CAIRO_FUNCTIONS(X)        \
    X(arc)                        \
    X(create)                     \
    X(destroy)                    \
    X(fill)                       \
    X(get_scaled_font)            \
    X(glyph_free)                 \
    X(image_surface_create)       \
    X(image_surface_get_data)     \
    X(image_surface_get_stride)   \
    X(line_to)                    \
    X(move_to)                    \
    X(new_path)                   \
    X(paint)                      \
    X(scale)                      \
    X(scaled_font_text_to_glyphs) \
    X(select_font_face)           \
    X(set_font_size)              \
    X(set_line_cap)               \
    X(set_line_join)              \
    X(set_line_width)             \
    X(set_source_rgb)             \
    X(show_text)                  \
    X(status)                     \
    X(status_to_string)           \
    X(stroke)                     \
    X(surface_destroy)            \
    X(surface_flush)              \
    X(text_extents)

typedef struct {
#define X(name) __typeof__(cairo_##name) *name;
    CAIRO_FUNCTIONS(X)
#undef X
} CairoLibrary;

extern CairoLibrary cairo_library;

/* ERR_INTERNAL: the library is not installed, or lacks a function. The next call does not try again. */
must_check ErrorCode cairo_load(Error *reterr);

#endif
