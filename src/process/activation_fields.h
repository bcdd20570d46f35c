/*
 * activation_fields.h - activations as JSON, for workers in any language: the fields of claims, reports, extensions and progress, and the verdicts.
 *
 * HTTP bodies and OpenAPI are made from the tables.
 * Threads: any; the tables are constant. Ownership: what is read lives in the reader's arena.
 */
#ifndef PROCESS_ACTIVATION_FIELDS_H
#define PROCESS_ACTIVATION_FIELDS_H

#include "base/reader.h"
#include "base/writer.h"
#include "bus/claim.h"
#include "bus/lease.h"
#include "bus/settle.h"
#include "bus/work_fields.h"
#include "process/load.h"
#include "process/report.h"

#define ACTIVATION_ITEMS_MAX       1000 /* reports or extensions in one request */
#define ACTIVATION_LEASE_S_DEFAULT 60

extern const FieldTable activation_claim_table; /* of ClaimRequest */

typedef struct {
    ReaderArray items;
} ActivationReportRequest;
extern const FieldTable activation_report_table;
/* One report for each item, checked. ERR_INVALID, ERR_LIMIT name the item and the field. */
must_check ErrorCode activation_reports_read(const ActivationReportRequest *request, Arena *arena,
                                             ProcessReport ***ret_list, Error *reterr);

extern const FieldTable   activation_extend_table;   /* of ExtendRequest; lease_s 0: absent */
extern const FieldTable   activation_progress_table; /* of ProgressRequest */
extern const VerdictShape activation_extended_shape, activation_reported_shape;

/* With its history. */
must_check ErrorCode activation_write(Writer *writer, const ClaimedCommand *command, const LoadedProcess *found,
                                      Arena *arena, Error *reterr);
must_check ErrorCode activation_reports_write(Writer *writer, ProcessReport *const *list, int count, Arena *arena,
                                              Error *reterr);

#endif
