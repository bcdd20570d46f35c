/*
 * problem.c - see problem.h.
 */
#include "base/problem.h"

#include <string.h>

#define SAME_KEY "Repeat it after Retry-After, with the same key."

/* clang-format off */
const Problem problem_rows[] = {
    {"wrong-usage", ERR_USAGE, "The command line or a setting is wrong.", "Correct what the detail names; see pawl help."},
    {"invalid-request", ERR_INVALID, "A field, parameter or header is missing, malformed or out of range. Nothing was written.",
     "Correct what the detail names."},
    {"asset-mismatch", ERR_INVALID, "The operation refers to a transaction or hold in another asset.",
     "Leave out the asset, or give that of the transaction or hold."},
    {"same-wallet", ERR_INVALID, "Both sides of the operation are one wallet.", "Give two different wallets."},
    {"no-valid-token", ERR_NO_TOKEN, "The request has no token, or one that is unknown, revoked or expired.",
     "Send Authorization: Bearer TOKEN with a token from pawl key create."},
    {"not-allowed", ERR_DENIED, "The token lacks the scope that this route needs.", "Use a key with the scope that the detail names."},
    {"not-found", ERR_NOT_FOUND, "Nothing has this path or id.", "Check the id; it may have been deleted after its retention."},
    {"wallet-unknown", ERR_NOT_FOUND, "There is no wallet of this owner in this asset.", "Open it with POST /v1/wallets."},
    {"hold-unknown", ERR_NOT_FOUND, "No hold has this id.", "Check the id."},
    {"transaction-unknown", ERR_NOT_FOUND, "No transaction has this id.", "Check the id."},
    {"method-not-allowed", ERR_METHOD, "The path exists, but not with this method.", "Use a method of the header Allow."},
    {"request-timeout", ERR_SLOW, "The request did not arrive in time.", "Send it faster, or in smaller pieces."},
    {"conflict", ERR_CONFLICT, "The request conflicts with the present state.",
     "Read the state; another request under a new key may succeed."},
    {"ambiguous-id", ERR_CONFLICT, "Several domains have a command of this id.", "Name the command's domain with ?domain=."},
    {"decided-otherwise", ERR_CONFLICT, "An operator has decided about the command already, in another way.",
     "The detail says what was decided, by whom and when; a decision is not changed."},
    {"batch-closed", ERR_CONFLICT, "The batch is sealed and takes no more commands.", "Send them in another batch."},
    {"not-posted", ERR_CONFLICT, "An item of an atomic batch was refused, so none was posted.",
     "Correct or remove the item that the detail names and send the batch with new keys."},
    {"insufficient-funds", ERR_CONFLICT, "The wallet has less available than the operation takes.",
     "Repeating under the same key gets the same refusal; take a new key when there is money."},
    {"balance-limit", ERR_CONFLICT, "The wallet's balance would exceed 9007199254740991.", "Use several wallets."},
    {"wallet-frozen", ERR_CONFLICT, "The wallet is frozen.", "Unfreeze it, then take a new key."},
    {"hold-ended", ERR_CONFLICT, "The hold was voided, captured in full, or has expired.", "Place a new hold."},
    {"over-captured", ERR_CONFLICT, "The capture is larger than what is left of the hold.", "Capture at most what is left."},
    {"over-refunded", ERR_CONFLICT, "The refund is larger than what is left of the transaction.", "Refund at most what is left."},
    {"not-refundable", ERR_CONFLICT, "A transaction of this kind cannot be refunded.", "Post a transaction the other way."},
    {"over-limit", ERR_LIMIT, "The request is larger than a limit.", "Send it in smaller pieces."},
    {"wrong-content-type", ERR_MEDIA, "The body is not JSON by its Content-Type.", "Send application/json in UTF-8."},
    {"key-reused", ERR_KEY_REUSED, "The key was used before for another request.",
     "Take a new key; or send exactly what was sent under this one."},
    {"too-many-requests", ERR_RATE, "Too many requests.", "Slow down; repeat after Retry-After."},
    {"headers-too-large", ERR_HEADERS, "The headers are larger than a limit.", "Send fewer or smaller headers."},
    {"try-again", ERR_BUSY, "The server is busy, or another transaction holds what this one needs. Nothing was written.", SAME_KEY},
    {"timed-out", ERR_TIMEOUT, "It could not be done in time. Nothing was written.", SAME_KEY},
    {"shutting-down", ERR_STOPPING, "The server is shutting down.", "Repeat it on another server, with the same key."},
    {"database-unavailable", ERR_UNAVAILABLE, "The database cannot be reached. Nothing was written.", SAME_KEY},
    {"database-refused", ERR_REFUSED, "The database refuses the server's connections. Nothing was written.",
     "The operator of the server must act: pawl doctor says how."},
    {"try-same-key", ERR_UNKNOWN, "The connection to the database broke during the commit: it may have been done.",
     "Repeat it with the same key: the answer tells what happened."},
    {"internal-error", ERR_INTERNAL, "A defect of the server. Its log has the details under this instance.",
     "Report it with the instance; a repeat with the same key is safe."},
};
/* clang-format on */
const size_t problem_count = COUNT(problem_rows);

const Problem *problem_find(const char *type)
{
    for (size_t i = 0; i < problem_count; i++)
        if (strcmp(problem_rows[i].type, type) == 0)
            return &problem_rows[i];
    return NULL;
}

/* Errors of requests are worded for clients where they are made; those of status 500 and above only if the database had no part
 * in them, as in "too many connections" of the HTTP server. */
bool problem_is_confidential(const Error *error)
{
    if (error_http(error->code) < 500)
        return false;
    return error->code == ERR_INTERNAL || error->sqlstate[0] != '\0' ||
           (error->file && strncmp(error->file, "pg/", 3) == 0);
}

const char *problem_stored(const Error *error)
{
    bool is_connection = error->code == ERR_UNAVAILABLE || error->code == ERR_REFUSED || error->code == ERR_UNKNOWN;

    return is_connection || (error->code != ERR_INTERNAL && error->sqlstate[0] == '\0') ? problem_detail(error)
                                                                                        : error->text;
}

const char *problem_detail(const Error *error)
{
    const Problem *problem;

    if (!problem_is_confidential(error))
        return error->text;
    problem = problem_find(error_type(error));
    return problem ? problem->meaning : error_text(error->code);
}
