/*
 * field.c - the tables of field.h.
 */
#include "process/field.h"

#include <assert.h>
#include <string.h>

#include "base/setting.h"

#define DOMAIN_LENGTH_MAX 54 /* a domain of the bus may have 63, and that of its processes begins with "process:" */

/* Sets of kinds. */
#define BIT(kind)                                                  (1u << (kind))
#define ALL                                                        (BIT(STEP_KIND_COUNT) - 1)
#define BIT_IF_ACTS(id, name, walk, call, acts, ...)               | ((acts) != ACTS_NOT ? BIT(id) : 0)
#define ACT                                                        (0 STEP_KINDS(BIT_IF_ACTS))
#define BIT_IF_RESULT(id, name, walk, call, acts, has_result, ...) | ((has_result) ? BIT(id) : 0)
#define HAVE_RESULT                                                (0 STEP_KINDS(BIT_IF_RESULT))

static_assert(STEP_KIND_COUNT < 32, "a set of kinds has a bit for each");

static const char *const continue_words[] = {"fail", "continue", NULL};
static const char *const method_words[]   = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", NULL};

/* clang-format off */
static const ProcessField retry_fields[] = {
    {"attempts", TYPE_INTEGER, offsetof(StepRetry, attempts), .min = 1, .max = DEFINITION_ATTEMPTS_MAX,
     .help = "the number of attempts, including the first; default: 5"},
    {"delay", TYPE_DURATION, offsetof(StepRetry, delay_ms), .min = 0, .max = DEFINITION_TIME_MS_MAX,
     .help = "the delay before the second attempt; default: 1s"},
    {"factor", TYPE_REAL, offsetof(StepRetry, factor), .min = 1, .max = 10,
     .help = "the factor by which each further delay grows; default: 2"},
    {"delay_max", TYPE_DURATION, offsetof(StepRetry, delay_ms_max), .min = 0, .max = DEFINITION_TIME_MS_MAX,
     .help = "the longest delay; default: 1m, or delay if that is longer"},
};
static const ProcessTable retry_table = {"retry", retry_fields, COUNT(retry_fields)};

static const ProcessField http_fields[] = {
    {"method", TYPE_METHOD, offsetof(HttpAction, method), .required = true, .words = method_words,
     .help = "the method of the request"},
    {"url", TYPE_URL, offsetof(HttpAction, url), .required = true, .help = "the URL, with templates"},
    {"headers", TYPE_HEADERS, 0, .help = "request headers; the values may have templates"},
    {"body", TYPE_JSON, offsetof(HttpAction, body), .help = "the body, JSON with templates; default: none"},
};
static const ProcessTable http_table = {"http", http_fields, COUNT(http_fields)};

static const ProcessField command_fields[] = {
    {"domain", TYPE_DOMAIN, offsetof(SendAction, domain), .max = 63, .help = "the domain; default: that of the process"},
    {"type", TYPE_TYPE, offsetof(SendAction, type), .required = true, .help = "the type of the command"},
    {"payload", TYPE_JSON, offsetof(SendAction, payload), .help = "the payload, JSON with templates; default: {}"},
};
static const ProcessTable command_table = {"command", command_fields, COUNT(command_fields)};

static const ProcessField wait_fields[] = {
    {"response", TYPE_NAME, offsetof(WaitAction, response), .help = "the name of the responses to wait for"},
    {"any", TYPE_NAMES, offsetof(WaitAction, any), .min = 2, .max = DEFINITION_ANY_MAX,
     .help = "the names of responses of which the first that comes ends the wait; the result is {\"response\": NAME, \"payload\": ...}; instead of response"},
    {"count", TYPE_INTEGER, offsetof(WaitAction, count), .min = 1, .max = DEFINITION_COUNT_MAX,
     .help = "how many responses, with different keys; default: 1"},
    {"until", TYPE_CONDITION, offsetof(WaitAction, until), .help = "wait until this condition holds; instead of response and any"},
};
static const ProcessTable wait_table = {"wait", wait_fields, COUNT(wait_fields)};

static const ProcessField sleep_fields[] = {
    {"for", TYPE_TEXT, offsetof(SleepAction, for_text), .help = "a duration such as {{state.days}}d, with templates"},
    {"until", TYPE_TEXT, offsetof(SleepAction, until),
     .help = "a time such as 2030-01-31T08:00:00Z, with templates; instead of for"},
};
const ProcessTable sleep_table = {"sleep", sleep_fields, COUNT(sleep_fields)};

static const ProcessField child_fields[] = {
    {"type", TYPE_TYPE, offsetof(SendAction, type), .required = true, .help = "the type of the child"},
    {"domain", TYPE_DOMAIN, offsetof(SendAction, domain), .max = DOMAIN_LENGTH_MAX,
     .help = "the domain; default: that of the process"},
    {"state", TYPE_PATCH, offsetof(SendAction, payload), .help = "the initial state of the child, with templates; default: {}"},
};
static const ProcessTable child_table = {"process", child_fields, COUNT(child_fields)};

static const ProcessField continue_fields[] = {
    {"state", TYPE_PATCH, offsetof(ContinueAction, state),
     .help = "the state that the process begins its next life with, with templates; default: the present state"},
};
static const ProcessTable continue_table = {"continue", continue_fields, COUNT(continue_fields)};

static const ProcessField step_fields[] = {
    {"name", TYPE_NAME, offsetof(Step, name), ALL, .required = true, .help = "the name of the step, unique in the file"},
    {"exec", TYPE_LINE, offsetof(Step, action.exec), BIT(STEP_EXEC), .selects = true, .in_compensate = true,
     .help = "runs a command line, with input on its standard input; its standard output is the result"},
    {"sql", TYPE_FUNCTION, offsetof(Step, action.sql), BIT(STEP_SQL), .selects = true, .in_compensate = true,
     .help = "calls schema.function(input jsonb, key uuid) returns jsonb; its effects and the record commit together"},
    {"http", TYPE_OBJECT, offsetof(Step, action.http), BIT(STEP_HTTP), .selects = true, .in_compensate = true,
     .table = &http_table, .help = "sends a request with an idempotency key"},
    {"command", TYPE_OBJECT, offsetof(Step, action.send), BIT(STEP_COMMAND), .selects = true, .in_compensate = true,
     .table = &command_table, .help = "sends a command and waits for its outcome"},
    {"wallet", TYPE_OPERATION, offsetof(Step, action.wallet), BIT(STEP_WALLET), .selects = true, .in_compensate = true,
     .help = "posts an operation to the ledger"},
    {"wait", TYPE_OBJECT, offsetof(Step, action.wait), BIT(STEP_WAIT), .selects = true, .table = &wait_table,
     .help = "waits for responses, or until a condition holds"},
    {"sleep", TYPE_SLEEP, offsetof(Step, action.sleep), BIT(STEP_SLEEP), .selects = true,
     .min = 1, .max = DEFINITION_TIME_MS_MAX, .help = "waits for a time, or until a time"},
    {"set", TYPE_PATCH, offsetof(Step, action.set), BIT(STEP_SET), .selects = true,
     .help = "merges an object with templates into the state"},
    {"when", TYPE_CONDITION, offsetof(Step, action.when.condition), BIT(STEP_WHEN), .selects = true,
     .help = "evaluates a condition and continues at then or else"},
    {"fail", TYPE_TEXT, offsetof(Step, action.fail), BIT(STEP_FAIL), .selects = true,
     .help = "refuses: the process is compensated or ends as FAILED; the value is the reason, with templates"},
    {"continue", TYPE_OBJECT, offsetof(Step, action.next), BIT(STEP_CONTINUE), .selects = true, .table = &continue_table,
     .help = "begins the process anew: from its first step, under its id, with a fresh history; in the process's own list of steps"},
    {"parallel", TYPE_BRANCHES, offsetof(Step, action.parallel), BIT(STEP_PARALLEL), .selects = true,
     .help = "runs lists of steps, each with a name, at the same time and waits for all of them"},
    {"each", TYPE_LIST, offsetof(Step, action.each.items), BIT(STEP_EACH), .selects = true,
     .help = "runs the steps once per item of an array"},
    {"repeat", TYPE_STEPS, offsetof(Step, action.repeat.list), BIT(STEP_REPEAT), .selects = true,
     .help = "runs the steps again and again, in rounds, until a condition holds after a round"},
    {"process", TYPE_OBJECT, offsetof(Step, action.send), BIT(STEP_PROCESS), .selects = true, .table = &child_table,
     .help = "starts a child process and waits for its end"},
    {"input", TYPE_JSON, offsetof(Step, action.input), BIT(STEP_EXEC) | BIT(STEP_SQL), .in_compensate = true,
     .help = "the argument of the program or function, JSON with templates; default: null"},
    {"then", TYPE_TARGET, offsetof(Step, action.when.then_name), BIT(STEP_WHEN), .required = true,
     .help = "where to continue if the condition holds; \"end\" is the end of the list"},
    {"else", TYPE_TARGET, offsetof(Step, action.when.else_name), BIT(STEP_WHEN),
     .help = "where to continue otherwise; default: the next step"},
    {"concurrency", TYPE_INTEGER, offsetof(Step, action.each.concurrency), BIT(STEP_EACH),
     .min = 1, .max = DEFINITION_CONCURRENCY_MAX, .help = "how many items are handled at the same time; default: 1"},
    {"until", TYPE_CONDITION, offsetof(Step, action.repeat.until), BIT(STEP_REPEAT), .required = true, .is_after_round = true,
     .help = "evaluated after each round, and may name the steps of the round; if it holds, that was the last one"},
    {"times", TYPE_INTEGER, offsetof(Step, action.repeat.times), BIT(STEP_REPEAT), .min = 1, .max = DEFINITION_ROUNDS_MAX,
     .help = "the most rounds; default: 100"},
    {"on_exhausted", TYPE_CONTINUE, offsetof(Step, action.repeat.continues), BIT(STEP_REPEAT), .words = continue_words,
     .help = "what happens when the condition does not hold after the last round; default: fail"},
    {"steps", TYPE_STEPS, offsetof(Step, action.each.list), BIT(STEP_EACH), .required = true, .help = "the steps for each item"},
    {"timeout", TYPE_DURATION, offsetof(Step, action.timeout_ms), ACT | BIT(STEP_WAIT), .in_compensate = true,
     .min = 1, .max = DEFINITION_TIME_MS_MAX, .help = "the longest time of one attempt, or of the wait; default: 10m in exec, 30s in sql, http and wallet, none in the others"},
    {"on_timeout", TYPE_CONTINUE, offsetof(Step, continues_on_timeout), BIT(STEP_WAIT), .words = continue_words,
     .help = "what happens when the wait times out; default: fail"},
    {"retry", TYPE_OBJECT, offsetof(Step, action.retry), ACT, .in_compensate = true,
     .table = &retry_table, .help = "how often, and after which delays, a failed step is tried again"},
    {"save", TYPE_PATCH, offsetof(Step, save), HAVE_RESULT, .has_result = true,
     .help = "an object with templates that is merged into the state together with the record of the step"},
    {"compensate", TYPE_COMPENSATE, offsetof(Step, compensate), ACT, .has_result = true,
     .help = "the action that undoes the step if the process is compensated"},
};
const ProcessTable step_table = {"step", step_fields, COUNT(step_fields)};

static const ProcessField definition_fields[] = {
    {"type", TYPE_TYPE, offsetof(Definition, type), .required = true, .help = "the type of process that this file defines"},
    {"domain", TYPE_DOMAIN, offsetof(Definition, domain), .required = true, .max = DOMAIN_LENGTH_MAX,
     .help = "the domain of its processes"},
    {"deadline", TYPE_DURATION, offsetof(Definition, deadline_ms), .min = 1, .max = DEFINITION_TIME_MS_MAX,
     .help = "the longest time from the start to the end of a process; default: none"},
    {"on_deadline", TYPE_WORD, offsetof(Definition, on_deadline), .words = failure_actions,
     .help = "what happens when the deadline passes; default: as on_failure"},
    {"on_failure", TYPE_WORD, offsetof(Definition, on_failure), .words = failure_actions,
     .help = "what happens when a step fails for good; default: compensate if any step has a compensation, else troubleshoot"},
    {"steps", TYPE_STEPS, offsetof(Definition, list), .required = true, .help = "run one after another"},
    {"result", TYPE_JSON, offsetof(Definition, result), .help = "the result of the process, JSON with templates; default: the state"},
};
const ProcessTable definition_table = {"definition", definition_fields, COUNT(definition_fields)};
/* clang-format on */

const ProcessTable *const process_tables[] = {&definition_table, &step_table, &retry_table, &http_table,
                                              &command_table,    &wait_table, &sleep_table, &child_table,
                                              &continue_table,   NULL};

#define X(id, name, walk, call, ...) {name, __VA_ARGS__},
const StepKindRow step_kinds[STEP_KIND_COUNT] = {STEP_KINDS(X)};
#undef X

bool field_is_common(const ProcessField *field)
{
    return field->kinds == ALL;
}

void kinds_print(KindSet kinds, Text *text)
{
    const char *separator = "";

    for (StepKind kind = 0; kind < STEP_KIND_COUNT; kind++)
        if (kinds & BIT(kind)) {
            text_print(text, "%s%s", separator, step_kinds[kind].name);
            separator = ", ";
        }
}

static void words_print(const char *const *words, Text *text)
{
    text_append(text, "one of ");
    for (size_t i = 0; words[i]; i++)
        text_print(text, "%s\"%s\"", i ? ", " : "", words[i]);
}

static void duration_rule_print(const ProcessField *field, Text *text)
{
    text_append(text, "a duration from ");
    setting_duration_print(field->min, text);
    text_append(text, " to ");
    setting_duration_print(field->max, text);
    text_append(text, " such as 250ms, 10s, 5m, 1h or 2d");
}

/* Those that need no more than words. */
static const char *const rules[] = {
    [TYPE_NAME]       = "1 to 50 letters, digits, \"_\" or \"-\", beginning with a letter or digit",
    [TYPE_TYPE]       = "1 to 100 letters, digits, \"_\", \".\", \":\" or \"-\", beginning with a letter or digit",
    [TYPE_LINE]       = "text of 1 to 4096 bytes",
    [TYPE_FUNCTION]   = "the name of a function: schema.function",
    [TYPE_TARGET]     = "the name of a later step of the same list, or \"end\"",
    [TYPE_CONDITION]  = "a condition in a string",
    [TYPE_JSON]       = "a value",
    [TYPE_PATCH]      = "an object",
    [TYPE_TEXT]       = "text",
    [TYPE_URL]        = "a URL that begins with http://, https:// or a template",
    [TYPE_LIST]       = "one template in a string, such as \"{{state.list}}\"",
    [TYPE_HEADERS]    = "an object of texts",
    [TYPE_OPERATION]  = "an object with kind and its fields",
    [TYPE_OBJECT]     = "an object",
    [TYPE_COMPENSATE] = "an object with one of exec, sql, http, command and wallet",
    [TYPE_STEPS]      = "an array of one or more steps",
    [TYPE_BRANCHES]   = "an object of 1 to 64 arrays of steps",
};

void field_rule_print(const ProcessField *field, Text *text)
{
    switch (field->type) {
    case TYPE_METHOD:
    case TYPE_WORD:
    case TYPE_CONTINUE:
        words_print(field->words, text);
        break;
    case TYPE_NAMES:
        text_print(text, "an array of %lld to %lld different names", (long long)field->min, (long long)field->max);
        break;
    case TYPE_DOMAIN:
        text_print(text, "1 to %lld letters, digits, \"_\", \".\", \":\" or \"-\", beginning with a letter or digit",
                   (long long)field->max);
        break;
    case TYPE_INTEGER:
        text_print(text, "an integer from %lld to %lld", (long long)field->min, (long long)field->max);
        break;
    case TYPE_REAL:
        text_print(text, "a number from %lld to %lld", (long long)field->min, (long long)field->max);
        break;
    case TYPE_DURATION:
        duration_rule_print(field, text);
        break;
    case TYPE_SLEEP:
        duration_rule_print(field, text);
        text_append(text, ", {\"for\": DURATION} or {\"until\": TIME}");
        break;
    default:
        text_append(text, rules[field->type]);
    }
}
