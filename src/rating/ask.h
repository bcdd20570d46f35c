/*
 * ask.h - parses a message: the command, the bot that it names, its words. Pure.
 *
 * A command is the first word of a text and is matched as a whole: "/undo" and "/undo@botname" are commands,
 * "/undone" and a text that contains "undo" are not. A linked name may contain spaces and is one word.
 * Threads: any. Ownership: results live in the arena; texts are borrowed.
 */
#ifndef RATING_ASK_H
#define RATING_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct {
    int64_t     id; /* outside id */
    bool        is_bot;
    const char *name;
    const char *username; /* without "@"; NULL: none */
} GameUser;

/* A name in the text that is linked to a user: a range of bytes. */
typedef struct {
    size_t          offset, length;
    const GameUser *user;
    bool            is_stranger; /* not in the group */
} GameLink;

typedef enum {
    ASK_NONE, /* no command, or one for another bot */
    ASK_START,
    ASK_HELP,
    ASK_MATCH,
    ASK_RANKING,
    ASK_ME,
    ASK_STATS,
    ASK_HISTORY,
    ASK_H2H,
    ASK_CHART,
    ASK_UNDO,
    ASK_SETTINGS,
    ASK_EXPORT,
    ASK_COUNT
} AskKind;

typedef struct {
    const char     *text;    /* "@ann", "3", "Ann Lee" */
    const GameUser *user;    /* of a linked name; NULL otherwise */
    bool            is_name; /* begins with "@" */
} AskWord;

#define ASK_WORDS_MAX 16

typedef struct {
    AskKind kind;
    bool    wants_help;           /* "/match help" */
    AskWord words[ASK_WORDS_MAX]; /* behind the command */
    int     count;                /* more than ASK_WORDS_MAX: ASK_WORDS_MAX + 1 */
} Ask;

/* bot_name NULL: every "@..." behind a command is taken for this bot's. */
void ask_parse(const char *text, const GameLink *links, int links_count, const char *bot_name, Arena *arena,
               Ask *ret_ask);
/* A score: digits only; ASK_SCORE_MAX + 1 for every larger number; -1: the text is not a number. */
#define ASK_SCORE_MAX 999999
int ask_score(const char *text);
/* Replaces "3:1", "3-1", "3–1" and "3 : 1" by two words. */
void ask_split_scores(Ask *ask, Arena *arena);

/* clang-format off */
/* command, kind, what command menus say in English and in Russian */
#define ASK_COMMANDS(X) \
    X("match",   ASK_MATCH,   "register a match: /match @ann @bob 3 1", "записать матч: /match @ann @bob 3 1") \
    X("ranking", ASK_RANKING, "the leaderboard", "таблица рейтинга") \
    X("me",      ASK_ME,      "my rating and last matches", "мой рейтинг и последние матчи") \
    X("stats",   ASK_STATS,   "one player in numbers: /stats @ann", "игрок в цифрах: /stats @ann") \
    X("history", ASK_HISTORY, "last matches, of all or of one player", "последние матчи, все или одного игрока") \
    X("h2h",     ASK_H2H,     "two players against each other", "личные встречи двух игроков") \
    X("chart",   ASK_CHART,   "ratings over time", "график рейтинга") \
    X("undo",    ASK_UNDO,    "undo the last match", "отменить последний матч")                                        \
    X("export",  ASK_EXPORT,  "matches and ratings as CSV", "матчи и рейтинги в CSV") \
    X("help",    ASK_HELP,    "what I can do", "что я умею")
#define ASK_COMMANDS_OF_ADMINS(X) \
    X("settings", ASK_SETTINGS, "settings of this group", "настройки группы")
/* clang-format on */

typedef struct {
    const char *command; /* without "/"; NULL ends the table */
    AskKind     kind;
    const char *description[2]; /* by Language; NULL: in no menu */
} AskCommand;
extern const AskCommand ask_commands[];

#endif
