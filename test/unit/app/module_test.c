/*
 * module_test.c - the tables of all modules together.
 */
#include "base/module.h"

#include <string.h>

#include "app/app.h"
#include "test/harness/test.h"

/* Every row of every table, in one list. */
typedef struct {
    const MetricTable *table;
    const MetricRow   *row;
} Listed;

static size_t rows_list(Listed *list, size_t max)
{
    const MetricTable *table;
    size_t             count = 0;

    for (size_t t = 0; (table = module_metrics(t)); t++)
        for (size_t i = 0; i < table->count; i++) {
            assert_true(count < max);
            list[count++] = (Listed){table, &table->metrics[i].row};
        }
    return count;
}

TEST(metrics_of_one_name_stand_together_and_differ_in_label)
{
    Listed list[256];
    size_t count = rows_list(list, COUNT(list));

    assert_true(count > 60);
    for (size_t a = 0; a < count; a++) {
        assert_int_equal(strncmp(list[a].row->name, "pawl_", 5), 0);
        for (size_t b = 0; b < a; b++) {
            if (strcmp(list[a].row->name, list[b].row->name) != 0)
                continue;
            assert_ptr_equal(list[a].table, list[b].table);
            assert_string_equal(list[a - 1].row->name, list[a].row->name);
            assert_string_not_equal(list[a].row->label, list[b].row->label);
            assert_string_equal(list[a].row->help, list[b].row->help);
            assert_int_equal(list[a].row->kind, list[b].row->kind);
        }
    }
}

TEST(modules_of_the_program_have_joined)
{
    static const char *const names[] = {"base", "bus", "client", "http", "ops", "pg", "wallet"};

    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(module_at(i)->name, names[i]);
    assert_null(module_at(COUNT(names)));
}
