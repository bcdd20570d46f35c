/*
 * post.h - what the handlers that move money share: fields, and how a verdict is written.
 */
#ifndef API_POST_H
#define API_POST_H

#include "base/reader.h"
#include "base/writer.h"
#include "wallet/post.h"

typedef struct {
    const char *txn_id, *owner, *from, *to, *asset, *metadata;
    int64_t     amount, expires_in_s, floor;
    ReaderArray legs;
} PostRequest;

/* Fields of a posting, in the words of the interface. */
#define POST_TXN_ID                                                                                          \
    {                                                                                                        \
        "txn_id", FIELD_UUID, offsetof(PostRequest, txn_id),                                                 \
            .help = "the key, chosen by the client: sent twice it is posted once; or header Idempotency-Key" \
    }
#define POST_OWNER(name, field, words)                                                                              \
    {                                                                                                               \
        name, FIELD_TEXT, offsetof(PostRequest, field), .required = true, .min = 1, .length_max = WALLET_OWNER_MAX, \
                                                        .help = words                                               \
    }
#define POST_AMOUNT                                                                                               \
    {                                                                                                             \
        "amount", FIELD_I64, offsetof(PostRequest, amount), .required = true, .min = 1, .max = WALLET_AMOUNT_MAX, \
                                                            .help = "in minor units"                              \
    }
#define POST_AMOUNT_LEFT                                                                           \
    {                                                                                              \
        "amount", FIELD_I64, offsetof(PostRequest, amount), .min = 1, .max = WALLET_AMOUNT_MAX,    \
                                                            .help = "all that is left when absent" \
    }
#define POST_ASSET                                                                                                  \
    {                                                                                                               \
        "asset", FIELD_TEXT, offsetof(PostRequest, asset), .min = 1, .length_max = 32, .help = "CREDIT when absent" \
    }
#define POST_METADATA                                                                                           \
    {                                                                                                           \
        "metadata", FIELD_JSON, offsetof(PostRequest, metadata), .help = "an object, kept with the transaction" \
    }

WalletItem api_item_of(WalletKind kind, const PostRequest *given);
/* The members of an object that say what was posted. */
void api_posted_write(Writer *writer, const WalletItem *item);

#endif
