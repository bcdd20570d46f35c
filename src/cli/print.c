/*
 * print.c - see print.h.
 */
#include "cli/print.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/visible.h"

#define WRAP_MIN     24 /* columns; text in fewer is harder to read than text that the terminal wraps */
#define LAST_MIN     40 /* columns that a longer last column of a cut table needs, or else it stands below its row */
#define BELOW_INDENT 4

static bool cut; /* main's thread prints */

void table_init(Table *table, Arena *arena, const char *const *head)
{
    *table = (Table){.arena = arena};
    for (; *head; head++) {
        table->columns++;
        table_cell(table, *head);
    }
    assert(table->columns > 0 && table->columns <= TABLE_COLUMNS_MAX);
}

void table_cell(Table *table, const char *text)
{
    char *copy = arena_text(table->arena, text ? text : "-");

    for (char *p = copy; *p; p++)
        if (*p == '\n' || *p == '\t')
            *p = ' ';
    if (table->count == table->capacity) {
        int          capacity = table->capacity ? table->capacity * 2 : 64;
        const char **cells    = arena_array(table->arena, const char *, capacity);

        if (table->count)
            memcpy(cells, table->cells, sizeof *cells * (size_t)table->count);
        table->cells    = cells;
        table->capacity = capacity;
    }
    table->cells[table->count++] = visible_text(table->arena, copy);
}

void table_cell_i64(Table *table, int64_t value)
{
    table_cell(table, arena_print(table->arena, "%" PRId64, value));
}

void table_cell_time(Table *table, int64_t micros)
{
    char text[WALL_TEXT_SIZE];

    if (!micros) {
        table_cell(table, NULL);
        return;
    }
    wall_text((Wall){micros}, text);
    table_cell(table, arena_print(table->arena, "%.10s %.8sZ", text, text + 11));
}

/* Characters, not bytes: a continuation byte has no width on the screen. */
static int width(const char *text)
{
    int count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

/* Columns of the terminal that standard output is; 0: it is none, or does not say. */
static int terminal_width(void)
{
    struct winsize size = {0};

    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* The bytes of the first characters. */
static size_t characters_bytes(const char *text, int count)
{
    size_t size = 0;

    while (text[size] && (count > 0 || ((unsigned char)text[size] & 0xC0) == 0x80)) {
        count -= ((unsigned char)text[size] & 0xC0) != 0x80;
        size++;
    }
    return size;
}

static void print_cut(const char *text, int columns)
{
    if (columns == 0 || width(text) <= columns)
        printf("%s\n", text);
    else
        printf("%.*s\u2026\n", (int)characters_bytes(text, columns - 1), text);
}

/* Where a line of so many columns ends: behind its last space, unless the word there is longer than the next line. */
static size_t line_bytes(const char *text, int columns, int next_columns)
{
    size_t size = characters_bytes(text, columns), line = strcspn(text, "\n"), at = size;

    if (line <= size)
        return line;
    if (text[size] == ' ')
        return size;
    while (at > 0 && text[at - 1] != ' ')
        at--;
    return at > 0 && strcspn(text + at, " \n") <= characters_bytes(text + at, next_columns) ? at : size;
}

void print_wrapped(const char *text, int indent)
{
    int columns = terminal_width();

    if (columns < indent + WRAP_MIN) {
        printf("%s\n", text);
        return;
    }
    for (int before = 0;; before = indent) {
        size_t size = line_bytes(text, columns - before, columns - indent);

        printf("%*s%.*s\n", before, "", (int)size, text);
        text += size;
        text += strspn(text, " ");
        text += *text == '\n';
        if (!*text)
            return;
    }
}

void print_line(const char *name, const char *value)
{
    scoped_text Text text = {0};

    if (!value)
        return;
    text_init(&text, NULL, TEXT_MAX_BODY * 2); /* more than any answer of the server has */
    text_print(&text, "%-*s ", PRINT_NAME_WIDTH, name);
    text_append(&text, value);
    print_wrapped(text_string(&text), PRINT_NAME_WIDTH + 1);
}

static void cell_append(Text *line, const Table *table, int index, const int *widths)
{
    int         column = index % table->columns;
    bool        right  = table->cells[column][0] == '>';
    const char *text   = table->cells[index] + (index < table->columns && right);
    int         space  = widths[column] - width(text);
    bool        last   = column == table->columns - 1;

    if (right)
        text_print(line, "%*s", space, "");
    text_append(line, text);
    if (!last)
        text_print(line, "%*s", (right ? 0 : space) + 2, "");
}

static void row_print(const Table *table, const char *row, int indent, int columns)
{
    if (table->is_cut)
        print_cut(row, columns);
    else
        print_wrapped(row, indent);
}

/* The row without its last cell, and that cell on a line of its own unless it is empty or the head's. */
static void row_print_below(Text *line, const Table *table, int last, int columns)
{
    const char *cell = table->cells[last];

    while (line->length && line->bytes[line->length - 1] == ' ')
        line->bytes[--line->length] = '\0';
    row_print(table, text_string(line), BELOW_INDENT, columns);
    if (last < table->columns || strcmp(cell, "-") == 0)
        return;
    text_clear(line);
    text_print(line, "%*s", BELOW_INDENT, "");
    text_append(line, cell);
    row_print(table, text_string(line), BELOW_INDENT, columns);
}

/* How many columns before the last one stand in a row. One that is cut short, a time say, tells nothing: it is left out. */
static int columns_shown(const Table *table, const int *widths, int indent, int columns)
{
    int count = table->columns - 1;

    while (table->is_cut && columns > 0 && count > 1 && indent - 2 > columns)
        indent -= widths[--count] + 2;
    return count;
}

static void rows_print(const Table *table, const int *widths)
{
    scoped_text Text line    = {0};
    int              columns = terminal_width(), indent = 0, last = widths[table->columns - 1];
    int              least = table->is_cut ? LAST_MIN : WRAP_MIN, shown;
    bool             is_below;

    for (int i = 0; i < table->columns - 1; i++)
        indent += widths[i] + 2;
    is_below = columns > 0 && indent + (last < least ? last : least) > columns;
    shown    = columns_shown(table, widths, indent, columns);
    text_init(&line, NULL, TEXT_MAX_BODY);
    for (int i = 0; i < table->count; i++) {
        int  column  = i % table->columns;
        bool is_last = column == table->columns - 1;

        if (is_last ? !is_below : column < shown)
            cell_append(&line, table, i, widths);
        if (!is_last)
            continue;
        if (is_below)
            row_print_below(&line, table, i, columns);
        else
            row_print(table, text_string(&line), indent, columns);
        text_clear(&line);
    }
}

void table_print(const Table *table, const char *none)
{
    int widths[TABLE_COLUMNS_MAX] = {0};

    if (table->count == table->columns) {
        fprintf(stderr, "%s\n", none);
        return;
    }
    for (int i = 0; i < table->count; i++) {
        int wide = width(table->cells[i]) - (i < table->columns && table->cells[i][0] == '>');

        if (wide > widths[i % table->columns])
            widths[i % table->columns] = wide;
    }
    rows_print(table, widths);
}

Writer *print_writer(Arena *arena)
{
    Text   *text   = arena_array(arena, Text, 1);
    Writer *writer = arena_array(arena, Writer, 1);

    text_init(text, arena, TEXT_MAX_BODY);
    writer_open(writer, text);
    return writer;
}

void object_print(RowWrite *write, Arena *arena, const void *row)
{
    Writer *writer = print_writer(arena);

    write(writer, row);
    print_json(writer);
}

/* ---- lists ---- */

/* A cell at its offset in the row; only the one that its type names is read. */
static int64_t cell_number(CellType type, const void *cell)
{
    return type == CELL_I32 ? *(const int32_t *)cell : *(const int64_t *)cell;
}

static void cell_show(Table *table, CellType type, const void *cell)
{
    switch (type) {
    case CELL_TEXT:
        table_cell(table, *(const char *const *)cell);
        break;
    case CELL_I32:
    case CELL_I64:
        table_cell_i64(table, cell_number(type, cell));
        break;
    case CELL_TIME:
        table_cell_time(table, cell_number(type, cell));
        break;
    }
}

static void cell_write(Writer *writer, const char *key, CellType type, const void *cell)
{
    switch (type) {
    case CELL_TEXT:
        writer_text(writer, key, *(const char *const *)cell);
        break;
    case CELL_I32:
    case CELL_I64:
        writer_i64(writer, key, cell_number(type, cell));
        break;
    case CELL_TIME:
        writer_time(writer, key, cell_number(type, cell));
        break;
    }
}

static void row_write(const ListShape *shape, Writer *writer, const char *row)
{
    if (shape->write) {
        shape->write(writer, row);
        return;
    }
    writer_object(writer, NULL);
    for (int i = 0; i < shape->count; i++)
        cell_write(writer, shape->columns[i].key, shape->columns[i].type, row + shape->columns[i].offset);
    writer_end(writer);
}

void list_begin(List *list, const ListShape *shape, Arena *arena, bool json)
{
    const char *head[TABLE_COLUMNS_MAX + 1] = {NULL};

    assert(shape->count <= TABLE_COLUMNS_MAX);
    *list = (List){.shape = shape, .json = json};
    if (json)
        return;
    for (int i = 0; i < shape->count; i++)
        head[i] = shape->columns[i].head;
    table_init(&list->table, arena, head);
    list->table.is_cut = true;
}

static void row_json(List *list, const char *row)
{
    scoped_text Text text = {0};
    Writer           writer;

    text_init(&text, NULL, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    row_write(list->shape, &writer, row);
    cut |= text_is_full(&text);
    printf("%s%s", list->count ? "," : "[", text_string(&text)); /* nothing is printed if the first page fails */
}

static void row_cells(List *list, const char *row)
{
    for (int i = 0; i < list->shape->count; i++)
        cell_show(&list->table, list->shape->columns[i].type, row + list->shape->columns[i].offset);
}

void list_rows(List *list, const void *rows, int count)
{
    for (int i = 0; i < count; i++, list->count++)
        (list->json ? row_json : row_cells)(list, (const char *)rows + (size_t)i * list->shape->row_size);
}

void list_end(List *list)
{
    if (list->json)
        printf(list->count ? "]\n" : "[]\n");
    else
        table_print(&list->table, list->shape->none);
}

void list_print(const ListShape *shape, Arena *arena, bool json, const void *rows, int count)
{
    List list;

    list_begin(&list, shape, arena, json);
    list_rows(&list, rows, count);
    list_end(&list);
}

void print_json(const Writer *writer)
{
    if (text_is_full(writer->text))
        cut = true;
    else
        printf("%s\n", text_string(writer->text));
}

bool print_failed(void)
{
    return cut;
}

/* ---- findings ---- */

void findings_print(const Call *call, const Findings *findings)
{
    static const char *const head[] = {"row", "problem", NULL};
    Table                    table;

    table_init(&table, call->arena, head);
    for (int i = 0; i < findings->count; i++) {
        table_cell(&table, findings->rows[i].which);
        table_cell(&table, findings->rows[i].sentence);
    }
    table_print(&table, "");
    if (findings->more)
        printf("and more\n");
}

ErrorCode findings_verdict(const Findings *findings, Error *reterr)
{
    if (findings->count == 0)
        return OK;
    return fail(reterr, ERR_CONFLICT, "%d%s row%s inconsistent", findings->count, findings->more ? " or more" : "",
                findings->count == 1 && !findings->more ? " is" : "s are");
}

/* ---- moments ---- */

const char *moment_text(Arena *arena, int64_t micros)
{
    char text[WALL_TEXT_SIZE];

    if (!micros)
        return NULL;
    wall_text_us((Wall){micros}, text);
    return arena_text(arena, text);
}

const char *moment_short(Arena *arena, const char *iso)
{
    return iso ? arena_print(arena, "%.10s %.12sZ", iso, iso + strlen("2026-11-15T")) : NULL;
}
