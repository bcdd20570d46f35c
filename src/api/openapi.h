/*
 * openapi.h - the OpenAPI 3.1 description, made from the table of routes and the field tables behind it.
 */
#ifndef API_OPENAPI_H
#define API_OPENAPI_H

#include "base/arena.h"
#include "http/asset.h"
#include "http/route.h"

const char *openapi_text(const RouteTable *table, Arena *arena);
/* The same as an asset; the text is in the arena. */
Asset openapi_asset(const RouteTable *table, Arena *arena);

#endif
