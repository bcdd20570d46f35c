/*
 * routes.h - every route of pawl; docs and /openapi.json are made from this table.
 */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "http/route.h"

extern const RouteTable routes_table;

#endif
