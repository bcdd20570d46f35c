/*
 * leg.h - the legs of a transaction over many wallets: payers and payees, with asset and amount.
 *
 * Threads: any. Ownership: texts are borrowed.
 */
#ifndef WALLET_LEG_H
#define WALLET_LEG_H

#include "base/reader.h"
#include "base/writer.h"

#define WALLET_LEGS_MIN 2
#define WALLET_LEGS_MAX 100

typedef struct {
    const char *owner;  /* "@system" as well */
    const char *asset;  /* NULL: CREDIT */
    int64_t     amount; /* negative: pays */
} WalletLeg;

typedef struct {
    const WalletLeg *list; /* NULL: none */
    int              count;
} WalletLegs;

/* How one is read from JSON. */
extern const FieldTable wallet_leg_table;

/* 2 to 100, each owner once per asset, each asset sums to zero. ERR_INVALID begins with the field: "legs[3].owner must". */
must_check ErrorCode legs_check(WalletLegs legs, Error *reterr);
bool                 legs_same(WalletLegs a, WalletLegs b);
/* As an array. The asset is always written, so that both ways to say it are one body. */
void   legs_write(Writer *writer, const char *name, WalletLegs legs);
size_t legs_bytes(WalletLegs legs); /* that takes at most so many */

#endif
