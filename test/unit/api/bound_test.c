/*
 * bound_test.c - the tables of routes and fields say what requests touch, so that keys can be bound to it.
 */
#include "api/bound.h"

#include <string.h>

#include "api/routes.h"
#include "base/reader.h"
#include "test/harness/test.h"

/* A new route has a row like all others: what it touches, or that it is about the whole service. */
TEST(each_route_says_what_it_touches)
{
    for (size_t i = 0; i < routes_table.count; i++) {
        const Route *route = &routes_table.rows[i];
        Touches      by    = (Touches)route->touches;

        if (by == TOUCHES_UNSAID || by >= TOUCHES_COUNT)
            fail_msg("%s says not what it touches: give its row one of OF_... (api/routes.c, api/bound.h)",
                     route->path);
        if ((by == TOUCHES_COMMAND || by == TOUCHES_PROCESS || by == TOUCHES_BATCH || by == TOUCHES_TRANSACTION) &&
            !route->touch_waits)
            fail_msg("%s looks an id up, and does not say that it may wait", route->path);
        if (by == TOUCHES_NOTHING && (strstr(route->path, "{domain}") || strstr(route->path, "{owner}")))
            fail_msg("%s names something and says that it touches nothing", route->path);
    }
}

static bool name_is(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

/* "from" is a step where it is a retry's. */
static bool field_is_named(const Route *route, const char *name)
{
    static const char *const names[] = {"domain", "owner", "to", "from", "reply_to", "batch_id", NULL};

    return name_is(name, names) && !(strcmp(name, "from") == 0 && strstr(route->path, "/processes/"));
}

static void check_table(const Route *route, const FieldTable *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const Field *field = &table->fields[i];

        if (field_is_named(route, field->name) && !field->names)
            fail_msg("%s: field \"%s\" says not what it names (.names)", route->path, field->name);
        if (field->names && field->type != FIELD_TEXT && field->type != FIELD_UUID)
            fail_msg("%s: field \"%s\" names something and is no text", route->path, field->name);
        if ((field->names == NAMES_BATCH || field->names == NAMES_NEW_BATCH) && !route->touch_waits)
            fail_msg("%s: a batch is looked up, and the row does not say that it may wait", route->path);
        if (field->rows)
            check_table(route, field->rows);
    }
}

TEST(each_field_says_which_domain_or_owner_it_names)
{
    for (size_t i = 0; i < routes_table.count; i++) {
        const Route          *route     = &routes_table.rows[i];
        const RouteParameter *parameter = route->parameters;

        if (route->touches == TOUCHES_SERVICE)
            continue;
        if (route->body)
            check_table(route, route->body);
        for (; parameter && parameter->name; parameter++)
            if (field_is_named(route, parameter->name) && !parameter->names)
                fail_msg("%s: parameter \"%s\" says not what it names (.names)", route->path, parameter->name);
    }
}

TEST(a_domain_has_its_processes_and_nothing_of_a_bot)
{
    const char *const patterns[] = {"shop", "t*"};
    const Bound       bound      = {patterns, 2};

    assert_true(bound_has_domain(&bound, "shop") && bound_has_domain(&bound, "process:shop"));
    assert_true(bound_has_domain(&bound, "t") && bound_has_domain(&bound, "process:tea"));
    assert_false(bound_has_domain(&bound, "shop2") || bound_has_domain(&bound, "process:process:shop"));
    assert_false(bound_has_domain(&bound, "telegram:42") || bound_has_domain(&bound, "telegram:42:outbox"));
    assert_false(bound_has_domain(&bound, "") || bound_has_domain(&(Bound){0}, "shop"));
}

TEST(an_owner_is_none_of_the_service)
{
    const char *const patterns[] = {"eu/*", "*"};

    assert_true(bound_has_owner(&(Bound){patterns, 1}, "eu/ann"));
    assert_false(bound_has_owner(&(Bound){patterns, 1}, "eu"));
    assert_true(bound_has_owner(&(Bound){patterns, 2}, "us/bob"));
    assert_false(bound_has_owner(&(Bound){patterns, 2}, "@system"));
}

TEST(a_pattern_is_within_a_bound_if_all_of_its_names_are)
{
    const char *const patterns[] = {"eu/*", "us/bob"};
    const Bound       bound      = {patterns, 2};

    assert_true(bound_has_all(&bound, "eu/*") && bound_has_all(&bound, "eu/a*") && bound_has_all(&bound, "eu/ann"));
    assert_true(bound_has_all(&bound, "us/bob"));
    assert_false(bound_has_all(&bound, "e*") || bound_has_all(&bound, "*") || bound_has_all(&bound, "us/bob*"));
    assert_false(bound_has_all(&bound, "us/*") || bound_has_all(&bound, "") || bound_has_all(&bound, "eu"));
}

TEST(patterns_are_split_and_joined)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Bound                     bound = bound_split(arena, "a,b*,c");

    assert_int_equal(3, bound.count);
    assert_string_equal("b*", bound.patterns[1]);
    assert_string_equal("a,b*,c", bound_join(arena, &bound));
    assert_int_equal(0, bound_split(arena, "").count);
    assert_string_equal("", bound_join(arena, &(Bound){0}));
}
