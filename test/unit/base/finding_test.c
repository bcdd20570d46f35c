/*
 * finding_test.c - what a list of findings keeps and writes.
 */
#include "base/finding.h"

#include "test/harness/test.h"

static const char *written(Arena *arena, const Findings *findings)
{
    Text   text;
    Writer writer;

    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    findings_write(&writer, findings);
    writer_end(&writer);
    return text_string(&text);
}

TEST(findings_keep_copies_and_write_them)
{
    scoped(arena_free) Arena *arena     = arena_new(ARENA_BYTES_DEFAULT);
    Findings                 *findings  = arena_alloc(arena, sizeof *findings);
    char                      which[16] = "match 42";

    assert_string_equal(written(arena, findings), "{\"findings\":[],\"more\":false}");
    findings_add(findings, arena, &(Finding){"match", which, "has \"no\" history"});
    which[6] = '7';
    assert_string_equal(written(arena, findings),
                        "{\"findings\":[{\"what\":\"match\",\"which\":\"match 42\",\"sentence\":\"has \\\"no\\\" "
                        "history\"}],\"more\":false}");
}

TEST(findings_that_do_not_fit_are_said)
{
    scoped(arena_free) Arena *arena = arena_new((size_t)4 << 20);
    Findings                 *one = arena_alloc(arena, sizeof *one), *all = arena_alloc(arena, sizeof *all);

    for (int i = 0; i < FINDINGS_MAX; i++)
        findings_add(one, arena, &(Finding){"row", arena_print(arena, "row %d", i), "is wrong"});
    assert_false(one->more);
    findings_join(all, one);
    assert_int_equal(all->count, FINDINGS_MAX);
    assert_string_equal(all->rows[FINDINGS_MAX - 1].which, "row 999");
    assert_false(all->more);
    findings_join(all, one);
    assert_int_equal(all->count, FINDINGS_MAX);
    assert_true(all->more);
    findings_add(one, arena, &(Finding){"row", "row 1000", "is wrong"});
    assert_int_equal(one->count, FINDINGS_MAX);
    assert_true(one->more);
}
