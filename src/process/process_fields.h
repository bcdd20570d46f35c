/*
 * process_fields.h - starts, signals, moves and decisions of processes as JSON: the fields of each request, and what is answered.
 *
 * HTTP bodies and OpenAPI are made from the tables; the command line and libpawl use the limits of process/process.h, from which the
 * tables are made, too.
 * Threads: any; the tables are constant. Ownership: texts of a request live in the reader's arena.
 */
#ifndef PROCESS_PROCESS_FIELDS_H
#define PROCESS_PROCESS_FIELDS_H

#include "base/reader.h"
#include "base/writer.h"
#include "process/process.h"

typedef struct {
    const char *type, *state, *process_id, *domain, *deadline, *on_deadline;
    const char *key; /* text in place of the id, which the caller makes of it */
    double      delay_s;
    int64_t     priority;
    bool        priority_given;
} ProcessStartRequest;
extern const FieldTable process_start_table;
/* actor: as in SendItem. ERR_INVALID, ERR_LIMIT name the field. */
must_check ErrorCode process_start_request_item(Arena *arena, const ProcessStartRequest *request, const char *actor,
                                                SendItem *ret_item, Error *reterr);

#define PROCESS_ITEMS_MAX 1000 /* starts in one request */

typedef struct {
    ReaderArray items; /* of ProcessStartRequest */
} ProcessBatchRequest;
extern const FieldTable process_batch_table;

/* A repeat writes the same bytes: the first verdict is the status, and the present one is written only if with_verdict. */
void process_signaled_write(Writer *writer, Arena *arena, const char *process_id, const ProcessSignal *signal,
                            const ProcessSignaled *signaled, bool with_verdict);

typedef struct {
    int64_t     version;
    const char *by, *reason;
} ProcessMoveRequest;
extern const FieldTable process_move_table;

/* One struct for all decisions; each table has the fields that its decision takes. */
typedef struct {
    const char *by, *reason, *from, *result;
    bool        compensate;
} ProcessDecisionRequest;
extern const FieldTable process_retry_table, process_cancel_table, process_complete_table;
/* verb: PROCESS_RETRY, PROCESS_CANCEL or PROCESS_COMPLETE; a cancel that compensates becomes PROCESS_COMPENSATE. */
ProcessDecision process_request_decision(ProcessVerb verb, const ProcessDecisionRequest *request, const char *actor);

#endif
