/*
 * markup.c - see markup.h.
 *
 * HTML is read as tokens: a tag, a character reference, or a character. What looks like a tag or a reference and is
 * none is read as characters, so any text can be measured and cut.
 */
#include "telegram/markup.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MAX      32 /* tags inside each other; deeper ones are not opened again in the next part */
#define ELLIPSIS      "\xe2\x80\xa6"
#define PARTS_SIZE    16 /* of the first list of parts */
#define PARTS_FACTOR  2
#define REFERENCE_MAX 12 /* "&#x10ffff;" */

/* ---- units ---- */

static size_t char_size(unsigned char lead)
{
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

static size_t char_units(unsigned char lead)
{
    return lead < 0xf0 ? 1 : 2;
}

size_t telegram_units(const char *text, size_t size)
{
    size_t units = 0;

    for (size_t at = 0; at < size; at += char_size((unsigned char)text[at]))
        units += char_units((unsigned char)text[at]);
    return units;
}

size_t telegram_bytes_at(const char *text, size_t size, size_t from, size_t units)
{
    size_t at = from;

    for (size_t seen = 0; at < size && seen < units; at += char_size((unsigned char)text[at]))
        seen += char_units((unsigned char)text[at]);
    return at < size ? at : size;
}

const char *telegram_topic_url(int64_t chat_id, int64_t topic, Arena *arena)
{
    /* Ids of supergroups are -100 and then the number that addresses have. */
    const int64_t first = INT64_C(-1000000000000);

    if (chat_id >= first)
        return NULL;
    return arena_print(arena, "https://t.me/c/%lld/%lld", (long long)(first - chat_id), (long long)(topic ? topic : 1));
}

void telegram_escape(Text *html, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            text_append(html, "&lt;");
            break;
        case '>':
            text_append(html, "&gt;");
            break;
        case '&':
            text_append(html, "&amp;");
            break;
        default:
            text_append_char(html, *text);
        }
}

/* ---- tokens ---- */

typedef enum { TOKEN_CHARACTER, TOKEN_OPEN, TOKEN_CLOSE } TokenKind;
typedef struct {
    TokenKind   kind;
    const char *at;
    size_t      size, units;
    const char *name; /* of a tag */
    size_t      name_size;
} Token;

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

/* The byte behind a tag's ">"; NULL: it has none. A value in quotes may hold one. */
static const char *tag_end(const char *at)
{
    char quote = '\0';

    for (; *at; at++) {
        if (quote)
            quote = *at == quote ? '\0' : quote;
        else if (*at == '"' || *at == '\'')
            quote = *at;
        else if (*at == '>')
            return at + 1;
    }
    return NULL;
}

static bool token_tag(const char *at, Token *token)
{
    bool        closes = at[1] == '/';
    const char *name = at + 1 + closes, *stop = name;

    while (is_name(*stop))
        stop++;
    const char *end = stop > name ? tag_end(stop) : NULL;

    if (!end)
        return false;
    *token = (Token){.kind      = closes ? TOKEN_CLOSE : TOKEN_OPEN,
                     .at        = at,
                     .size      = (size_t)(end - at),
                     .name      = name,
                     .name_size = (size_t)(stop - name)};
    return true;
}

static bool token_reference(const char *at, Token *token)
{
    static const char *const names[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
    char                    *end;

    for (size_t i = 0; i < COUNT(names); i++)
        if (strncmp(at, names[i], strlen(names[i])) == 0) {
            *token = (Token){.at = at, .size = strlen(names[i]), .units = 1};
            return true;
        }
    if (at[1] != '#')
        return false;
    bool               is_hex = at[2] == 'x' || at[2] == 'X';
    const char        *digits = at + 2 + is_hex;
    unsigned long long code   = strtoull(digits, &end, is_hex ? 16 : 10);

    if (end == digits || *end != ';' || text_hex(*digits) < 0 || end - at >= REFERENCE_MAX)
        return false;
    *token = (Token){.at = at, .size = (size_t)(end - at) + 1, .units = code > 0xffff ? 2 : 1};
    return true;
}

static bool token_next(const char *at, Token *token)
{
    if (!*at)
        return false;
    if ((*at == '<' && token_tag(at, token)) || (*at == '&' && token_reference(at, token)))
        return true;
    size_t size = char_size((unsigned char)*at);

    *token = (Token){.at = at, .size = strnlen(at, size), .units = char_units((unsigned char)*at)};
    return true;
}

size_t telegram_html_units(const char *html)
{
    size_t units = 0;

    for (Token token; token_next(html, &token); html += token.size)
        units += token.units;
    return units;
}

/* ---- cutting ---- */

/* The tags that are open at a point. */
typedef struct {
    Token tags[OPEN_MAX];
    int   count;
} OpenTags;

static void open_tags_read(OpenTags *open, const Token *token)
{
    if (token->kind == TOKEN_OPEN) {
        if (open->count < OPEN_MAX)
            open->tags[open->count++] = *token;
        return;
    }
    const Token *top = open->count ? &open->tags[open->count - 1] : NULL;

    if (top && top->name_size == token->name_size && strncmp(top->name, token->name, token->name_size) == 0)
        open->count--;
}

static void open_tags_write(const OpenTags *open, Text *html)
{
    for (int i = 0; i < open->count; i++)
        text_append_bytes(html, open->tags[i].at, open->tags[i].size);
}

static void open_tags_close(const OpenTags *open, Text *html)
{
    for (int i = open->count; i-- > 0;)
        text_print(html, "</%.*s>", (int)open->tags[i].name_size, open->tags[i].name);
}

/* A point where a text may end. */
typedef struct {
    const char *at; /* NULL: none */
    size_t      units;
    OpenTags    open;
} Cut;

/* Where a part that begins at html ends: at most units_max later, behind whole lines or words if that does not
 * waste half of it. */
static void cut_find(const char *html, const OpenTags *open, size_t units_max, bool by_words, Cut *ret_cut)
{
    Cut   here = {.at = html, .open = *open}, line = {0}, word = {0};
    Token token;

    for (; token_next(here.at, &token); here.at += token.size) {
        if (here.units + token.units > units_max) {
            *ret_cut = !by_words ? here : line.units > units_max / 2 ? line : word.units > units_max / 2 ? word : here;
            return;
        }
        if (token.kind != TOKEN_CHARACTER)
            open_tags_read(&here.open, &token);
        else if (*token.at == '\n')
            line = here;
        else if (*token.at == ' ')
            word = here;
        here.units += token.units;
    }
    *ret_cut = here;
}

static bool shows_something(const char *begin, const char *end)
{
    for (Token token; begin < end && token_next(begin, &token); begin += token.size)
        if (token.kind == TOKEN_CHARACTER && !strchr(" \t\r\n", *token.at))
            return true;
    return false;
}

static const char *part_write(const char *begin, const OpenTags *open, const Cut *cut, const char *more, Arena *arena)
{
    Text text;

    text_init(&text, arena, TEXT_MAX_BODY);
    open_tags_write(open, &text);
    text_append_bytes(&text, begin, (size_t)(cut->at - begin));
    text_append(&text, more);
    open_tags_close(&cut->open, &text);
    return text_string(&text);
}

static void parts_append(const char ***parts, size_t *count, size_t *size, const char *part, Arena *arena)
{
    if (*count + 1 >= *size) {
        const char **longer = arena_array(arena, const char *, *size *PARTS_FACTOR);

        memcpy(longer, *parts, *count * sizeof *longer);
        *parts = longer;
        *size *= PARTS_FACTOR;
    }
    (*parts)[(*count)++] = part;
}

const char *const *telegram_html_split(const char *html, size_t units_max, Arena *arena)
{
    size_t       count = 0, size = PARTS_SIZE;
    const char **parts = arena_array(arena, const char *, size);
    OpenTags     open  = {0};

    while (*html) {
        Cut cut;

        cut_find(html, &open, units_max, /* by_words= */ true, &cut);
        if (shows_something(html, cut.at))
            parts_append(&parts, &count, &size, part_write(html, &open, &cut, "", arena), arena);
        open = cut.open;
        html = cut.at + (*cut.at == '\n' || *cut.at == ' ');
    }
    if (count == 0)
        parts[count++] = "";
    parts[count] = NULL;
    return parts;
}

const char *telegram_html_shorten(const char *html, size_t units_max, Arena *arena)
{
    OpenTags none = {0};
    Cut      cut;

    if (telegram_html_units(html) <= units_max)
        return html;
    cut_find(html, &none, units_max - 1, /* by_words= */ false, &cut);
    return part_write(html, &none, &cut, ELLIPSIS, arena);
}

const char *telegram_shorten(const char *text, size_t units_max, Arena *arena)
{
    size_t size = strlen(text);

    if (telegram_units(text, size) <= units_max)
        return text;
    size_t keep = telegram_bytes_at(text, size, 0, units_max - 1);

    if (telegram_units(text, keep) > units_max - 1) /* the last one was a pair */
        keep -= 4;
    return arena_print(arena, "%.*s" ELLIPSIS, (int)keep, text);
}
