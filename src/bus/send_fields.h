/*
 * send_fields.h - commands and batches as JSON: the fields of a send, and its verdict.
 *
 * The tables are what HTTP bodies and OpenAPI are made from; the command line and libpawl use the limits of bus/send.h, from which the
 * tables are made, too.
 * Threads: any; the tables are constant. Ownership: texts of a request live in the reader's arena.
 */
#ifndef BUS_SEND_FIELDS_H
#define BUS_SEND_FIELDS_H

#include "base/reader.h"
#include "base/writer.h"
#include "bus/send.h"

#define SEND_ITEMS_MAX 8000 /* commands in one request */

typedef struct {
    const char *domain, *type, *payload, *command_id, *reply_to, *correlation_id, *batch_id, *order_key;
    const char *key;    /* text in place of the id, which the caller makes of it (send_request_item) */
    const char *unique; /* JSON: a UniqueRequest */
    double      delay_s;
    int64_t     priority, max_attempts;
    bool        priority_given;
} SendRequest;
extern const FieldTable send_table;

typedef struct {
    const char *name, *on_complete, *batch_id;
    bool        open;
    ReaderArray items; /* of SendRequest */
} BatchRequest;
extern const FieldTable batch_table;

typedef struct {
    const char *key, *scope, *on_duplicate;
} UniqueRequest;
extern const FieldTable unique_table;

/* actor: as in SendItem. Without the request's key. ERR_INVALID names the field. */
must_check ErrorCode send_request_item(const SendRequest *request, const char *actor, Arena *arena, SendItem *ret_item,
                                       Error *reterr);

/* The command that is sent when a batch is complete, from the JSON of this field. Refuses what SQL would refuse; ERR_INVALID, ERR_LIMIT name the field. */
must_check ErrorCode on_complete_read(const char *field, const char *json, Arena *arena, SendRequest *ret_request,
                                      Error *reterr);

/* As an object: its id, by the name `id`, and the status of every new command or process, or why it was refused. Of a duplicate the id of the
 * command that has the unique key, and what became of that. A repeat writes the same bytes. */
void sent_write(Writer *writer, const char *id, const SendItem *item);

#endif
