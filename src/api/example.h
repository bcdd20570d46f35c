/*
 * example.h - responses of the ledger as OpenAPI shows them; a test compares them with real ones.
 */
#ifndef API_EXAMPLE_H
#define API_EXAMPLE_H

/* clang-format off */
#define EXAMPLE_KEY    "\"0190a000-0000-7000-8000-00000000000a\""
#define EXAMPLE_REF    "\"0190a000-0000-7000-8000-000000000001\""
#define EXAMPLE_AT     "\"2026-01-31T12:00:00.000000Z\""
#define EXAMPLE_AMOUNT "\"asset\":\"CREDIT\",\"amount\":250,"
#define EXAMPLE_STANDS "\"balance_before\":1000,\"balance\":750,\"held\":0,\"available\":750,\"version\":2,"
#define EXAMPLE_MOVED(parties) "{\"txn_id\":" EXAMPLE_KEY "," parties EXAMPLE_AMOUNT EXAMPLE_STANDS "\"at\":" EXAMPLE_AT "}"
#define EXAMPLE_SET(member) \
    "{\"txn_id\":" EXAMPLE_KEY ",\"owner\":\"ann\",\"asset\":\"CREDIT\"," EXAMPLE_STANDS member ",\"at\":" EXAMPLE_AT "}"
#define EXAMPLE_HOLD \
    "{\"txn_id\":" EXAMPLE_KEY ",\"owner\":\"ann\"," EXAMPLE_AMOUNT "\"balance_before\":1000,\"balance\":1000,\"held\":250," \
    "\"available\":750,\"version\":2,\"expires_at\":\"2026-01-31T12:10:00.000000Z\",\"at\":" EXAMPLE_AT "}"
#define EXAMPLE_WALLET \
    "{\"owner\":\"ann\",\"asset\":\"CREDIT\",\"balance\":750,\"held\":0,\"available\":750,\"floor\":0,\"version\":2," \
    "\"frozen\":false,\"metadata\":null,\"created_at\":" EXAMPLE_AT "}"
#define EXAMPLE_ENTRIES \
    "{\"owner\":\"ann\",\"asset\":\"CREDIT\",\"items\":[{\"txn_id\":" EXAMPLE_KEY ",\"kind\":\"transfer\",\"amount\":-250," \
    "\"balance\":750,\"held\":0,\"version\":2,\"other\":\"bob\",\"metadata\":null,\"at\":" EXAMPLE_AT "}],\"next_cursor\":null}"
#define EXAMPLE_VERDICTS \
    "{\"posted\":1,\"refused\":1,\"items\":[{\"posted\":true,\"txn_id\":" EXAMPLE_KEY ",\"from\":\"ann\",\"to\":\"bob\"," \
    EXAMPLE_AMOUNT EXAMPLE_STANDS "\"at\":" EXAMPLE_AT "},{\"posted\":false,\"txn_id\":" EXAMPLE_REF "," \
    "\"type\":\"/problems/insufficient-funds\",\"status\":409,\"detail\":\"\\\"ann\\\" has 750 available, 1000 are needed\"}]}"
#define EXAMPLE_MULTI \
    "{\"txn_id\":" EXAMPLE_KEY ",\"amount\":250,\"entries\":[{\"owner\":\"ann\",\"asset\":\"CREDIT\",\"amount\":-250," \
    "\"balance\":750,\"held\":0,\"version\":2},{\"owner\":\"bob\",\"asset\":\"CREDIT\",\"amount\":250,\"balance\":250," \
    "\"held\":0,\"version\":1}],\"at\":" EXAMPLE_AT "}"
#define EXAMPLE_TRANSACTION \
    "{\"txn_id\":" EXAMPLE_KEY ",\"kind\":\"spend\",\"status\":\"posted\",\"owner\":\"ann\",\"other\":\"@system\"," \
    EXAMPLE_AMOUNT "\"at\":" EXAMPLE_AT ",\"entries\":[{\"owner\":\"ann\",\"asset\":\"CREDIT\",\"amount\":-250," \
    "\"balance\":750,\"held\":0,\"version\":2}]}"
#define EXAMPLE_HOLD_NOW \
    "{\"txn_id\":" EXAMPLE_KEY ",\"owner\":\"ann\"," EXAMPLE_AMOUNT "\"captured\":100,\"remaining\":150,\"status\":\"OPEN\"," \
    "\"expires_at\":\"2026-01-31T12:10:00.000000Z\",\"at\":" EXAMPLE_AT "}"
/* clang-format on */

#endif
