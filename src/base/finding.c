/*
 * finding.c - see finding.h.
 */
#include "base/finding.h"

#include "base/answer_field.h"

/* NULL: the list is full. */
static Finding *row_new(Findings *findings)
{
    if (findings->count < FINDINGS_MAX)
        return &findings->rows[findings->count++];
    findings->more = true;
    return NULL;
}

void findings_add(Findings *findings, Arena *arena, const Finding *finding)
{
    Finding *row = row_new(findings);

    if (row)
        *row = (Finding){arena_text(arena, finding->what), arena_text(arena, finding->which),
                         arena_text(arena, finding->sentence)};
}

void findings_join(Findings *findings, const Findings *other)
{
    Finding *row;

    for (int i = 0; i < other->count && (row = row_new(findings)); i++)
        *row = other->rows[i];
    findings->more |= other->more;
}

void findings_write(Writer *writer, const Findings *findings)
{
    writer_array(writer, "findings");
    for (int i = 0; i < findings->count; i++) {
        const Finding *row = &findings->rows[i];

        writer_object(writer, NULL);
        writer_text(writer, "what", row->what);
        writer_text(writer, "which", row->which);
        writer_text(writer, "sentence", row->sentence);
        writer_end(writer);
    }
    writer_end(writer);
    writer_bool(writer, "more", findings->more);
}

/* clang-format off */
static const AnswerField finding_fields[] = {TEXT("what"), TEXT("which"), TEXT("sentence")};
TABLE(finding, "Finding");
/* clang-format on */
