/*
 * asset.c - see asset.h.
 */
#include "http/asset.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "http/negotiate.h"
#include "http/request_internal.h"

#define ETAG_BYTES 16

/* The coding is part of the hash: where it made no difference to the bytes, the tags would be the same. */
static void etag_make(const AssetBytes *content, const char *coding, char *ret_etag)
{
    unsigned char            hash[ETAG_BYTES];
    char                     hex[2 * ETAG_BYTES + 1];
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, sizeof hash);
    crypto_generichash_update(&state, (const unsigned char *)coding, strlen(coding) + 1);
    crypto_generichash_update(&state, (const unsigned char *)content->bytes, content->size);
    crypto_generichash_final(&state, hash, sizeof hash);
    sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
    snprintf(ret_etag, ASSET_ETAG_SIZE, "\"%s\"", hex);
}

void asset_prepare(Asset *asset)
{
    etag_make(&asset->plain, "identity", asset->plain_etag);
    if (asset->gzip.bytes)
        etag_make(&asset->gzip, "gzip", asset->gzip_etag);
}

void assets_prepare(AssetTable *table)
{
    for (size_t i = 0; i < table->count; i++)
        asset_prepare(&table->rows[i]);
}

void asset_answer(const Asset *asset, const Request *request, Response *response)
{
    bool              gzip    = asset->gzip.bytes && negotiate_gzip(&request->head);
    const AssetBytes *content = gzip ? &asset->gzip : &asset->plain;
    const char       *etag    = gzip ? asset->gzip_etag : asset->plain_etag;

    assert(*etag); /* asset_prepare() was called */
    response_header(response, "ETag", etag);
    response_header(response, "Cache-Control", asset->cache ? asset->cache : "no-cache");
    if (asset->gzip.bytes)
        response_header(response, "Vary", "Accept-Encoding");
    if (negotiate_unchanged(&request->head, etag)) {
        response->status = 304;
        return;
    }
    response->type = asset->type;
    response_header(response, "X-Content-Type-Options", "nosniff");
    if (gzip)
        response_header(response, "Content-Encoding", "gzip");
    response_borrow(response, content->bytes, content->size);
    response->is_shared = true;
}

ErrorCode assets_answer(const AssetTable *table, const char *path, const Request *request, Response *response,
                        Error *reterr)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].path, path) == 0) {
            asset_answer(&table->rows[i], request, response);
            return OK;
        }
    return fail(reterr, ERR_NOT_FOUND, "no such path");
}
