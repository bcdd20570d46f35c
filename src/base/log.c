/*
 * log.c - a line is built in a bounded Text, then written with one write(), without blocking.
 *
 * O_NONBLOCK belongs to the open file, which a shell or a supervisor shares with us. So a pipe or a terminal is opened
 * once more for ourselves, a socket is sent to with MSG_DONTWAIT, and where neither works poll() is asked first.
 *
 * Space for the end of the line is reserved while fields are added, so a JSON line is complete however long its
 * values were.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base_metric.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/writer.h"

/* Escaping turns one byte into at most six: a message of this size always fits beside the tail. */
#define VALUE_MAX ((size_t)1000)
#define TAIL_MAX \
    ((size_t)512) /* the request id, escaped, the key, which has nothing to escape, and the closing brace */

#define X(level, name) name,
static const char *const level_names[LOG_LEVEL_COUNT] = {LOG_LEVELS(X)};
#undef X
static const char *const level_columns[LOG_LEVEL_COUNT] = {"DEBUG", "INFO ", "WARN ", "ERROR", "OFF  "};

static atomic_int level_now = LOG_INFO;
static LogFormat  format_now;

typedef enum { SINK_POLLED, SINK_NONBLOCKING, SINK_SOCKET, SINK_FILE } Sink;
static Sink        sink   = SINK_POLLED;
static int         log_fd = STDERR_FILENO;
static bool        log_fd_is_ours;
static atomic_int  left_out; /* lines since the last one that was taken */
static atomic_bool torn;     /* a line was taken in part: the next one begins on a line of its own */

static _Thread_local char request_now[LOG_REQUEST_MAX + 1], key_now[LOG_REQUEST_MAX + 1];

static void value_cut(const char *value, char *ret_cut)
{
    size_t size = strlen(value), kept = text_cut(value, size, VALUE_MAX);

    memcpy(ret_cut, value, kept);
    memcpy(ret_cut + kept, kept < size ? "..." : "", kept < size ? 4 : 1);
}

/* What a terminal would obey is escaped, also in JSON: operators read that too. */
static void quoted_put(Text *line, const char *value)
{
    scoped_text Text quoted = {0};

    text_init(&quoted, NULL, TEXT_MAX_LINE);
    writer_quote(&quoted, value);
    text_append_shown(line, text_string(&quoted));
}

/* Is it clear where the value ends, and is it harmless on a terminal? */
static bool is_plain(const char *value, bool spaces_allowed)
{
    if (!*value || !text_is_utf8(value, strlen(value)))
        return false;
    for (const char *c = value; *c; c += text_character_size(*c))
        if (text_obeyed(c, text_character_size(*c)) || strchr(spaces_allowed ? "\n\t" : "\n\t \"=\\", *c))
            return false;
    return true;
}

static void text_value(Text *line, const char *value, bool spaces_allowed)
{
    char cut[VALUE_MAX + sizeof "..."];

    value_cut(value, cut);
    if (is_plain(cut, spaces_allowed))
        text_append(line, cut);
    else
        quoted_put(line, cut);
}

static void json_value(Text *line, const char *name, const char *value)
{
    char cut[VALUE_MAX + sizeof "..."];

    value_cut(value, cut);
    writer_quote(line, name);
    text_append_char(line, ':');
    quoted_put(line, cut);
}

static void head_put(Text *line, LogLevel level, const char *module, const char *message)
{
    char time[WALL_TEXT_SIZE];

    wall_text(clock_wall(), time);
    if (format_now == LOG_JSON) {
        text_print(line, "{\"time\":\"%s\",\"level\":\"%s\",\"module\":\"%s\",", time, level_names[level], module);
        json_value(line, "message", message);
        return;
    }
    /* "2026-11-15T07:41:22.123Z" as "2026-11-15 07:41:22.123" */
    text_print(line, "%.10s %.12s %s %s: ", time, time + 11, level_columns[level], module);
    text_value(line, message, /* spaces_allowed= */ true);
}

static void field_put(Text *line, const LogField *field)
{
    if (format_now == LOG_JSON) {
        text_append_char(line, ',');
        if (field->text) {
            json_value(line, field->name, field->text);
            return;
        }
        writer_quote(line, field->name);
        text_print(line, ":%" PRId64, field->number);
        return;
    }
    text_print(line, " %s=", field->name);
    if (field->text)
        text_value(line, field->text, /* spaces_allowed= */ false);
    else
        text_print(line, "%" PRId64, field->number);
}

/* A field stands on the line whole or not at all. */
static void field_try(Text *line, const LogField *field)
{
    size_t before = line->length;

    field_put(line, field);
    if (text_is_full(line)) {
        line->length        = before;
        line->bytes[before] = '\0';
        line->full          = false;
    }
}

static ssize_t sink_write(const char *bytes, size_t size)
{
    struct pollfd ready = {.fd = log_fd, .events = POLLOUT};

    if (sink == SINK_SOCKET)
        return send(log_fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sink == SINK_POLLED && poll(&ready, 1, 0) != 1)
        return -1;
    return write(log_fd, bytes, size);
}

static bool sink_take(const char *bytes, size_t size)
{
    ssize_t taken;

    do
        taken = sink_write(bytes, size);
    while (taken < 0 && errno == EINTR);
    if (taken > 0 && (size_t)taken < size)
        atomic_store(&torn, true);
    return taken > 0;
}

/* A full or closed pipe is no reason to stop the work: the line is lost. */
static bool line_write(const Text *line)
{
    int  before = errno; /* a caller may log before it reads errno */
    bool taken  = !atomic_exchange(&torn, false) || sink_take("\n", 1);

    if (!taken)
        atomic_store(&torn, true);
    taken = taken && sink_take(line->bytes, line->length);
    if (!taken) {
        atomic_fetch_add(&left_out, 1);
        metric_add(&base_metrics.log_lines_left_out, 1);
    }
    errno = before;
    return taken;
}

static Sink sink_open(int fd, int *ret_fd)
{
    char        path[32];
    struct stat about;
    int         own;

    *ret_fd = fd;
    if (fstat(fd, &about) != 0)
        return SINK_POLLED;
    if (S_ISREG(about.st_mode))
        return SINK_FILE;
    if (S_ISSOCK(about.st_mode))
        return SINK_SOCKET;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    own = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0) /* say, a terminal of another user */
        return SINK_POLLED;
    *ret_fd = own;
    return SINK_NONBLOCKING;
}

void log_open(LogLevel level, LogFormat format, int fd)
{
    if (log_fd_is_ours)
        close(log_fd);
    format_now     = format;
    sink           = sink_open(fd, &log_fd);
    log_fd_is_ours = log_fd != fd;
    atomic_store(&left_out, 0);
    atomic_store(&torn, false);
    log_set_level(level);
}

void log_set_level(LogLevel level)
{
    atomic_store_explicit(&level_now, level, memory_order_relaxed);
}

bool log_is_on(LogLevel level)
{
    return level < LOG_OFF && (int)level >= atomic_load_explicit(&level_now, memory_order_relaxed);
}

static void now_set(char *ret_now, const char *text)
{
    size_t size = text ? text_cut(text, strlen(text), LOG_REQUEST_MAX) : 0;

    if (size > 0)
        memcpy(ret_now, text, size);
    ret_now[size] = '\0';
}

void log_set_request(const char *request_id)
{
    log_set_request_of(request_id, NULL);
}

void log_set_request_of(const char *request_id, const char *key)
{
    now_set(request_now, request_id);
    now_set(key_now, key);
}

static bool event_write(LogLevel level, const char *module, const char *message, const LogField *fields)
{
    scoped_text Text line = {0};
    text_init(&line, NULL, TEXT_MAX_LINE - TAIL_MAX);
    head_put(&line, level, module, message);
    for (const LogField *field = fields; field && field->name; field++)
        field_try(&line, field);
    line.length_max = TEXT_MAX_LINE;
    if (*request_now)
        field_put(&line, &(LogField){"request", request_now, 0});
    if (*key_now)
        field_put(&line, &(LogField){"key", key_now, 0});
    text_append(&line, format_now == LOG_JSON ? "}\n" : "\n");
    return line_write(&line);
}

void log_write_fields(LogLevel level, const char *module, const char *message, const LogField *fields)
{
    int lost;

    if (!log_is_on(level) || !event_write(level, module, message, fields) || !(lost = atomic_exchange(&left_out, 0)))
        return;
    if (!event_write(LOG_WARN, "log", "lines were left out because nobody read them",
                     (const LogField[]){LOG_INT("count", lost), {0}}))
        atomic_fetch_add(&left_out, lost);
}

void log_error(LogLevel level, const char *module, const char *message, const Error *error)
{
    LogField fields[] = {
        LOG_STR("error", error->text),
        LOG_STR("code", error_name(error->code)),
        LOG_STR("file", error->file),
        LOG_INT("line", error->line),
        {0},
        {0}, /* an unset field ends the list */
        {0},
    };
    int count = 4;

    if (*error->sqlstate)
        fields[count++] = (LogField)LOG_STR("sqlstate", error->sqlstate);
    if (*error_peer(error))
        fields[count] = (LogField)LOG_STR("peer", error_peer(error));
    log_write_fields(level, module, message, fields);
}
