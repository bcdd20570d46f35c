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

/* Without the punctuation behind a username: "@ann," is "@ann". */
static size_t name_length(const char *word, size_t length)
{
    while (word[0] == '@' && length > 1 && strchr(",;.:!", word[length - 1]))
        length--;
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
        if (!user && strspn(text + at, ",;") == length) { /* "Ann, Bob" */
            at += length;
            continue;
        }
        if (ask->count == ASK_WORDS_MAX) {
            ask->count++;
            return;
        }
        ask->words[ask->count++] =
            (AskWord){arena_bytes(arena, text + at, user ? length : name_length(text + at, length)), user,
                      text[at] == '@' && !user};
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

    if (length == 0 || text[length])
        return -1;
    text += strspn(text, "0");
    return strlen(text) <= 6 ? (int)strtol(text, NULL, 10) : ASK_SCORE_MAX + 1;
}

/* The length of a colon, hyphen, dash or minus; 0: it is none of them. */
static size_t separator_length(const char *text)
{
    static const char *const separators[] = {":", "-", "\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2212"};

    for (size_t i = 0; i < COUNT(separators); i++)
        if (strncmp(text, separators[i], strlen(separators[i])) == 0)
            return strlen(separators[i]);
    return 0;
}

/* The numbers and separators of a word such as "3:1", "3:" or ":1". 0: it is another word, also "-1". */
static int score_parts(const AskWord *word, Arena *arena, AskWord parts[3])
{
    const char *text  = word->text;
    int         count = 0;

    if (word->user || word->is_name || (separator_length(text) && text[0] != ':' && text[separator_length(text)]))
        return 0;
    while (*text) {
        size_t digits = strspn(text, "0123456789"), length = digits ? digits : separator_length(text);

        if (length == 0 || count == 3)
            return 0;
        parts[count++] = (AskWord){.text = arena_bytes(arena, text, length)};
        text += length;
    }
    return count;
}

void ask_split_scores(Ask *ask, Arena *arena)
{
    AskWord all[3 * ASK_WORDS_MAX];
    int     count = 0, kept = 0;

    if (ask->count > ASK_WORDS_MAX)
        return;
    for (int i = 0; i < ask->count; i++) {
        int parts = score_parts(&ask->words[i], arena, &all[count]);

        if (parts == 0)
            all[count] = ask->words[i];
        count += parts ? parts : 1;
    }
    for (int i = 0; i < count && kept <= ASK_WORDS_MAX; i++) {
        bool is_between = i > 0 && i + 1 < count && ask_score(all[i - 1].text) >= 0 && ask_score(all[i + 1].text) >= 0;

        if (is_between && separator_length(all[i].text) && !all[i].user)
            continue;
        if (kept < ASK_WORDS_MAX)
            ask->words[kept] = all[i];
        kept++;
    }
    ask->count = kept;
}
