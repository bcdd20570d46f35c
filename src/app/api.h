/*
 * api.h - the handlers behind the routes, one file per noun: each turns a request into a call of a room, and its rows
 * into JSON. The context is always the Daemon.
 */
#ifndef APP_API_H
#define APP_API_H

#include "http/route.h"

RouteHandler api_live, api_ready, api_metrics, api_alerts, api_openapi;
RouteHandler api_dead_letter_list, api_dead_letter_retry, api_dead_letter_delete;

RouteHandler api_command_send, api_command_batch, api_command_show, api_command_list, api_command_cancel;
RouteHandler api_batch_show, api_batch_seal, api_claim, api_settle, api_extend;
RouteHandler api_tsq_list, api_tsq_retry, api_tsq_cancel, api_tsq_complete;

extern const RouteParameter api_dead_letter_parameters[], api_command_parameters[], api_tsq_parameters[];
extern const FieldTable api_command_send_body, api_command_batch_body, api_decide_body, api_claim_body, api_settle_body,
    api_extend_body;

#endif
