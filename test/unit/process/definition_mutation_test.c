/*
 * definition_mutation_test.c - good files with something wrong in them.
 *
 * Each is accepted or refused with a location and a reason. What is accepted is the same when it is parsed again, and its templates and
 * conditions can be used. Files lie in memory of exactly their size, so that AddressSanitizer sees the first byte too far. The numbers
 * come from a seed, so a failure names the file that caused it.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/scan.h"
#include "process/diagram.h"
#include "test/harness/test.h"
#include "test/unit/process/lookup.h"

#define ROUNDS     500 /* of each kind of mutation */
#define VALUES_MAX 2000
#define FILE_MAX   65536

/* ---- the good files ---- */

static const char every_kind[] =
    "{\"type\": \"all\", \"domain\": \"shop\", \"deadline\": \"2h\", \"on_deadline\": \"fail\", \"on_failure\": "
    "\"compensate\", \"steps\": [\n"
    " {\"name\": \"reserve\", \"exec\": \"./reserve --now\", \"input\": {\"order\": \"{{state.order}}\", \"n\": [1.50, "
    "null, \"\\u00fc\"]},\n"
    "  \"retry\": {\"attempts\": 5, \"delay\": \"1s\", \"factor\": 2, \"delay_max\": \"1m\"}, \"timeout\": \"30s\",\n"
    "  \"save\": {\"reservation\": \"{{result.id}}\"}, \"compensate\": {\"exec\": \"./release\", \"input\": {\"id\": "
    "\"{{result.id}}\"}}},\n"
    " {\"name\": \"query\", \"sql\": \"shop.reserve\", \"input\": \"{{steps.reserve.id?}}\"},\n"
    " {\"name\": \"call\", \"http\": {\"method\": \"POST\", \"url\": \"https://h/x/{{state.id}}\", \"headers\": "
    "{\"x\": \"y{{process.id}}\"}, \"body\": {}}},\n"
    " {\"name\": \"bill\", \"command\": {\"domain\": \"money\", \"type\": \"charge\", \"payload\": {\"a\": \"{{ "
    "state.total }}\"}}},\n"
    " {\"name\": \"hold\", \"wallet\": {\"kind\": \"hold\", \"owner\": \"{{state.user}}\", \"amount\": "
    "\"{{state.total}}\", \"expires_in_s\": 60}},\n"
    " {\"name\": \"paid\", \"wait\": {\"response\": \"payment\", \"count\": 2}, \"timeout\": \"1h\", \"on_timeout\": "
    "\"continue\"},\n"
    " {\"name\": \"enough\", \"wait\": {\"until\": \"state.votes >= 3 or not (state.a == \\\"b\\\\n\\\")\"}, "
    "\"timeout\": \"1d\"},\n"
    " {\"name\": \"rest\", \"sleep\": \"10m\"}, {\"name\": \"night\", \"sleep\": {\"until\": \"{{state.at}}\"}},\n"
    " {\"name\": \"note\", \"set\": {\"a\": \"{{steps.reserve.id}} of {{\\\"{{\\\"}}\"}},\n"
    " {\"name\": \"check\", \"when\": \"state.total > 100 and not state.vip\", \"then\": \"both\", \"else\": "
    "\"mails\"},\n"
    " {\"name\": \"both\", \"parallel\": {\"stock\": [{\"name\": \"x1\", \"exec\": \"x\"}], \"money\": [{\"name\": "
    "\"x2\", \"when\": \"true\", \"then\": \"end\"}]}},\n"
    " {\"name\": \"mails\", \"each\": \"{{state.list}}\", \"concurrency\": 4, \"steps\": [{\"name\": \"send\", "
    "\"exec\": \"x\", \"input\": [\"{{item.to}}\", \"{{index}}\"]}]},\n"
    " {\"name\": \"poll\", \"repeat\": [{\"name\": \"ask\", \"exec\": \"x\", \"input\": \"{{index}}\"}], \"until\": "
    "\"steps.ask.done == true or index > 3\", \"times\": 9, \"on_exhausted\": \"continue\"},\n"
    " {\"name\": \"refund\", \"process\": {\"type\": \"refund\", \"domain\": \"shop\", \"state\": {\"list\": "
    "\"{{steps.mails}}\"}}}\n"
    "], \"result\": {\"shipped\": \"{{steps.query.id}}\"}}\n";

static const char small[] =
    "{\"type\":\"t\",\"domain\":\"d\",\"steps\":[{\"name\":\"w\",\"when\":\"state.a<1\",\"then\":\"end\"},"
    "{\"name\":\"s\",\"set\":{\"{\":\"}{{state.\\\"x y\\\".0?}}\"}}]}";

static const char *example(void)
{
    static char bytes[FILE_MAX];

    if (!bytes[0]) {
        FILE *file = fopen(PAWL_EXAMPLES "/order-saga/order.json", "re");

        if (!file || fread(bytes, 1, sizeof bytes - 1, file) == 0)
            fail_msg("cannot read the example");
        (void)fclose(file);
    }
    return bytes;
}

/* ---- chance ---- */

static uint64_t chance_state;

/* splitmix64 */
static uint64_t chance(uint64_t below)
{
    uint64_t z = chance_state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

/* ---- mutations ---- */

typedef struct {
    const char *bytes;
    size_t      size;
} Slice;

static void splice(Text *file, size_t at, size_t cut, Slice insert)
{
    scoped_text Text whole = {0};

    text_init(&whole, NULL, FILE_MAX * 4);
    text_append_bytes(&whole, text_string(file), at);
    text_append_bytes(&whole, insert.bytes, insert.size);
    text_append_bytes(&whole, text_string(file) + at + cut, file->length - at - cut);
    text_clear(file);
    text_append_bytes(file, whole.bytes, whole.length);
}

static void bytes_mutate(Text *file)
{
    static const char strange[] = "\"{}[]:,\\.0-9eE+? \n\t\x01\x7f\x80\xc3\xff"
                                  "aé";
    size_t            at        = (size_t)chance(file->length - 1);
    char              pair[2];

    switch (chance(5)) {
    case 0: /* drop */
        splice(file, at, 1, (Slice){"", 0});
        break;
    case 1: /* duplicate */
        splice(file, at, 0, (Slice){text_string(file) + at, 1});
        break;
    case 2: /* swap */
        pair[0] = text_string(file)[at + 1];
        pair[1] = text_string(file)[at];
        splice(file, at, 2, (Slice){pair, 2});
        break;
    case 3: /* replace; a NUL as well */
        splice(file, at, 1, (Slice){strange + chance(sizeof strange), 1});
        break;
    case 4: /* cut the rest off */
        splice(file, at, file->length - at, (Slice){"", 0});
        break;
    }
}

/* Every value and member of a file. */
typedef struct {
    Slice values[VALUES_MAX], members[VALUES_MAX];
    int   value_count, member_count;
} Parts;

static void parts_find(const char *value, Parts *parts)
{
    const char *at = value + 1;

    assert_true(parts->value_count < VALUES_MAX && parts->member_count < VALUES_MAX);
    parts->values[parts->value_count++] = (Slice){value, (size_t)(scan_value_end(value) - value)};
    if (*value != '{' && *value != '[')
        return;
    while (scan_next(&at)) {
        const char *begin = at;

        if (*value == '{')
            at = scan_member_value(at);
        parts_find(at, parts);
        at = scan_value_end(at);
        if (*value == '{')
            parts->members[parts->member_count++] = (Slice){begin, (size_t)(at - begin)};
    }
}

static const char *const replacements[] = {
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e999",
    "99999999999999999999",
    "\"\"",
    "\"x\"",
    "\"end\"",
    "\"reserve\"",
    "\"1s\"",
    "\"{{\"",
    "\"{{state.a}}\"",
    "\"{{steps.reserve}}\"",
    "\"{{item}}\"",
    "\"{{result}}\"",
    "\"state.a\"",
    "[]",
    "{}",
    "[[]]",
    "{\"exec\":\"x\"}",
    "[{\"name\":\"n\",\"exec\":\"x\"}]",
    "{\"\":\"\"}",
    "\"\\ud83d\\ude00\"",
    "\"GET\"",
    "\"http://h\"",
};
static const char *const names[] = {"name", "exec",  "sql",  "wait",  "sleep",  "when",  "then", "else",
                                    "each", "steps", "save", "input", "repeat", "until", "x",    ""};

static void value_replace(const Parts *parts, const char *base, Text *file)
{
    Slice       value       = parts->values[chance((uint64_t)parts->value_count)];
    const char *replacement = replacements[chance(COUNT(replacements))];

    splice(file, (size_t)(value.bytes - base), value.size, (Slice){replacement, strlen(replacement)});
}

/* A value takes the place of another one. */
static void value_copy(const Parts *parts, const char *base, Text *file)
{
    Slice to = parts->values[chance((uint64_t)parts->value_count)];

    splice(file, (size_t)(to.bytes - base), to.size, parts->values[chance((uint64_t)parts->value_count)]);
}

static void member_drop(const Parts *parts, const char *base, Text *file)
{
    Slice  member = parts->members[chance((uint64_t)parts->member_count)];
    size_t at = (size_t)(member.bytes - base), size = member.size;

    /* With the comma behind it, or before it, so that it stays JSON. */
    const char *behind = scan_space(member.bytes + member.size);
    if (*behind == ',')
        size = (size_t)(behind + 1 - member.bytes);
    else
        while (at > 0 && base[at - 1] != '{' && base[at] != ',') {
            at--;
            size++;
        }
    splice(file, at, size, (Slice){"", 0});
}

/* Under its own name, which is refused, or under another. */
static void member_double(const Parts *parts, const char *base, Text *file)
{
    Slice            member = parts->members[chance((uint64_t)parts->member_count)];
    scoped_text Text twin   = {0};

    text_init(&twin, NULL, FILE_MAX);
    if (chance(4) == 0)
        text_append_bytes(&twin, member.bytes, member.size);
    else {
        const char *value = scan_member_value(member.bytes);

        text_print(&twin, "\"%s\":", names[chance(COUNT(names))]);
        text_append_bytes(&twin, value, (size_t)(member.bytes + member.size - value));
    }
    text_append(&twin, ",");
    splice(file, (size_t)(member.bytes - base), 0, (Slice){twin.bytes, twin.length});
}

static void member_rename(const Parts *parts, const char *base, Text *file)
{
    Slice            member = parts->members[chance((uint64_t)parts->member_count)];
    scoped_text Text name   = {0};

    text_init(&name, NULL, FILE_MAX);
    text_print(&name, "\"%s\"", names[chance(COUNT(names))]);
    splice(file, (size_t)(member.bytes - base), (size_t)(scan_value_end(member.bytes) - member.bytes),
           (Slice){name.bytes, name.length});
}

static void parts_mutate(const char *base, Text *file)
{
    static void (*const mutations[])(const Parts *parts, const char *base, Text *file) = {
        value_replace, value_copy, member_drop, member_double, member_rename,
    };
    Parts parts = {0};

    parts_find(scan_space(base), &parts);
    mutations[chance(COUNT(mutations))](&parts, base, file);
}

/* ---- judging ---- */

static void assert_located(const Error *error, const Text *file)
{
    int  line, column, used = 0, lines = 1;
    bool is_utf8 = text_is_utf8(error->text, strlen(error->text));

    for (size_t i = 0; i < file->length; i++)
        lines += text_string(file)[i] == '\n';
    if (sscanf(error->text, "f.json:%d:%d: %n", &line, &column, &used) != 2 || used == 0 || !error->text[used] ||
        line < 1 || line > lines || column < 1 || !is_utf8)
        fail_msg("no location or reason: \"%s\" for %s", error->text, text_string(file));
}

static void template_use(const Template *template, bool is_text)
{
    scoped_documents Documents documents = {.state  = "{\"a\":1}",
                                            .item   = "\"\\u00fc\\\"\"",
                                            .index  = "0",
                                            .result = "{\"id\":\"r\"}"};
    scoped_text Text           text      = {0};
    Error                      error;

    if (!template)
        return;
    text_init(&text, NULL, FILE_MAX);
    if (template_render(template, documents_lookup, &documents, &text, &error) == OK && !is_text)
        assert_ok(reader_check(text_string(&text), text.length, &error));
}

static void condition_use(const Condition *condition)
{
    scoped_documents Documents documents = {.state = "{\"a\":1}"};
    bool                       is_true;
    Error                      error;

    if (condition && condition_evaluate(condition, documents_lookup, &documents, &is_true, &error) != OK)
        assert_contains(error.text, "cannot compare");
}

static void action_use(const Action *action)
{
    template_use(action->input, false);
    switch (action->kind) {
    case STEP_HTTP:
        template_use(action->http.url, true);
        template_use(action->http.body, false);
        break;
    case STEP_COMMAND:
    case STEP_PROCESS:
        template_use(action->send.payload, false);
        break;
    case STEP_WALLET:
        template_use(action->wallet.operation, false);
        break;
    case STEP_WAIT:
        condition_use(action->wait.until);
        break;
    case STEP_WHEN:
        condition_use(action->when.condition);
        break;
    case STEP_SET:
        template_use(action->set, false);
        break;
    case STEP_EACH:
        template_use(action->each.items, false);
        break;
    case STEP_REPEAT:
        condition_use(action->repeat.until);
        break;
    default:
        break;
    }
}

static void definition_use(const Definition *definition)
{
    for (int i = 0; i < definition->count; i++) {
        const Step *step = definition->steps[i];

        assert_int_equal(i, step->number);
        assert_ptr_equal(step, definition_find(definition, step->name));
        assert_ptr_equal(step, &step->list->steps[step->position]);
        action_use(&step->action);
        template_use(step->save, false);
        if (step->compensate)
            action_use(step->compensate);
    }
    template_use(definition->result, false);
}

/* Parse a copy of exactly the file's size. The description of what was accepted, or NULL. */
static const char *parse(const Text *file, Arena *arena, Error *error)
{
    char             *copy = malloc(file->length ? file->length : 1);
    const Definition *definition;
    Text              text;

    if (!copy)
        abort();
    memcpy(copy, text_string(file), file->length);
    ErrorCode code = definition_parse("f.json", copy, file->length, arena, &definition, error);
    free(copy);
    if (code != OK)
        return NULL;
    definition_use(definition);
    text_init(&text, arena, TEXT_MAX_BODY);
    diagram_print(definition, &text);
    return text_string(&text);
}

static bool judge(const Text *file)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Error                     error = {0}, again = {0};
    const char               *first = parse(file, arena, &error), *second = parse(file, arena, &again);

    assert_int_equal(first != NULL, second != NULL);
    if (first) {
        assert_string_equal(first, second);
        return true;
    }
    assert_string_equal(error.text, again.text);
    assert_located(&error, file);
    return false;
}

static int rounds(const char *base, bool by_parts, uint64_t seed)
{
    scoped_text Text file     = {0};
    int              accepted = 0;

    chance_state = seed;
    text_init(&file, NULL, FILE_MAX * 4);
    for (int i = 0; i < ROUNDS; i++) {
        text_clear(&file);
        text_append(&file, base);
        if (by_parts)
            parts_mutate(base, &file);
        for (uint64_t n = by_parts ? 0 : 1 + chance(3); n > 0 && file.length > 2; n--)
            bytes_mutate(&file);
        accepted += judge(&file);
    }
    return accepted;
}

TEST(mutation_starts_from_good_files)
{
    const char *const files[] = {every_kind, small, example()};

    for (size_t i = 0; i < COUNT(files); i++) {
        scoped_text Text file = {0};

        text_init(&file, NULL, FILE_MAX);
        text_append(&file, files[i]);
        assert_true(judge(&file));
    }
}

TEST(mutation_of_bytes_is_accepted_or_refused_with_a_location)
{
    int accepted = rounds(every_kind, false, 1) + rounds(small, false, 2) + rounds(example(), false, 3);

    /* Both happen often enough to mean something. */
    assert_in_range(accepted, 3 * ROUNDS / 20, 3 * ROUNDS * 3 / 4);
}

TEST(mutation_of_fields_is_accepted_or_refused_with_a_location)
{
    int accepted = rounds(every_kind, true, 4) + rounds(small, true, 5) + rounds(example(), true, 6);

    assert_in_range(accepted, 3 * ROUNDS / 20, 3 * ROUNDS * 3 / 4);
}
