/*
 * value_test.c - what is the same value, however it is written.
 */
#include "base/value.h"

#include <string.h>

#include "test/harness/test.h"

static bool is_same(const char *a, const char *b)
{
    unsigned char left[VALUE_HASH_BYTES], right[VALUE_HASH_BYTES];

    value_hash(value_trim(a, strlen(a)), left);
    value_hash(value_trim(b, strlen(b)), right);
    return memcmp(left, right, sizeof left) == 0;
}

TEST(value_hash_is_that_of_the_value)
{
    static const struct {
        const char *a, *b;
        bool        is_same;
    } rows[] = {
        {"{\"a\":1,\"bb\":[true,null]}", " { \"bb\" : [ true , null ] , \"a\" : 1 } ", true },
        {"1e2",                          "100",                                        true },
        {"100",                          "1.00e+2",                                    true },
        {"0.50",                         "0.5",                                        true },
        {"-0",                           "0.0e9",                                      true },
        {"\"\\u0041\\/\"",               "\"A/\"",                                     true },
        {"{\"\\u0041\":1}",              "{\"A\":1}",                                  true },
        {"1",                            "-1",                                         false},
        {"1",                            "10",                                         false},
        {"12",                           "1.2",                                        false},
        {"1",                            "\"1\"",                                      false},
        {"null",                         "false",                                      false},
        {"[]",                           "{}",                                         false},
        {"[1,2]",                        "[2,1]",                                      false},
        {"[[1],2]",                      "[1,[2]]",                                    false},
        {"{\"a\":1,\"b\":2}",            "{\"a\":2,\"b\":1}",                          false},
        {"{\"a\":{\"b\":1}}",            "{\"b\":{\"a\":1}}",                          false},
        {"\"a\"",                        "\"b\"",                                      false},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (is_same(rows[i].a, rows[i].b) != rows[i].is_same)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
}
