/*
 * oid.h - the type numbers of PostgreSQL's catalogue that we bind and expect; they never change.
 */
#ifndef PG_OID_H
#define PG_OID_H

enum {
    OID_BOOL        = 16,
    OID_BYTEA       = 17,
    OID_INT8        = 20,
    OID_INT4        = 23,
    OID_TEXT        = 25,
    OID_JSON        = 114,
    OID_FLOAT8      = 701,
    OID_INT4_ARRAY  = 1007,
    OID_TEXT_ARRAY  = 1009,
    OID_INT8_ARRAY  = 1016,
    OID_UUID        = 2950,
    OID_UUID_ARRAY  = 2951,
    OID_JSONB       = 3802,
    OID_JSONB_ARRAY = 3807,
};

#endif
