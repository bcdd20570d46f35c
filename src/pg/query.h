/*
 * query.h - a query in one line: typed arguments (pg/arg.h) in, structs out; each failure names what failed.
 *
 *     return db_one(tx, sql_wallet_find, DB_ARGS(db_i64(id)), &wallet_shape, ret_wallet, reterr);
 *
 * Invariants
 *   1. *ret_ is untouched on failure; nothing leaks on any path; no PGresult leaves the module.
 *   2. The mapper finds every column by name, once per result, and insists on its type.
 *   3. Texts and arrays are copied into the transaction's arena.
 * Threads: a Tx belongs to one thread; shapes are constant.
 */
#ifndef PG_QUERY_H
#define PG_QUERY_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "pg/arg.h"
#include "pg/conn.h"

/* Where a query runs, how long it may take and where its rows live; all borrowed. */
typedef struct {
    Conn    *conn;
    Arena   *arena;
    Deadline deadline;
    bool     autocommit; /* each statement is a transaction of its own, with the server's limits */
    bool     read_only;  /* and writes nothing, so that it may be canceled */
    bool     prepare;    /* autocommit: the statements are constants of the program and run often */
    bool     is_foreign; /* runs code that is not pawl's: the session is reset at its end */
    int      lock_ms;    /* autocommit: how long a statement waits for a lock; 0: until the deadline */
} Tx;

/* How a row becomes a struct. A SQL null is 0, false or NULL. */
typedef enum {
    DB_I32,   /* int32_t, integer */
    DB_I64,   /* int64_t, bigint */
    DB_REAL,  /* double, double precision */
    DB_BOOL,  /* bool */
    DB_TEXT,  /* const char *, text */
    DB_UUID,  /* const char *, uuid */
    DB_JSONB, /* const char *, jsonb */
    DB_JSON,  /* const char *, json */
    DB_TIME,  /* int64_t microseconds since 1970, bigint from SQL: see pawl.micros() */
} DbType;
typedef struct {
    const char *name; /* NULL: the only column of the result */
    DbType      type;
    size_t      offset;
} DbColumn;
typedef struct {
    const char     *noun;
    const DbColumn *columns;
    int             count;
    size_t          size;
} DbShape;

/*
 * A struct and its shape come from one list, which has the names of each type:
 *     #define WALLET_COLUMNS(X, T) X(T, I64, id, balance) X(T, TEXT, owner)
 *     DB_ROW(Wallet, WALLET_COLUMNS);
 *     DB_SHAPE(wallet, Wallet, WALLET_COLUMNS);
 */
#define DB_ROW(Type, COLUMNS)    \
    typedef struct {             \
        COLUMNS(DB_FIELDS, Type) \
    } Type
#define DB_SHAPE(noun, Type, COLUMNS)                                     \
    static const DbColumn noun##_columns[] = {COLUMNS(DB_COLUMNS, Type)}; \
    static const DbShape  noun##_shape     = {#noun, noun##_columns, COUNT(noun##_columns), sizeof(Type)}

#define DB_FIELDS(Type, type, ...) __typeof__(DB_TYPE_##type) __VA_ARGS__;
#define DB_TYPE_I32                int32_t
#define DB_TYPE_I64                int64_t
#define DB_TYPE_REAL               double
#define DB_TYPE_BOOL               bool
#define DB_TYPE_TEXT               const char *
#define DB_TYPE_UUID               const char *
#define DB_TYPE_JSONB              const char *
#define DB_TYPE_JSON               const char *
#define DB_TYPE_TIME               int64_t

#define DB_COLUMN(Type, type, name) {#name, DB_##type, offsetof(Type, name)},
#define DB_COLUMNS(...)             DB_EACH(DB_COLUMN, __VA_ARGS__)

/* F(Type, type, name) for each of at most 16 names. */
#define DB_EACH(F, Type, type, ...)                                                                              \
    DB_PICK(__VA_ARGS__, DB_EACH_16, DB_EACH_15, DB_EACH_14, DB_EACH_13, DB_EACH_12, DB_EACH_11, DB_EACH_10,     \
            DB_EACH_9, DB_EACH_8, DB_EACH_7, DB_EACH_6, DB_EACH_5, DB_EACH_4, DB_EACH_3, DB_EACH_2, DB_EACH_1, ) \
    (F, Type, type, __VA_ARGS__)
#define DB_PICK(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, each, ...) each

#define DB_EACH_1(F, T, t, a)       F(T, t, a)
#define DB_EACH_2(F, T, t, a, ...)  F(T, t, a) DB_EACH_1(F, T, t, __VA_ARGS__)
#define DB_EACH_3(F, T, t, a, ...)  F(T, t, a) DB_EACH_2(F, T, t, __VA_ARGS__)
#define DB_EACH_4(F, T, t, a, ...)  F(T, t, a) DB_EACH_3(F, T, t, __VA_ARGS__)
#define DB_EACH_5(F, T, t, a, ...)  F(T, t, a) DB_EACH_4(F, T, t, __VA_ARGS__)
#define DB_EACH_6(F, T, t, a, ...)  F(T, t, a) DB_EACH_5(F, T, t, __VA_ARGS__)
#define DB_EACH_7(F, T, t, a, ...)  F(T, t, a) DB_EACH_6(F, T, t, __VA_ARGS__)
#define DB_EACH_8(F, T, t, a, ...)  F(T, t, a) DB_EACH_7(F, T, t, __VA_ARGS__)
#define DB_EACH_9(F, T, t, a, ...)  F(T, t, a) DB_EACH_8(F, T, t, __VA_ARGS__)
#define DB_EACH_10(F, T, t, a, ...) F(T, t, a) DB_EACH_9(F, T, t, __VA_ARGS__)
#define DB_EACH_11(F, T, t, a, ...) F(T, t, a) DB_EACH_10(F, T, t, __VA_ARGS__)
#define DB_EACH_12(F, T, t, a, ...) F(T, t, a) DB_EACH_11(F, T, t, __VA_ARGS__)
#define DB_EACH_13(F, T, t, a, ...) F(T, t, a) DB_EACH_12(F, T, t, __VA_ARGS__)
#define DB_EACH_14(F, T, t, a, ...) F(T, t, a) DB_EACH_13(F, T, t, __VA_ARGS__)
#define DB_EACH_15(F, T, t, a, ...) F(T, t, a) DB_EACH_14(F, T, t, __VA_ARGS__)
#define DB_EACH_16(F, T, t, a, ...) F(T, t, a) DB_EACH_15(F, T, t, __VA_ARGS__)

/* Results of one column: a row is an int64_t, a const char * or a bool. */
extern const DbShape db_i64_shape, db_text_shape, db_bool_shape;

/* Any number of rows into an array in the arena. ret_rows: the address of a pointer to the struct of the shape. */
must_check ErrorCode db_many(Tx *tx, const char *sql, DbArgs args, const DbShape *shape, void *ret_rows, int *ret_count,
                             Error *reterr);
/* Exactly one row. ERR_NOT_FOUND: none ("wallet not found"). */
must_check ErrorCode db_one(Tx *tx, const char *sql, DbArgs args, const DbShape *shape, void *ret_row, Error *reterr);
/* A statement whose rows do not matter; *ret_changed (may be NULL) gets the number of rows it touched. */
must_check ErrorCode db_run(Tx *tx, const char *sql, DbArgs args, int64_t *ret_changed, Error *reterr);
/* One row with one column: a number or a text. NULL text for SQL null. */
must_check ErrorCode db_get_i64(Tx *tx, const char *sql, DbArgs args, int64_t *ret_value, Error *reterr);
must_check ErrorCode db_get_text(Tx *tx, const char *sql, DbArgs args, const char **ret_value, Error *reterr);

/* Rows of texts, for statements whose shape only their author knows; parameters are texts of unknown type. */
typedef struct {
    int                rows, columns;
    const char *const *values;  /* rows * columns, in the arena; NULL is SQL null */
    int64_t            changed; /* inserted, updated, deleted or merged */
} DbTable;
/* One statement: several are refused. */
must_check ErrorCode db_table(Tx *tx, const char *sql, int count, const char *const *parameters, DbTable *ret_table,
                              Error *reterr);

/* A statement of a transaction whose time is over is not sent: else a fast answer would decide whether it counts. */
must_check ErrorCode db_check_time(const Tx *tx, Error *reterr);

/* The page of a list, whose rows begin with `int64_t id, searched_to`. A last row without an id only says that the page
 * ended because it had read so many rows; it is left out of *count. Returns where the next page begins, 0: there is
 * none. */
int64_t db_page_next(const void *rows, size_t row_size, int limit, int *count);

/* The one row of several, or the error that says what is wrong with their number. */
must_check ErrorCode db_only(const DbShape *shape, const void *rows, int count, void *ret_row, Error *reterr);
/* The mapper by itself, for tests on hand-made results. */
must_check ErrorCode db_rows(const PGresult *result, const DbShape *shape, Arena *arena, void *ret_rows, Error *reterr);

#endif
