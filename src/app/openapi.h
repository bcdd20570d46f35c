/*
 * openapi.h - the OpenAPI 3.1 description, made from the table of routes and the field tables behind it.
 */
#ifndef APP_OPENAPI_H
#define APP_OPENAPI_H

#include "base/arena.h"
#include "http/route.h"

const char *openapi_text(const RouteTable *table, Arena *arena);

#endif
