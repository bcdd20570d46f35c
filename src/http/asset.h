/*
 * asset.h - static responses, which do not change while the process runs: files in the binary, the OpenAPI document.
 *
 *     {HTTP_GET, "/assets/{path}", api_assets, ...}
 *     return assets_answer(&table, request_capture(request, "path"), request, response, reterr);
 *
 * Invariants
 *   1. A response has a strong ETag, made from the content and different for its gzip variant. If-None-Match with that
 * tag gets 304 without a body.
 *   2. The gzip variant is sent where Accept-Encoding prefers it; every response with an asset that has one says Vary:
 * Accept-Encoding.
 *   3. The bytes are sent from where they are: no copy is made for a request.
 *   4. A path is looked up in the table and nowhere else: no path reaches a file system.
 * Threads: asset_prepare() before the first request; then any, nothing changes. Ownership: the bytes are borrowed for
 * as long as the server runs. pawl compresses nothing by itself: variants are made when the program is built.
 */
#ifndef HTTP_ASSET_H
#define HTTP_ASSET_H

#include <stddef.h>

#include "http/request.h"
#include "http/response.h"

#define ASSET_ETAG_SIZE 40

typedef struct {
    const char *bytes;
    size_t      size;
} AssetBytes;

typedef struct {
    const char *path;  /* in its table: "app.js" */
    const char *type;  /* "text/javascript; charset=utf-8" */
    const char *cache; /* Cache-Control; NULL: "no-cache", which clients keep and revalidate each time */
    AssetBytes  plain;
    AssetBytes  gzip;                                                    /* .bytes NULL: there is none */
    char        plain_etag[ASSET_ETAG_SIZE], gzip_etag[ASSET_ETAG_SIZE]; /* filled by asset_prepare() */
} Asset;

typedef struct {
    Asset *rows;
    size_t count;
} AssetTable;

void asset_prepare(Asset *asset);
void assets_prepare(AssetTable *table);
/* Fill the response: 200 or 304. */
void asset_answer(const Asset *asset, const Request *request, Response *response);
/* The asset of this path. ERR_NOT_FOUND: none has it. */
must_check ErrorCode assets_answer(const AssetTable *table, const char *path, const Request *request,
                                   Response *response, Error *reterr);

#endif
