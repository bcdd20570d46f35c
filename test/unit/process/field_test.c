/*
 * field_test.c - what holds for every row of the tables of fields.
 */
#include "process/field.h"

#include <string.h>

#include "test/harness/test.h"

TEST(field_every_kind_is_selected_by_one_row_of_its_name)
{
    for (StepKind kind = 0; kind < STEP_KIND_COUNT; kind++) {
        int count = 0;

        for (size_t i = 0; i < step_table.count; i++) {
            const ProcessField *field = &step_table.fields[i];

            if (!field->selects || field->kinds != 1u << kind)
                continue;
            assert_string_equal(step_kinds[kind].name, field->name);
            count++;
        }
        assert_int_equal(1, count);
        assert_non_null(step_kinds[kind].open);
        assert_true(step_kinds[kind].has_result || !step_kinds[kind].acts);
    }
}

TEST(field_every_row_has_a_rule_and_a_meaning)
{
    for (size_t i = 0; process_tables[i]; i++)
        for (size_t j = 0; j < process_tables[i]->count; j++) {
            const ProcessField *field = &process_tables[i]->fields[j];
            scoped_text Text    rule  = {0};

            text_init(&rule, NULL, TEXT_MAX_LINE);
            field_rule_print(field, &rule);
            assert_true(rule.length > 0);
            assert_non_null(field->help);
            assert_int_equal(field->type == TYPE_OBJECT, field->table != NULL);
            assert_int_equal(process_tables[i] == &step_table, field->kinds != 0);
            /* A compensation is an Action, not a Step. */
            if (field->in_compensate)
                assert_true(field->offset < sizeof(Action));
            for (size_t k = 0; k < j; k++)
                assert_string_not_equal(field->name, process_tables[i]->fields[k].name);
        }
}
