/*
 * chunk_test.c - bodies in chunks, in any slices.
 */
#include <string.h>

#include "http/chunk.h"
#include "test/harness/test.h"

/* Decode chunks in slices the way a connection does: what was not used comes again. */
static ErrorCode decode(const char *text, size_t slice, Text *body, ChunkState *ret_state, size_t *ret_left)
{
    Chunks chunks = {0};
    Error  error;
    size_t size = strlen(text), from = 0, filled = 0;

    while (filled < size && chunks.state != CHUNK_DONE) {
        size_t used = 0;

        filled = size - filled < slice ? size : filled + slice;
        TRY(chunks_parse(&chunks, text + from, filled - from, body, &used, &error));
        from += used;
    }
    *ret_state = chunks.state;
    *ret_left  = size - from;
    return OK;
}

TEST(chunk_data_is_decoded_in_any_slices)
{
    static const char text[] = "4\r\nwiki\r\n00A;name=\"v\"\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\nGET";

    for (size_t slice = 1; slice <= sizeof text; slice++) {
        scoped_text Text body = {0};
        ChunkState       end  = CHUNK_SIZE;
        size_t           left = 0;

        text_init(&body, NULL, 14);
        assert_int_equal(decode(text, slice, &body, &end, &left), OK);
        assert_int_equal(end, CHUNK_DONE);
        assert_string_equal(text_string(&body), "wiki0123456789");
        assert_true(left == 3);
    }
}

TEST(chunk_that_is_bad_is_refused)
{
    static const struct {
        const char *text;
        ErrorCode   code;
    } bad[] = {
        {"\r\n",                       ERR_INVALID},
        {"g\r\n",                      ERR_INVALID},
        {"-1\r\n",                     ERR_INVALID},
        {"0x1\r\n",                    ERR_INVALID},
        {" 1\r\n",                     ERR_INVALID},
        {"1 \r\na\r\n",                ERR_INVALID},
        {"1\na\r\n",                   ERR_INVALID},
        {"1;a\x01\r\na\r\n",           ERR_INVALID},
        {"1\r\nab\r\n",                ERR_INVALID},
        {"1\r\na\n",                   ERR_INVALID},
        {"1\r\na\r0",                  ERR_INVALID},
        {"00000000000000001\r\na\r\n", ERR_INVALID},
        {"ffffffffffffffff\r\n",       ERR_LIMIT  },
        {"f\r\n",                      ERR_LIMIT  },
        {"8\r\n01234567\r\n8\r\n",     ERR_LIMIT  },
        {"0\r\nno colon\r\n\r\n",      ERR_INVALID},
        {"0\r\n folded: x\r\n\r\n",    ERR_INVALID},
        {"0\r\n\n",                    ERR_INVALID},
    };

    for (size_t i = 0; i < COUNT(bad); i++)
        for (size_t slice = 1; slice < 20; slice += 6) {
            scoped_text Text body = {0};
            ChunkState       end  = CHUNK_SIZE;
            size_t           left = 0;

            text_init(&body, NULL, 14);
            assert_int_equal(decode(bad[i].text, slice, &body, &end, &left), bad[i].code);
        }
}
