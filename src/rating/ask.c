/*
 * ask.c - see ask.h.
 */
#include "rating/ask.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/attr.h"

/* clang-format off */
#define X(command, kind, en, ru) {command, kind, {en, ru}},
const AskCommand ask_commands[] = {
    ASK_COMMANDS(X)
    ASK_COMMANDS_OF_ADMINS(X)
    {"rank",  ASK_RANKING, {NULL, NULL}},
    {"top",   ASK_RANKING, {NULL, NULL}},
    {"start", ASK_START,   {NULL, NULL}},
    {NULL,    ASK_NONE,    {NULL, NULL}},
};
#undef X
/* clang-format on */

static AskKind command_find(const char *word, size_t length)
{
    for (const AskCommand *row = ask_commands; row->command; row++)
        if (strlen(row->command) == length && strncasecmp(row->command, word, length) == 0)
            return row->kind;
    return ASK_NONE;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The length of the word that begins here: a linked name as a whole, else up to the next space. */
static size_t word_length(const char *text, size_t at, const GameLink *links, int count, const GameUser **ret_user)
{
    size_t length = 0;

    *ret_user = NULL;
    for (int i = 0; i < count; i++)
        if (links[i].offset == at && links[i].length > 0 && links[i].length <= strlen(text + at)) {
            *ret_user = links[i].user;
            return links[i].length;
        }
    while (text[at + length] && !is_space(text[at + length]))
        length++;
    return length;
}

static void words_take(const char *text, size_t at, const GameLink *links, int count, Arena *arena, Ask *ask)
{
    while (text[at]) {
        const GameUser *user;
        size_t          length;

        if (is_space(text[at])) {
            at++;
            continue;
        }
        length = word_length(text, at, links, count, &user);
        if (ask->count == ASK_WORDS_MAX) {
            ask->count++;
            return;
        }
        ask->words[ask->count++] = (AskWord){arena_bytes(arena, text + at, length), user, text[at] == '@' && !user};
        at += length;
    }
}

void ask_parse(const char *text, const GameLink *links, int links_count, const char *bot_name, Arena *arena,
               Ask *ret_ask)
{
    size_t at = 1, length;

    *ret_ask = (Ask){0};
    if (!text || text[0] != '/')
        return;
    length        = strcspn(text + 1, "@ \t\r\n");
    ret_ask->kind = command_find(text + 1, length);
    at += length;
    if (text[at] == '@') {
        const char *name = text + at + 1;

        length = strcspn(name, " \t\r\n");
        if (bot_name && (strlen(bot_name) != length || strncasecmp(bot_name, name, length) != 0))
            ret_ask->kind = ASK_NONE;
        at += 1 + length;
    }
    if (ret_ask->kind == ASK_NONE)
        return;
    words_take(text, at, links, links_count, arena, ret_ask);
    ret_ask->wants_help = ret_ask->count == 1 &&
                          (strcasecmp(ret_ask->words[0].text, "help") == 0 || strcmp(ret_ask->words[0].text, "?") == 0);
}

int ask_score(const char *text)
{
    size_t length = strspn(text, "0123456789");

    return length > 0 && length <= 6 && text[length] == '\0' ? (int)strtol(text, NULL, 10) : -1;
}

void ask_split_scores(Ask *ask, Arena *arena)
{
    for (int i = 0; i < ask->count && i < ASK_WORDS_MAX && ask->count < ASK_WORDS_MAX; i++) {
        const char *text  = ask->words[i].text;
        size_t      first = strspn(text, "0123456789");

        if (first == 0 || (text[first] != ':' && text[first] != '-') || ask->words[i].user)
            continue;
        if (ask_score(text + first + 1) < 0)
            continue;
        memmove(&ask->words[i + 2], &ask->words[i + 1], sizeof ask->words[0] * (size_t)(ask->count - i - 1));
        ask->words[i + 1] = (AskWord){.text = text + first + 1};
        ask->words[i]     = (AskWord){.text = arena_bytes(arena, text, first)};
        ask->count++;
    }
}
