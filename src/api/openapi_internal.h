/*
 * openapi_internal.h - the parts of the description: requests, responses, and what the operations refer to.
 */
#ifndef API_OPENAPI_INTERNAL_H
#define API_OPENAPI_INTERNAL_H

#include "base/writer.h"
#include "http/route.h"

/* Of an operation. */
void openapi_write_parameters(Writer *writer, const Route *route);
#define OPENAPI_ID_SIZE 128
/* The name of an operation, such as "sendCommand"; ret_id has OPENAPI_ID_SIZE bytes. */
void openapi_operation_id(const Route *route, char *ret_id);
void openapi_write_body(Writer *writer, const Route *route);
void openapi_write_answer(Writer *writer, const Route *route);
bool openapi_takes_key(const Route *route);
/* The only values of a text; NULL: any. */
void openapi_write_words(Writer *writer, const char *const *words);
/* Of the whole description. */
void openapi_write_components(Writer *writer, const RouteTable *table);

#endif
