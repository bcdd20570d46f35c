/*
 * api.h - the handlers behind the routes, one file per noun: each turns a request into a call of a room, and its rows
 * into JSON. The context is always the Daemon.
 */
#ifndef APP_API_H
#define APP_API_H

#include "http/route.h"

RouteHandler api_live, api_ready, api_metrics, api_alerts, api_openapi;
RouteHandler api_dead_letter_list, api_dead_letter_retry, api_dead_letter_delete;

extern const RouteParameter api_dead_letter_parameters[];

#endif
