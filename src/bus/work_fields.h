/*
 * work_fields.h - claims, settlements, extensions and progress as JSON: the fields of each request, and the verdicts.
 *
 * HTTP bodies and OpenAPI are made from the tables.
 * Threads: any; the tables are constant. Ownership: texts of a request live in the reader's arena.
 */
#ifndef BUS_WORK_FIELDS_H
#define BUS_WORK_FIELDS_H

#include "base/reader.h"
#include "base/writer.h"
#include "bus/claim.h"
#include "bus/lease.h"
#include "bus/progress.h"
#include "bus/settle.h"

#define WORK_ITEMS_MAX        8000 /* settlements or extensions in one request */
#define CLAIM_LEASE_S_DEFAULT 30

typedef struct {
    int64_t     limit;           /* 0: absent */
    double      lease_s, wait_s; /* lease_s 0: absent */
    ReaderArray types;           /* of const char * */
    const char *worker;
} ClaimRequest;
extern const FieldTable claim_table;

typedef struct {
    const char *command_id, *outcome, *result, *error;
    int64_t     lease;
    double      delay_s;
    bool        delay_given;
} SettleRow;
typedef struct {
    ReaderArray items; /* of SettleRow */
} SettleRequest;
extern const FieldTable settle_table;
/* ERR_INVALID: a delay does not fit its outcome. */
must_check ErrorCode settle_rows_check(const SettleRequest *request, Error *reterr);
/* Without the command's number: a call that looks it up leaves domain and command_id where there is no such command (leases.h). */
SettleItem settle_row_item(const SettleRow *row, const char *domain);

typedef struct {
    const char *command_id;
    int64_t     lease;
} ExtendRow;
typedef struct {
    ReaderArray items; /* of ExtendRow */
    double      lease_s;
} ExtendRequest;
extern const FieldTable extend_table;

typedef struct {
    const char *command_id, *text, *step;
    int64_t     lease, percent;
    bool        has_percent;
} ProgressRow;
typedef struct {
    ReaderArray items; /* of ProgressRow */
} ProgressRequest;
extern const FieldTable progress_table;
/* Checked, without the numbers of the commands. ERR_INVALID names the item and the field. */
must_check ErrorCode progress_items_read(const ProgressRequest *request, Arena *arena, ProgressItem **ret_items,
                                         Error *reterr);

/* {"items": [...]}, a member for each row. */
void settled_write(Writer *writer, const SettleRow *rows, SettleItem *const *items, int count);

typedef struct {
    const char        *id;    /* the member with the id */
    const char        *done;  /* true for verdict 0; NULL: there is no such member */
    const char *const *names; /* by verdict */
} VerdictShape;
extern const VerdictShape extended_shape, reported_shape;
void verdicts_write(Writer *writer, const VerdictShape *shape, const char *const *ids, const int *verdicts, int count);

#endif
