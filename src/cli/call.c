/*
 * call.c - from argv to a command, its arguments and its flags.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/moment.h"
#include "base/reader.h"
#include "base/text.h"
#include "base/uuid.h"
#include "bus/send.h"
#include "cli/command.h"

#define WORDS_MAX 128

typedef struct {
    int    argc;
    char **argv;
    int    next;
    Call  *call;
    int    setting_count;
    bool   help;
    bool   plain; /* after "--" there are no flags */
} Parser;

const char *call_flag(const Call *call, const char *name)
{
    for (int i = 0; i < call->flag_count; i++)
        if (strcmp(call->flags[i].name, name) == 0)
            return call->flags[i].value;
    return NULL;
}

ErrorCode call_one_or_all(const Call *call, const char *noun, bool *ret_all, Error *reterr)
{
    static const char *const filters[] = {"--type",           "--status", "--step",      "--older",
                                          "--text",           "--since",  "--until",     "--batch",
                                          "--correlation-id", "--key",    "--order-key", "--dry-run"};

    *ret_all = call_flag(call, "--all") != NULL;
    if (!call->count && !*ret_all)
        return fail(reterr, ERR_USAGE, "ID is missing: name one %s, or all that match a filter with --all", noun);
    if (call->count && *ret_all)
        return fail(reterr, ERR_USAGE, "give one ID or --all, not both");
    for (size_t i = 0; call->count && i < COUNT(filters); i++)
        if (call_flag(call, filters[i]))
            return fail(reterr, ERR_USAGE, "nothing was done: %s goes with --all, not with one ID", filters[i]);
    return OK;
}

ErrorCode call_number(const char *what, const char *text, int64_t min, int64_t max, int64_t fallback,
                      int64_t *ret_value, Error *reterr)
{
    char *end;

    if (!text) {
        *ret_value = fallback;
        return OK;
    }
    errno      = 0;
    *ret_value = strtoll(text, &end, 10);
    if (errno || end == text || *end || *ret_value < min || *ret_value > max)
        return fail(reterr, ERR_USAGE, "%s must be an integer from %lld to %lld, got \"%.60s\"", what, (long long)min,
                    (long long)max, text);
    return OK;
}

ErrorCode call_limit(const Call *call, int max, int *ret_limit, Error *reterr)
{
    int64_t limit;

    TRY(call_number("--limit", call_flag(call, "--limit"), 1, max, 100, &limit, reterr));
    *ret_limit = (int)limit;
    return OK;
}

ErrorCode call_duration(const Call *call, const char *flag, int64_t fallback_ms, int64_t *ret_ms, Error *reterr)
{
    const char *text = call_flag(call, flag);

    Error why;

    *ret_ms = fallback_ms;
    if (!text || setting_duration(text, ret_ms, &why) == OK)
        return OK;
    return fail(reterr, ERR_USAGE, "%s %s", flag, why.text);
}

ErrorCode call_moment(const Call *call, const char *flag, int64_t *ret_micros, Error *reterr)
{
    const char *text   = call_flag(call, flag);
    int64_t     now_us = clock_wall().us, ago_ms;

    *ret_micros = 0;
    if (!text || (moment_parse(text, MOMENT_LENIENT, ret_micros) && *ret_micros > 0))
        return OK;
    if (setting_duration(text, &ago_ms, NULL) != OK || ago_ms >= now_us / 1000)
        return fail(
            reterr, ERR_USAGE,
            "%s must be a day or moment such as 2026-11-15 or 2026-11-15T10:30:00Z, or how long ago, such as 15m "
            "or 2d, got \"%.60s\"",
            flag, text);
    *ret_micros = now_us - ago_ms * 1000;
    return OK;
}

ErrorCode call_uuid(const Call *call, const char *flag, const char **ret_text, Error *reterr)
{
    const char *given = call_flag(call, flag);
    char       *text  = arena_array(call->arena, char, UUID_TEXT_SIZE);

    if (given && !uuid_parse(given, text))
        return fail(reterr, ERR_USAGE, "%s must be a UUID, got \"%.60s\"", flag, given);
    *ret_text = given ? text : NULL;
    return OK;
}

ErrorCode call_id(const Call *call, const char **ret_id, Error *reterr)
{
    char *id = arena_array(call->arena, char, UUID_TEXT_SIZE);

    if (!uuid_parse(call->arguments[0], id))
        return fail(reterr, ERR_USAGE, "ID must be a UUID, got \"%.60s\"", call->arguments[0]);
    *ret_id = id;
    return OK;
}

ErrorCode call_json(const Call *call, const char *flag, const char **ret_json, Error *reterr)
{
    const char *given = call_flag(call, flag);

    if (given && reader_check(given, strlen(given), reterr) != OK) {
        error_prefix(reterr, "%s", flag);
        return ERR_USAGE;
    }
    *ret_json = given;
    return OK;
}

/* ---- names ---- */

static const Setting *setting_find(Arena *arena, const char *flag)
{
    for (size_t i = 0; i < settings_table.count; i++)
        if (strcmp(setting_flag(arena, &settings_table.rows[i]), flag) == 0)
            return &settings_table.rows[i];
    return NULL;
}

static const CommandFlag *flag_find(const CliCommand *command, const char *name)
{
    for (const CommandFlag *flag = command ? command->flags : NULL; flag && flag->name; flag++)
        if (strcmp(flag->name, name) == 0)
            return flag;
    return NULL;
}

static ErrorCode unknown(const char *kind, const char *word, const char *const *words, size_t count, const char *group,
                         Error *reterr)
{
    const char *near = text_nearest(word, words, count);

    if (near)
        return fail(reterr, ERR_USAGE, "unknown %s \"%s\", did you mean \"%s\"?", kind, word, near);
    return fail(reterr, ERR_USAGE, "unknown %s \"%s\": see pawl help%s%s", kind, word, group ? " " : "",
                group ? group : "");
}

static ErrorCode unknown_flag(Parser *parser, const CliCommand *command, const char *name, Error *reterr)
{
    const char *words[WORDS_MAX] = {"--json", "--config", "--help"};
    size_t      count            = 3;

    for (const CommandFlag *flag = command ? command->flags : NULL; flag && flag->name; flag++)
        words[count++] = flag->name;
    assert(settings_table.rows);
    for (size_t i = 0; i < settings_table.count && count < WORDS_MAX; i++)
        words[count++] = setting_flag(parser->call->arena, &settings_table.rows[i]);
    return unknown("flag", name, words, count, command ? command->group : NULL, reterr);
}

/* The words that are valid here: groups, or the verbs of one group. */
static ErrorCode unknown_word(const char *group, const char *word, Error *reterr)
{
    const char *words[WORDS_MAX];
    size_t      count = 0;

    for (size_t i = 0; i < cli_command_count && count < WORDS_MAX; i++)
        if (!group)
            words[count++] = cli_commands[i].group;
        else if (strcmp(cli_commands[i].group, group) == 0 && cli_commands[i].verb)
            words[count++] = cli_commands[i].verb;
    return unknown("command", word, words, count, group, reterr);
}

/* ---- flags ---- */

/* --name=value or --name value. */
static ErrorCode flag_value(Parser *parser, const char *name, const char *given, const char **ret_value, Error *reterr)
{
    if (!given && parser->next < parser->argc)
        given = parser->argv[parser->next++];
    if (!given)
        return fail(reterr, ERR_USAGE, "flag \"%s\" needs a value", name);
    *ret_value = given;
    return OK;
}

/* --wait, --wait 5s, --wait=5s: the next word is its value if it is a duration. "": none. */
static const char *flag_duration(Parser *parser, const char *given)
{
    int64_t ms;

    if (given)
        return given;
    if (parser->next < parser->argc && setting_duration(parser->argv[parser->next], &ms, NULL) == OK)
        return parser->argv[parser->next++];
    return "";
}

static ErrorCode flag_setting(Parser *parser, const Setting *setting, const char *value, Error *reterr)
{
    SettingFlag *flags = (SettingFlag *)(uintptr_t)parser->call->given.flags;

    if (parser->setting_count == WORDS_MAX - 1)
        return fail(reterr, ERR_USAGE, "more than %d settings given as flags", WORDS_MAX - 1);
    flags[parser->setting_count++] = (SettingFlag){setting->name, value};
    return OK;
}

static ErrorCode flag_own(Parser *parser, const CommandFlag *flag, const char *given, Error *reterr)
{
    Call       *call  = parser->call;
    const char *value = "";

    if (flag->value && flag->value[0] == '[')
        value = flag_duration(parser, given);
    else if (flag->value)
        TRY(flag_value(parser, flag->name, given, &value, reterr));
    else if (given)
        return fail(reterr, ERR_USAGE, "flag \"%s\" takes no value", flag->name);
    if (call_flag(call, flag->name) || call->flag_count == COMMAND_FLAGS_MAX)
        return fail(reterr, ERR_USAGE, "flag \"%s\" is given twice", flag->name);
    call->flags[call->flag_count].name    = flag->name;
    call->flags[call->flag_count++].value = value;
    return OK;
}

/* -500 is a number, and "-" is standard input. */
static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] && !isdigit((unsigned char)word[1]);
}

/* -j4 is -j 4. */
static const CommandFlag *flag_find_short(Arena *arena, const CliCommand *command, const char *word)
{
    const CommandFlag *flag = word[1] != '-' && word[2] ? flag_find(command, arena_bytes(arena, word, 2)) : NULL;

    return flag && flag->value ? flag : NULL;
}

/* command NULL: it is not known yet, and the flag is one that all of them take. */
static ErrorCode flag_parse(Parser *parser, const CliCommand *command, const char *word, Error *reterr)
{
    Call              *call    = parser->call;
    const char        *equal   = strchr(word, '=');
    const char        *name    = equal ? arena_bytes(call->arena, word, (size_t)(equal - word)) : word;
    const char        *given   = equal ? equal + 1 : NULL, *value;
    const CommandFlag *flag    = flag_find(command, name);
    const Setting     *setting = setting_find(call->arena, name);

    if (flag && !setting) /* a command may list settings as its flags, for its help */
        return flag_own(parser, flag, given, reterr);
    flag = flag_find_short(call->arena, command, word);
    if (flag)
        return flag_own(parser, flag, word + 2, reterr);
    if (strcmp(name, "--json") == 0 && !given) {
        call->json = true;
        return OK;
    }
    if ((strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) && !given) {
        parser->help = true;
        return OK;
    }
    if (strcmp(name, "--config") == 0)
        return flag_value(parser, name, given, &call->given.file, reterr);
    if (!setting)
        return unknown_flag(parser, command, name, reterr);
    TRY(flag_value(parser, name, given, &value, reterr));
    return flag_setting(parser, setting, value, reterr);
}

/* ---- the command ---- */

static const CliCommand *command_find(const char *group, const char *verb)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        const CliCommand *command = &cli_commands[i];

        if (strcmp(command->group, group) != 0)
            continue;
        if (verb ? command->verb && strcmp(command->verb, verb) == 0 : !command->verb)
            return command;
    }
    return NULL;
}

static bool group_exists(const char *group, bool with_verbs)
{
    for (size_t i = 0; i < cli_command_count; i++)
        if (strcmp(cli_commands[i].group, group) == 0 && (cli_commands[i].verb || !with_verbs))
            return true;
    return false;
}

/* The next word that is no flag, NULL at the end. */
static ErrorCode word_next(Parser *parser, const char **ret_word, Error *reterr)
{
    while (parser->next < parser->argc && is_flag(parser->argv[parser->next]))
        TRY(flag_parse(parser, NULL, parser->argv[parser->next++], reterr));
    *ret_word = parser->next < parser->argc ? parser->argv[parser->next] : NULL;
    return OK;
}

/* The group and its verb. *ret_command NULL: a group of verbs by itself, which is the first argument then, or nothing. */
static ErrorCode command_parse(Parser *parser, const CliCommand **ret_command, Error *reterr)
{
    Call       *call = parser->call;
    const char *group, *verb = NULL;

    TRY(word_next(parser, &group, reterr));
    if (!group)
        return OK;
    if (!group_exists(group, false))
        return unknown_word(NULL, group, reterr);
    parser->next++;
    if (group_exists(group, true))
        TRY(word_next(parser, &verb, reterr));
    *ret_command = command_find(group, verb);
    if (verb && !*ret_command)
        return unknown_word(group, verb, reterr);
    if (verb)
        parser->next++;
    if (!*ret_command)
        call->arguments[call->count++] = group;
    return OK;
}

/* The first argument of the usage line that is missing: words are separated by single spaces. */
static ErrorCode argument_missing(const CliCommand *command, int given, Error *reterr)
{
    const char *word = command->usage;

    for (int i = 0; i < given; i++)
        word += strcspn(word, " ") + 1;
    return fail(reterr, ERR_USAGE, "%.*s is missing: pawl %s%s%s %s", (int)strcspn(word, " "), word, command->group,
                command->verb ? " " : "", command->verb ? command->verb : "", command->usage);
}

static ErrorCode arguments_parse(Parser *parser, const CliCommand *command, Error *reterr)
{
    Call *call = parser->call;

    while (parser->next < parser->argc) {
        const char *word = parser->argv[parser->next++];

        if (!parser->plain && strcmp(word, "--") == 0) {
            parser->plain = true;
            continue;
        }
        if (!parser->plain && is_flag(word)) {
            TRY(flag_parse(parser, command, word, reterr));
            continue;
        }
        if (call->count == command->most)
            return fail(reterr, ERR_USAGE, "\"%s\" is one argument too many: pawl %s%s%s %s", word, command->group,
                        command->verb ? " " : "", command->verb ? command->verb : "", command->usage);
        call->arguments[call->count++] = word;
    }
    if (call->count < command->least && !parser->help)
        return argument_missing(command, call->count, reterr);
    return OK;
}

/* Help on a command, instead of the command. */
static void help_call(Call *call, const CliCommand *command)
{
    call->count        = command->verb ? 2 : 1;
    call->arguments[0] = command->group;
    call->arguments[1] = command->verb;
}

ErrorCode call_parse(int argc, char **argv, Call *call, const CliCommand **ret_command, Error *reterr)
{
    Parser            parser  = {.argc = argc, .argv = argv, .next = 1, .call = call};
    const CliCommand *command = NULL;

    call->given.flags = arena_array(call->arena, SettingFlag, WORDS_MAX);
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        *ret_command = command_find("version", NULL);
        return OK;
    }
    TRY(command_parse(&parser, &command, reterr));
    if (command) {
        call->command = command;
        call->verb    = command->verb;
        TRY(arguments_parse(&parser, command, reterr));
    }
    if (command && parser.help)
        help_call(call, command);
    *ret_command = command && !parser.help ? command : command_find("help", NULL);
    return OK;
}

ErrorCode call_open(Call *call, AppReach reach, Error *reterr)
{
    const CliCommand *command = call->command;

    assert(!call->app); /* once */
    TRY(app_open(&call->given, APP_SETTINGS, &call->app, reterr));
    call->is_remote = call->app->settings.url && command->place == PLACE_ANY;
    if (call->is_remote)
        return OK;
    if (call->app->settings.url && command->place == PLACE_DATABASE)
        return fail(reterr, ERR_USAGE, "pawl %s%s%s does not speak HTTP: it needs the database, so set PAWL_DATABASE_URL and unset PAWL_URL",
                    command->group, command->verb ? " " : "", command->verb ? command->verb : "");
    TRY(app_reach(call->app, reach, reterr));
    call->pool = call->app->pool;
    return OK;
}

/* Standard input as a whole, for "-". */
static ErrorCode input_read(Arena *arena, const char **ret_text, Error *reterr)
{
    Text text;
    char bytes[65536];

    text_init(&text, arena, SEND_PAYLOAD_MAX);
    for (size_t size; (size = fread(bytes, 1, sizeof bytes, stdin)) > 0;)
        text_append_bytes(&text, bytes, size);
    if (ferror(stdin))
        return fail(reterr, ERR_DENIED, "cannot read standard input: %s", strerror(errno));
    if (text_is_full(&text))
        return fail(reterr, ERR_LIMIT, "payload is larger than %zu bytes", SEND_PAYLOAD_MAX);
    if (strlen(text_string(&text)) != text.length)
        return fail(reterr, ERR_INVALID, "payload holds a NUL byte");
    *ret_text = text_string(&text);
    return OK;
}

ErrorCode call_payload(Call *call, int index, const char **ret_text, Error *reterr)
{
    *ret_text = call->count > index ? call->arguments[index] : NULL;
    if (!*ret_text || strcmp(*ret_text, "-") != 0)
        return OK;
    call->reads_input = true;
    return input_read(call->arena, ret_text, reterr);
}
