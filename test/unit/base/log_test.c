/*
 * log_test.c - lines as people and programs read them, through a pipe instead of standard error.
 */
#include "test/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base_metric.h"
#include "base/log.h"
#include "base/reader.h"
#include "base/sync.h"
#include "base/text.h"
#include "base/world.h"

static int   ends[2];
static World fake_world;

static Wall fake_wall(void)
{
    return (Wall){1794728482123456};
}

static void log_start(LogLevel level, LogFormat format)
{
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    fake_world      = world_real;
    fake_world.wall = fake_wall;
    world           = &fake_world;
    log_open(level, format, ends[1]);
}

/* What was written so far, in a buffer that the next call overwrites; the log is quiet again. */
static const char *log_stop(void)
{
    static char lines[65536];
    size_t      size = 0;
    ssize_t     got;

    while (size < sizeof lines - 1 && (got = read(ends[0], lines + size, sizeof lines - 1 - size)) > 0)
        size += (size_t)got;
    lines[size] = '\0';
    close(ends[0]);
    close(ends[1]);
    log_open(LOG_OFF, LOG_TEXT, STDERR_FILENO);
    world = &world_real;
    return lines;
}

/* Control characters of both sets, and those that change the direction of text. */
#define OBEYED                                                                                                       \
    "a\x1b["                                                                                                         \
    "2J\x7f\xc2\x80\xc2\x9b\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\xa8\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81" \
    "\xa9z"
#define OBEYED_SHOWN "\"a\\u001b[2J\\u007f\\u0080\\u009b\\u061c\\u200e\\u200f\\u2028\\u202a\\u202e\\u2066\\u2069z\""

TEST(log_shows_what_a_terminal_would_obey)
{
    log_start(LOG_INFO, LOG_TEXT);
    log_write(LOG_INFO, "pool", OBEYED, LOG_STR("said", OBEYED));
    log_write(LOG_INFO, "pool", "na\xc3\xafve \xe2\x82\xac", LOG_STR("said", "\xe2\x80\xae"));
    assert_string_equal(log_stop(), "2026-11-15 07:41:22.123 INFO  pool: " OBEYED_SHOWN " said=" OBEYED_SHOWN "\n"
                                    "2026-11-15 07:41:22.123 INFO  pool: na\xc3\xafve \xe2\x82\xac said=\"\\u202e\"\n");
    log_start(LOG_INFO, LOG_JSON);
    log_write(LOG_INFO, "pool", OBEYED, LOG_STR("said", OBEYED));
    assert_string_equal(
        log_stop(),
        "{\"time\":\"2026-11-15T07:41:22.123Z\",\"level\":\"info\",\"module\":\"pool\",\"message\":" OBEYED_SHOWN
        ",\"said\":" OBEYED_SHOWN "}\n");
}

TEST(log_text_line)
{
    log_start(LOG_INFO, LOG_TEXT);
    log_write(LOG_INFO, "pool", "connection lost", LOG_STR("sqlstate", "57P01"), LOG_INT("slot", 3));
    assert_string_equal(log_stop(), "2026-11-15 07:41:22.123 INFO  pool: connection lost sqlstate=57P01 slot=3\n");
}

TEST(log_json_line)
{
    log_start(LOG_INFO, LOG_JSON);
    log_set_request("req-1");
    log_write(LOG_WARN, "pool", "connection lost", LOG_STR("sqlstate", "57P01"), LOG_INT("slot", INT64_MIN));
    log_set_request(NULL);
    assert_string_equal(log_stop(), "{\"time\":\"2026-11-15T07:41:22.123Z\",\"level\":\"warn\",\"module\":\"pool\","
                                    "\"message\":\"connection lost\",\"sqlstate\":\"57P01\","
                                    "\"slot\":-9223372036854775808,\"request\":\"req-1\"}\n");
}

TEST(log_without_fields)
{
    log_start(LOG_DEBUG, LOG_TEXT);
    log_write(LOG_ERROR, "app", "stopped");
    log_write_fields(LOG_DEBUG, "app", "no list", NULL);
    assert_string_equal(log_stop(), "2026-11-15 07:41:22.123 ERROR app: stopped\n"
                                    "2026-11-15 07:41:22.123 DEBUG app: no list\n");
}

TEST(log_text_quotes_what_would_be_ambiguous)
{
    log_start(LOG_INFO, LOG_TEXT);
    log_write(LOG_INFO, "app", "x", LOG_STR("a", "two words"), LOG_STR("b", ""), LOG_STR("c", NULL),
              LOG_STR("d", "k=v"), LOG_STR("e", "say \"hi\""), LOG_STR("f", "caf\xC3\xA9"));
    assert_contains(log_stop(), "x a=\"two words\" b=\"\" c=\"\" d=\"k=v\" e=\"say \\\"hi\\\"\" f=caf\xC3\xA9\n");
}

TEST(log_lets_no_line_break_through)
{
    for (LogFormat format = LOG_TEXT; format <= LOG_JSON; format++) {
        log_start(LOG_INFO, format);
        log_set_request("id\nid");
        log_write(LOG_INFO, "app", "first\nsecond\x1B[31m", LOG_STR("value", "a\r\nb\tc"));
        log_set_request(NULL);
        const char *lines = log_stop();
        assert_non_null(strchr(lines, '\n'));
        assert_ptr_equal(strchr(lines, '\n'), lines + strlen(lines) - 1);
        assert_null(strpbrk(lines, "\r\t\x1B"));
        assert_contains(lines, "first\\nsecond");
    }
}

TEST(log_writes_valid_utf8_only)
{
    for (LogFormat format = LOG_TEXT; format <= LOG_JSON; format++) {
        log_start(LOG_INFO, format);
        log_write(LOG_INFO, "app", "bad \xFF byte", LOG_STR("value", "\xC3"));
        const char *lines = log_stop();
        assert_contains(lines, "byte");
        assert_true(text_is_utf8(lines, strlen(lines)));
    }
}

TEST(log_level_rules)
{
    log_start(LOG_WARN, LOG_TEXT);
    assert_false(log_is_on(LOG_INFO));
    assert_true(log_is_on(LOG_WARN));
    assert_true(log_is_on(LOG_ERROR));
    assert_false(log_is_on(LOG_OFF));
    log_write(LOG_INFO, "app", "unheard");
    log_write_fields(LOG_INFO, "app", "unheard", NULL);
    log_set_level(LOG_DEBUG);
    log_write(LOG_DEBUG, "app", "heard");
    log_set_level(LOG_OFF);
    log_write(LOG_ERROR, "app", "unheard");
    assert_string_equal(log_stop(), "2026-11-15 07:41:22.123 DEBUG app: heard\n");
}

static int evaluations;

static const char *evaluate(void)
{
    evaluations++;
    return "x";
}

TEST(log_evaluates_fields_only_when_on)
{
    log_start(LOG_WARN, LOG_TEXT);
    evaluations = 0;
    log_write(LOG_INFO, "app", "unheard", LOG_STR("a", evaluate()));
    assert_int_equal(evaluations, 0);
    log_write(LOG_WARN, "app", "heard", LOG_STR("a", evaluate()));
    assert_int_equal(evaluations, 1);
    log_stop();
}

/* Everything at its longest, made of the bytes that escape worst. */
TEST(log_json_line_stays_whole_when_values_are_huge)
{
    scoped_text Text huge = {0};
    Error            error;

    text_init(&huge, NULL, TEXT_MAX_BODY);
    for (int i = 0; i < 5000; i++)
        text_append(&huge, i % 2 ? "\x01" : "\xE2\x82\xAC");
    log_start(LOG_INFO, LOG_JSON);
    log_set_request(huge.bytes);
    log_write(LOG_INFO, "app", huge.bytes, LOG_STR("a", huge.bytes), LOG_STR("b", huge.bytes), LOG_STR("c", huge.bytes),
              LOG_STR("d", huge.bytes), LOG_INT("last", 7));
    log_set_request(NULL);
    const char *line = log_stop();
    assert_true(strlen(line) <= TEXT_MAX_LINE);
    assert_ok(reader_check(line, strlen(line), &error));
    assert_contains(line, "...\",\"a\":\"");            /* the message was cut, the first field came next, */
    assert_null(strstr(line, "\"d\":"));                /* no space was left for this one, */
    assert_contains(line, "\"last\":7,\"request\":\""); /* but for these */
}

/* Small fields fill the line to the brim; the end of the line still stands on it. */
TEST(log_keeps_room_for_the_end_of_the_line)
{
    LogField fields[3001] = {{0}};
    char     names[3000][16];
    Error    error;

    for (int i = 0; i < 3000; i++) {
        snprintf(names[i], sizeof names[i], "f%d", i);
        fields[i] = LOG_INT(names[i], 1);
    }
    log_start(LOG_INFO, LOG_JSON);
    log_set_request("the-request");
    log_write_fields(LOG_INFO, "app", "many", fields);
    log_set_request(NULL);
    const char *line = log_stop();
    assert_in_range(strlen(line), TEXT_MAX_LINE - 512, TEXT_MAX_LINE);
    assert_ok(reader_check(line, strlen(line), &error));
    assert_contains(line, ",\"request\":\"the-request\"}\n");
}

TEST(log_error_writes_the_text_of_the_error)
{
    Error error;

    log_start(LOG_INFO, LOG_TEXT);
    fail(&error, ERR_BUSY, "deadlock detected");
    error_set_sqlstate(&error, "40P01");
    log_error(LOG_ERROR, "tx", "rolled back", &error);
    const char *line = log_stop();
    assert_contains(line, "ERROR tx: rolled back error=\"deadlock detected\" code=ERR_BUSY file=base/log_test.c line=");
    assert_contains(line, " sqlstate=40P01\n");
}

TEST(log_error_without_sqlstate_leaves_it_out)
{
    Error error;

    log_start(LOG_INFO, LOG_JSON);
    fail(&error, ERR_TIMEOUT, "no answer");
    log_error(LOG_ERROR, "tx", "rolled back", &error);
    assert_null(strstr(log_stop(), "sqlstate"));
}

TEST(log_keeps_errno_and_survives_a_closed_pipe)
{
    log_start(LOG_INFO, LOG_TEXT);
    close(ends[0]);
    ends[0]             = open("/dev/null", O_RDONLY);
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    errno               = EDOM;
    log_write(LOG_INFO, "app", "into the void");
    int after = errno;
    signal(SIGPIPE, before);
    log_stop();
    assert_int_equal(after, EDOM);
}

#define THREADS 4
#define LINES   50

static void *log_much(void *context)
{
    log_set_request(context);
    for (int i = 0; i < LINES; i++)
        log_write(LOG_INFO, "app", "line", LOG_STR("mine", context), LOG_INT("i", i));
    return NULL;
}

TEST(log_lines_of_threads_do_not_mix_and_carry_their_own_request)
{
    static const char *const names[THREADS] = {"a", "b", "c", "d"};
    pthread_t                threads[THREADS];
    int                      count = 0;

    log_start(LOG_INFO, LOG_TEXT);
    for (int i = 0; i < THREADS; i++)
        threads[i] = thread_start("logger", log_much, (void *)(uintptr_t)names[i]);
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    const char *lines = log_stop();
    for (const char *line = lines; *line; line = strchr(line, '\n') + 1, count++) {
        char mine, request;
        int  i;
        assert_int_equal(sscanf(line, "2026-11-15 07:41:22.123 INFO app: line mine=%c i=%d request=%c\n", &mine, &i,
                                &request),
                         3);
        assert_int_equal(mine, request);
    }
    assert_int_equal(count, THREADS * LINES);
}

/* ---- a reader that does not read ---- */

enum { VOID_LINES = 5000 }; /* more than a pipe or a socket holds */

static void read_away(int fd)
{
    char bytes[4096];

    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (read(fd, bytes, sizeof bytes) > 0)
        ;
}

static void log_into_the_void(int reader, int writer)
{
    int64_t before = metric_value(&base_metrics.log_lines_left_out);
    int64_t lost;
    char    last[4096];

    log_open(LOG_INFO, LOG_TEXT, writer);
    for (int i = 0; i < VOID_LINES; i++) /* without the mend this never ends */
        log_write(LOG_INFO, "test",
                  "a line that is long enough to fill what is between the writer and the reader soon");
    lost = metric_value(&base_metrics.log_lines_left_out) - before;
    assert_in_range(lost, 1, VOID_LINES);
    assert_int_equal(fcntl(writer, F_GETFL) & O_NONBLOCK, 0); /* others may share it */
    read_away(reader);
    log_write(LOG_INFO, "test", "heard again");
    ssize_t size = read(reader, last, sizeof last - 1);
    assert_true(size > 0);
    last[size] = '\0';
    assert_contains(last, "heard again");
    char count[64];
    snprintf(count, sizeof count, "lines were left out because nobody read them count=%lld\n", (long long)lost);
    assert_contains(last, count);
    log_open(LOG_OFF, LOG_TEXT, STDERR_FILENO);
    close(reader);
    close(writer);
}

TEST(log_without_a_reader_blocks_no_thread)
{
    int pair[2];

    assert_int_equal(pipe(pair), 0);
    log_into_the_void(pair[0], pair[1]);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    log_into_the_void(pair[0], pair[1]);
}
