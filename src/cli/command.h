/*
 * command.h - the table of commands; parsing, help and suggestions are made from it.
 *
 * cli parses, prints and exits; it decides nothing. Data goes to standard output, messages to standard error. Every
 * command takes --json, --config FILE and every setting as a flag (PAWL_POOL_MAX is --pool-max).
 *
 * With PAWL_URL (--url) a command asks a daemon instead of the database, if its row says that it can (cli/remote.h). It asks through the
 * functions of source.h, so the rest of it is the same.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "app/app.h"
#include "base/arena.h"
#include "base/error.h"
#include "bus/send.h"

#define COMMAND_ARGUMENTS_MAX 8
#define COMMAND_FLAGS_MAX     16

typedef struct {
    const char *name;  /* "--limit" */
    const char *value; /* "N"; "[TIME]": a duration, or nothing; NULL: a switch */
    const char *help;
} CommandFlag;

struct CliCommand;

/* One call, as parsed. */
typedef struct Call {
    Arena                   *arena;
    SettingsGiven            given;
    App                     *app;  /* NULL before call_open(); main() closes it */
    Pool                    *pool; /* the app's; NULL: it is remote */
    bool                     json;
    bool                     is_remote; /* since call_open(): it asks the daemon at PAWL_URL */
    const char              *verb;      /* of its command */
    const struct CliCommand *command;
    int                      count; /* positional arguments */
    const char              *arguments[COMMAND_ARGUMENTS_MAX];
    struct {
        const char *name, *value;
    } flags[COMMAND_FLAGS_MAX];
    int  flag_count;
    bool reads_input; /* data comes from a file or standard input: what is wrong in it is not wrong usage */
} Call;

typedef ErrorCode CommandRun(Call *call, Error *reterr);

/* What PAWL_URL means to a command. A command that decides or shows must not use another database than the one that is meant. */
typedef enum {
    PLACE_DATABASE, /* it is refused: it does not speak HTTP */
    PLACE_ANY,      /* it asks the daemon */
    PLACE_HERE,     /* nothing: it is about this machine, or needs no database */
} CommandPlace;

typedef struct CliCommand {
    const char        *group; /* "dlq" */
    const char        *verb;  /* "list"; NULL: the group alone is the command */
    const char        *usage; /* "ID", "[JSON|-]" */
    int                least, most;
    CommandRun        *run;
    const CommandFlag *flags; /* ended by a NULL name; NULL: none of its own */
    const char        *help;
    CommandPlace       place;
} CliCommand;

extern const CliCommand cli_commands[];
extern const size_t     cli_command_count;

/* The value of a flag; NULL when it was not given. A switch has the value "". */
const char *call_flag(const Call *call, const char *name);
/* A decision is about one ID, or with --all about those that match flags, which mean nothing for one ID. noun: what is decided about. */
must_check ErrorCode call_one_or_all(const Call *call, const char *noun, bool *ret_all, Error *reterr);
/* A whole number given as a flag or an argument; ERR_USAGE names it. */
must_check ErrorCode call_number(const char *what, const char *text, int64_t min, int64_t max, int64_t fallback,
                                 int64_t *ret_value, Error *reterr);
/* --limit; 100 when it was not given. */
must_check ErrorCode call_limit(const Call *call, int max, int *ret_limit, Error *reterr);
/* A duration given as a flag; ERR_USAGE names it. */
must_check ErrorCode call_duration(const Call *call, const char *flag, int64_t fallback_ms, int64_t *ret_ms,
                                   Error *reterr);
/* A moment given as a flag: a day or a time (MOMENT_LENIENT of base/moment.h), or how long ago (15m, 2d), in microseconds
 * since 1970; 0: not given. ERR_USAGE names the flag. */
must_check ErrorCode call_moment(const Call *call, const char *flag, int64_t *ret_micros, Error *reterr);

/* A UUID given as a flag, in its usual form; NULL when it was not given. ERR_USAGE names it. */
must_check ErrorCode call_uuid(const Call *call, const char *flag, const char **ret_text, Error *reterr);
/* The same of the first argument, ID. */
must_check ErrorCode call_id(const Call *call, const char **ret_id, Error *reterr);
/* JSON given as a flag; NULL when it was not given. ERR_USAGE says what is wrong in it. */
must_check ErrorCode call_json(const Call *call, const char *flag, const char **ret_json, Error *reterr);

/* The id of the key that --key gives; a text becomes one that depends on the role of the session. Without --key *id stays as it is. flag: what else
 * gives the id. ERR_USAGE: it has given another one. */
must_check ErrorCode key_take(Call *call, const char *flag, const char **id, Error *reterr);

/* A misspelled domain is a queue without senders, and a new one without workers. If nothing was sent to it, standard error says so when another
 * name is near, and on a terminal in any case. prefix: of the domain's name on the bus. domain NULL: none was given. Best effort: the role may not
 * read the names. */
void domain_note(Call *call, const char *prefix, const char *domain);

/* --delay and --priority, into the item. */
must_check ErrorCode send_turn_take(const Call *call, SendItem *item, Error *reterr);

/* Send one item like the model for each line of standard input, in batches; the line is its payload. word: what was
 * done, such as "sent". check: of each payload; NULL: none beside send_check(). */
typedef struct {
    const SendItem *model;
    const char     *word;
    ErrorCode (*check)(const char *payload, Error *reterr);
} SendLines;
must_check ErrorCode send_lines(Call *call, const SendLines *lines, Error *reterr);
/* ERR_USAGE: --lines beside a payload, an id or a key. count: arguments that are no payload. */
must_check ErrorCode send_lines_check(Call *call, int count, Error *reterr);

/* A payload given as an argument; "-" is standard input as a whole. NULL when it was not given. */
must_check ErrorCode call_payload(Call *call, int index, const char **ret_text, Error *reterr);

/* Open the database, or as much of the app as a command needs, or only the settings if the command is remote: after its arguments were checked. */
must_check ErrorCode call_open(Call *call, AppReach reach, Error *reterr);

/* Turn argv into a command and a call. ERR_USAGE says what is wrong and suggests the nearest word. Flags and arguments may be mixed; flags
 * that every command takes may precede it; after "--" everything is an argument. A --help anywhere selects
 * the command help, on what was named so far. */
must_check ErrorCode call_parse(int argc, char **argv, Call *call, const CliCommand **ret_command, Error *reterr);

CommandRun command_serve, command_migrate, command_migrate_status, command_doctor;
CommandRun command_db_start, command_db_stop, command_db_status, command_db_url;
CommandRun command_dlq_list, command_dlq_show, command_dlq_retry, command_dlq_delete;
CommandRun command_key_create, command_key_list, command_key_revoke;
CommandRun command_batch_create, command_batch_list, command_batch_seal, command_batch_show;
CommandRun command_reply_list, command_reply_read, command_reply_ack;
CommandRun command_domain_list, command_domain_show, command_stats;
CommandRun command_send, command_work, command_policy_show, command_policy_set, command_policy_reset;
CommandRun command_command_show, command_command_list, command_command_cancel, command_command_delete;
CommandRun command_tsq_list, command_tsq_retry, command_tsq_cancel, command_tsq_complete;
CommandRun command_process_define, command_process_definitions, command_process_start, command_process_show,
    command_process_list;
CommandRun command_process_signal, command_process_retry, command_process_cancel, command_process_complete,
    command_process_move;
CommandRun command_schedule_create, command_schedule_list, command_schedule_show, command_schedule_next;
CommandRun command_schedule_run, command_schedule_pause, command_schedule_resume, command_schedule_delete;
CommandRun command_wallet_create, command_wallet_post, command_wallet_batch;
CommandRun command_wallet_balance, command_wallet_entries, command_wallet_show, command_wallet_statement;
CommandRun command_wallet_list, command_wallet_holds, command_wallet_transactions;
CommandRun command_wallet_events, command_wallet_verify;
CommandRun command_rating_leaderboard, command_rating_history, command_rating_verify;
CommandRun command_domain_pause, command_domain_resume, command_domain_limit;
CommandRun command_bench, command_completion, command_health, command_help, command_version;

#endif
