/*
 * print.c - see print.h.
 */
#include "cli/print.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"

void table_init(Table *table, Arena *arena, const char *const *head)
{
    *table = (Table){.arena = arena};
    for (; *head; head++) {
        table->columns++;
        table_cell(table, *head);
    }
    assert(table->columns <= TABLE_COLUMNS_MAX);
}

void table_cell(Table *table, const char *text)
{
    char *copy = arena_text(table->arena, text ? text : "-");

    for (char *p = copy; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
    if (table->count == table->room) {
        int          room  = table->room ? table->room * 2 : 64;
        const char **cells = arena_array(table->arena, const char *, room);

        if (table->count)
            memcpy(cells, table->cells, sizeof *cells * (size_t)table->count);
        table->cells = cells;
        table->room  = room;
    }
    table->cells[table->count++] = copy;
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
    table_cell(table, arena_print(table->arena, "%.10s %.8s", text, text + 11));
}

/* Characters, not bytes: a continuation byte takes no room on the screen. */
static int width(const char *text)
{
    int count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

static void print_cell(const Table *table, int index, const int *widths)
{
    int         column = index % table->columns;
    bool        right  = table->cells[column][0] == '>';
    const char *text   = table->cells[index] + (index < table->columns && right);
    int         space  = widths[column] - width(text);
    bool        last   = column == table->columns - 1;

    if (right)
        printf("%*s%s", space, "", text);
    else
        printf("%s%*s", text, last ? 0 : space, "");
    printf(last ? "\n" : "  ");
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
    for (int i = 0; i < table->count; i++)
        print_cell(table, i, widths);
}

void print_json(const Text *text)
{
    printf("%s\n", text_string(text));
}
