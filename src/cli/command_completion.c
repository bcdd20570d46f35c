/*
 * command_completion.c - scripts that complete commands and flags in bash, zsh and fish, made from the table of commands.
 *
 * A script holds every word, so a shell that completes starts no process.
 */
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "cli/command.h"
#include "cli/print.h"

static const CommandFlag common[] = {
    {"--json",   NULL,   "print JSON"               },
    {"--config", "FILE", "settings file"            },
    {"--help",   NULL,   "show help on this command"},
    {NULL,       NULL,   NULL                       },
};

static bool group_is_first(size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(cli_commands[j].group, cli_commands[i].group) == 0)
            return false;
    return true;
}

/* The words behind USAGE that are the only ones allowed: "bash|zsh|fish". NULL: it has none. */
static const char *usage_words(const CliCommand *command)
{
    const char *usage = command->usage;

    for (const char *c = usage; *c; c++)
        if (*c != '|' && (*c < 'a' || *c > 'z'))
            return NULL;
    return strchr(usage, '|') ? usage : NULL;
}

static void words_print(Text *text, const char *words)
{
    for (; *words; words++)
        text_append_char(text, *words == '|' ? ' ' : *words);
}

/* What a group is for: its verbs, or what its only command does. */
static const char *group_help(size_t first, Arena *arena)
{
    const char *between = "";
    Text        help;

    if (!cli_commands[first].verb)
        return cli_commands[first].help;
    text_init(&help, arena, TEXT_MAX_LINE);
    for (size_t i = first; i < cli_command_count; i++)
        if (strcmp(cli_commands[i].group, cli_commands[first].group) == 0 && cli_commands[i].verb) {
            text_print(&help, "%s%s", between, cli_commands[i].verb);
            between = ", ";
        }
    return text_string(&help);
}

typedef void FlagPrint(Text *text, const CliCommand *command, const CommandFlag *flag);

static void flags_print(Text *text, const CliCommand *command, FlagPrint *print)
{
    for (const CommandFlag *flag = command->flags; flag && flag->name; flag++)
        print(text, command, flag);
    for (const CommandFlag *flag = common; flag->name; flag++)
        print(text, command, flag);
}

/* Between single quotes, for every one of the shells. */
static void quoted_print(Text *text, const char *plain)
{
    text_append_char(text, '\'');
    for (; *plain; plain++)
        if (*plain == '\'')
            text_append(text, "'\\''");
        else
            text_append_char(text, *plain);
    text_append_char(text, '\'');
}

/* ---- bash ---- */

static void bash_flag(Text *text, const CliCommand *command, const CommandFlag *flag)
{
    (void)command;
    text_print(text, " %s", flag->name);
}

static void verbs_print(Text *text, const char *group)
{
    for (size_t i = 0; i < cli_command_count; i++)
        if (strcmp(cli_commands[i].group, group) == 0 && cli_commands[i].verb)
            text_print(text, " %s", cli_commands[i].verb);
}

static void bash_groups(Text *text)
{
    text_append(text, "        '/') words='");
    for (size_t i = 0; i < cli_command_count; i++)
        if (group_is_first(i))
            text_print(text, " %s", cli_commands[i].group);
    text_append(text, "' ;;\n");
    for (size_t i = 0; i < cli_command_count; i++)
        if (group_is_first(i) && cli_commands[i].verb) {
            text_print(text, "        '%s/') words='", cli_commands[i].group);
            verbs_print(text, cli_commands[i].group);
            text_append(text, "' ;;\n");
        }
}

static void bash_command(Text *text, const CliCommand *command)
{
    const char *words = usage_words(command);

    text_print(text, "        '%s/%s'*) words='", command->group, command->verb ? command->verb : "");
    if (words)
        words_print(text, words);
    text_append(text, "' flags='");
    flags_print(text, command, bash_flag);
    text_append(text, "' ;;\n");
}

/* The first two words that are no flags name the command. */
static void bash_print(Text *text)
{
    text_append(text, "# bash completion for pawl, made by: pawl completion bash\n"
                      "_pawl()\n{\n"
                      "    local current=${COMP_WORDS[COMP_CWORD]} word group='' verb='' words='' flags=''\n"
                      "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
                      "        case $word in\n"
                      "            -*) ;;\n"
                      "            *) if [ -z \"$group\" ]; then group=$word; else verb=$word; break; fi ;;\n"
                      "        esac\n"
                      "    done\n"
                      "    case $group/$verb in\n");
    bash_groups(text);
    for (size_t i = 0; i < cli_command_count; i++)
        bash_command(text, &cli_commands[i]);
    text_append(text, "    esac\n"
                      "    case $current in -*) words=$flags ;; esac\n"
                      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
                      "}\n"
                      "complete -o bashdefault -o default -F _pawl pawl\n");
}

/* ---- zsh ---- */

/* A word of _describe: 'list:list commands, newest first'. */
static void zsh_word(Text *text, const char *word, const char *help)
{
    text_append_char(text, ' ');
    quoted_print(text, word);
    text_append_char(text, ':');
    quoted_print(text, help);
}

static void zsh_flag(Text *text, const CliCommand *command, const CommandFlag *flag)
{
    (void)command;
    zsh_word(text, flag->name, flag->help);
}

static void zsh_groups(Text *text)
{
    text_append(text, "        '/') choices=(");
    for (size_t i = 0; i < cli_command_count; i++)
        if (group_is_first(i))
            zsh_word(text, cli_commands[i].group, group_help(i, text->arena));
    text_append(text, ") ;;\n");
    for (size_t i = 0; i < cli_command_count; i++) {
        if (!group_is_first(i) || !cli_commands[i].verb)
            continue;
        text_print(text, "        '%s/') choices=(", cli_commands[i].group);
        for (size_t j = i; j < cli_command_count; j++)
            if (strcmp(cli_commands[i].group, cli_commands[j].group) == 0)
                zsh_word(text, cli_commands[j].verb, cli_commands[j].help);
        text_append(text, ") ;;\n");
    }
}

static void zsh_command(Text *text, const CliCommand *command)
{
    const char *words = usage_words(command);

    text_print(text, "        '%s/%s'*) choices=(", command->group, command->verb ? command->verb : "");
    if (words)
        words_print(text, words);
    text_append(text, ") flags=(");
    flags_print(text, command, zsh_flag);
    text_append(text, ") ;;\n");
}

static void zsh_print(Text *text)
{
    text_append(text, "#compdef pawl\n"
                      "# zsh completion for pawl, made by: pawl completion zsh\n"
                      "_pawl()\n{\n"
                      "    local word group='' verb=''\n"
                      "    local -a words_before flags\n"
                      "    words_before=(\"${(@)words[2,CURRENT-1]}\")\n"
                      "    for word in $words_before; do\n"
                      "        case $word in\n"
                      "            -*) ;;\n"
                      "            *) if [[ -z $group ]]; then group=$word; else verb=$word; break; fi ;;\n"
                      "        esac\n"
                      "    done\n"
                      "    local current=${words[CURRENT]}\n"
                      "    local -a choices\n"
                      "    case $group/$verb in\n");
    zsh_groups(text);
    for (size_t i = 0; i < cli_command_count; i++)
        zsh_command(text, &cli_commands[i]);
    text_append(text, "    esac\n"
                      "    if [[ $current == -* ]]; then _describe flag flags; return; fi\n"
                      "    if (( $#choices )); then _describe word choices; else _files; fi\n"
                      "}\n"
                      "if [ \"$funcstack[1]\" = _pawl ]; then _pawl \"$@\"; else compdef _pawl pawl; fi\n");
}

/* ---- fish ---- */

static void fish_condition(Text *text, const CliCommand *command)
{
    text_print(text, "complete -c pawl -n '__fish_seen_subcommand_from %s", command->group);
    if (command->verb)
        text_print(text, "; and __fish_seen_subcommand_from %s", command->verb);
    text_append_char(text, '\'');
}

static void fish_flag(Text *text, const CliCommand *command, const CommandFlag *flag)
{
    bool is_short = flag->name[1] != '-';

    fish_condition(text, command);
    text_print(text, " -%s %s%s -d ", is_short ? "s" : "l", flag->name + (is_short ? 1 : 2), flag->value ? " -r" : "");
    quoted_print(text, flag->help);
    text_append_char(text, '\n');
}

static void fish_command(Text *text, size_t i)
{
    const CliCommand *command = &cli_commands[i];
    const char       *words   = usage_words(command);

    if (group_is_first(i)) {
        text_print(text, "complete -c pawl -f -n __fish_use_subcommand -a %s -d ", command->group);
        quoted_print(text, group_help(i, text->arena));
        text_append_char(text, '\n');
    }
    if (command->verb) {
        text_print(text, "complete -c pawl -f -n '__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from",
                   command->group);
        verbs_print(text, command->group);
        text_print(text, "' -a %s -d ", command->verb);
        quoted_print(text, command->help);
        text_append_char(text, '\n');
    }
    if (words) {
        fish_condition(text, command);
        text_append(text, " -f -a '");
        words_print(text, words);
        text_append(text, "'\n");
    }
    flags_print(text, command, fish_flag);
}

static void fish_print(Text *text)
{
    text_append(text, "# fish completion for pawl, made by: pawl completion fish\n");
    for (size_t i = 0; i < cli_command_count; i++)
        fish_command(text, i);
}

ErrorCode command_completion(Call *call, Error *reterr)
{
    static const struct {
        const char *shell;
        void (*print)(Text *text);
    } shells[] = {
        {"bash", bash_print},
        {"zsh",  zsh_print },
        {"fish", fish_print},
    };
    Text text;

    text_init(&text, call->arena, TEXT_MAX_BODY);
    for (size_t i = 0; i < COUNT(shells); i++)
        if (strcmp(shells[i].shell, call->arguments[0]) == 0)
            shells[i].print(&text);
    if (!text.length)
        return fail(reterr, ERR_USAGE, "the shell must be bash, zsh or fish, got \"%.40s\"", call->arguments[0]);
    if (call->json) {
        Writer *writer = print_writer(call->arena);

        writer_object(writer, NULL);
        writer_text(writer, "script", text_string(&text));
        writer_end(writer);
        print_json(writer);
        return OK;
    }
    printf("%s", text_string(&text));
    return OK;
}
