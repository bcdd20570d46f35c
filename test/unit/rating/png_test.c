/*
 * png_test.c - what is written is what another program reads.
 */
#include "rating/png.h"

#include <cairo.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "test/harness/test.h"

typedef struct {
    const char *at;
    size_t      left;
} Reading;

static cairo_status_t read_on(void *context, unsigned char *bytes, unsigned int size)
{
    Reading *reading = context;

    if (size > reading->left)
        return CAIRO_STATUS_READ_ERROR;
    memcpy(bytes, reading->at, size);
    reading->at += size;
    reading->left -= size;
    return CAIRO_STATUS_SUCCESS;
}

/* Flat, a gradient, and noise that cannot be compressed and fills several chunks. */
static uint32_t pixel_of(int kind, int x, int y)
{
    return kind == 0   ? 0x171c26
           : kind == 1 ? (uint32_t)(x * 7 & 0xff) << 16 | (uint32_t)(y & 0xff) << 8 | (uint32_t)((x + y) & 0xff)
                       : (uint32_t)random() & 0xffffff;
}

static void picture_check(int kind, int width, int height)
{
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    size_t                    stride = 4 * (size_t)width + 8;
    unsigned char            *pixels = arena_alloc(arena, stride * (size_t)height);
    Error                     error  = {0};
    Text                      png;

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint32_t pixel = pixel_of(kind, x, y) | 0xff000000;

            memcpy(pixels + (size_t)y * stride + 4 * (size_t)x, &pixel, sizeof pixel);
        }
    text_init(&png, arena, (size_t)8 << 20);
    assert_ok(png_write(pixels, width, height, (int)stride, &png, &error));
    Reading          reading = {png.bytes, png.length};
    cairo_surface_t *surface = cairo_image_surface_create_from_png_stream(read_on, &reading);

    assert_int_equal(CAIRO_STATUS_SUCCESS, cairo_surface_status(surface));
    assert_int_equal(width, cairo_image_surface_get_width(surface));
    assert_int_equal(height, cairo_image_surface_get_height(surface));
    assert_int_equal(0, reading.left);
    for (int y = 0; y < height; y++) {
        const unsigned char *row =
            cairo_image_surface_get_data(surface) + (ptrdiff_t)y * cairo_image_surface_get_stride(surface);

        for (int x = 0; x < width; x++)
            assert_memory_equal(pixels + (size_t)y * stride + 4 * (size_t)x, row + 4 * (ptrdiff_t)x, 3);
    }
    cairo_surface_destroy(surface);
}

TEST(png_is_read_as_it_was_written)
{
    srandom(1);
    for (int kind = 0; kind < 3; kind++) {
        picture_check(kind, 1, 1);
        picture_check(kind, 300, 200);
        picture_check(kind, 513, 77);
    }
}

TEST(png_refuses_what_does_not_fit)
{
    scoped(arena_free) Arena *arena       = arena_new(ARENA_BYTES_DEFAULT);
    unsigned char             pixels[400] = {0};
    Error                     error       = {0};
    Text                      png;

    text_init(&png, arena, 60);
    assert_int_equal(ERR_LIMIT, png_write(pixels, 10, 10, 40, &png, &error));
    assert_int_equal(ERR_INVALID, png_write(pixels, 0, 10, 40, &png, &error));
    assert_int_equal(ERR_INVALID, png_write(pixels, 5000, 10, 40, &png, &error));
    assert_int_equal(ERR_INVALID, png_write(pixels, 10, 0, 40, &png, &error));
}
