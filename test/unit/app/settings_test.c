/*
 * settings_test.c - the defaults that depend on other settings or on the machine.
 */
#include "test/harness/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/settings.h"

#define NO_FILE "/dev/null" /* so that the machine's own settings are not read */

static ErrorCode load(const SettingFlag *flags, Arena *arena, Settings *ret_settings, Error *reterr)
{
    return settings_load(&(SettingsGiven){.file = NO_FILE, .flags = flags}, arena, ret_settings, reterr);
}
/* clang-format off */
#define LOAD(...) load((const SettingFlag[]){{"PAWL_HOME", "/nowhere"}, __VA_ARGS__, {NULL, NULL}}, arena, &settings, &error)

static const struct { const char *workers; int pool_max; } pools[] = {
    {"1", 3}, {"2", 4}, {"7", 9}, {"8", 10}, {"9", 10}, {"1024", 10},
};
/* clang-format on */

TEST(settings_pool_max_follows_the_threads_that_use_it)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  settings;
    Error                     error = {0};

    for (size_t i = 0; i < COUNT(pools); i++) {
        assert_ok(LOAD({"PAWL_WORKERS", pools[i].workers}));
        assert_int_equal(settings.pool_max, pools[i].pool_max);
        assert_int_equal(settings.pool_min, 2);
        assert_int_equal(settings.pool_reserved, 0);
    }
    /* pawl work: its handlers, whatever the number of CPUs. */
    static const struct {
        int handlers, pool_max;
    } works[] = {
        {1,   3 },
        {8,   10},
        {200, 10}
    };
    for (size_t i = 0; i < COUNT(works); i++) {
        SettingsGiven given = {.file = NO_FILE, .is_daemon = true, .handlers = works[i].handlers};

        assert_ok(settings_load(&given, arena, &settings, &error));
        assert_int_equal(settings.pool_max, works[i].pool_max);
        assert_int_equal(settings.pool_reserved, 1);
    }
    /* pawl serve: its HTTP threads. */
    assert_ok(settings_load(&(SettingsGiven){.file = NO_FILE, .is_daemon = true}, arena, &settings, &error));
    assert_int_equal(settings.pool_max, 10);
    assert_int_equal(settings.pool_reserved, 1);
}

/* Each kind of thread that uses the pool has its share. */
TEST(settings_pool_max_follows_the_roles_and_their_workers)
{
    static const struct {
        const char *role, *file;
        int         pool_max;
        size_t      workers;
    } cases[] = {
        {"api,worker,monitor", "",                                                                      10, 0},
        {"monitor",            "",                                                                      5,  0},
        {"api,worker",         "[worker a]\nexec = true\nconcurrency = 2\n",                            14, 1},
        {"worker",             "[worker a]\nexec = true\nconcurrency = 2\n",                            9,  1},
        {"api,worker",         "[worker a]\nexec = true\n[worker b]\nsql = a.b\n",                      30, 2},
        {"api,worker",         "[worker a]\nsql = a.b\n[worker b]\nsql = a.b\n[worker c]\nsql = a.b\n", 36, 3},
        {"api,monitor",        "[worker a]\nexec = true\n",                                             10, 1},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
        char                      path[]  = "/tmp/settings_test.XXXXXX";
        int                       fd      = mkstemp(path);
        const SettingFlag         flags[] = {
            {"PAWL_ROLE", cases[i].role},
            {NULL,        NULL         }
        };
        SettingsGiven given    = {.file = path, .flags = flags, .is_daemon = true};
        Settings      settings = {0};
        Error         error    = {0};

        assert_true(fd >= 0);
        assert_int_equal(strlen(cases[i].file), write(fd, cases[i].file, strlen(cases[i].file)));
        close(fd);
        assert_ok(settings_load(&given, arena, &settings, &error));
        unlink(path);
        assert_int_equal(cases[i].pool_max, settings.pool_max);
        assert_int_equal(cases[i].workers, settings.workers_count);
    }
}

TEST(settings_workers_have_a_domain_and_types)
{
    static const char text[] =
        "[worker a]\nexec = true\ntypes = x, y,z\n[worker b]\ndomain = c\nsql = s.f\nlease = 2s\n";
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    char                      path[]   = "/tmp/settings_test.XXXXXX";
    int                       fd       = mkstemp(path);
    Settings                  settings = {0};
    Error                     error    = {0};

    assert_true(fd >= 0);
    assert_int_equal(sizeof text - 1, write(fd, text, sizeof text - 1));
    close(fd);
    assert_ok(settings_load(&(SettingsGiven){.file = path}, arena, &settings, &error));
    unlink(path);
    const WorkerSettings *a = settings.workers_list[0].values, *b = settings.workers_list[1].values;

    assert_string_equal("a", a->domain);
    assert_string_equal("x", a->types[0]);
    assert_string_equal("y", a->types[1]);
    assert_string_equal("z", a->types[2]);
    assert_null(a->types[3]);
    assert_int_equal(8, a->concurrency);
    assert_string_equal("c", b->domain);
    assert_string_equal("s.f", b->sql);
    assert_null(b->types);
    assert_int_equal(2000, b->lease_ms);
}

TEST(settings_pool_min_gives_way_unless_it_was_given)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  settings;
    Error                     error = {0};

    assert_ok(LOAD({"PAWL_POOL_MAX", "1"}));
    assert_int_equal(settings.pool_min, 1);
    assert_ok(LOAD({"PAWL_POOL_MIN", "6"}, {"PAWL_WORKERS", "1"}));
    assert_int_equal(settings.pool_max, 6);
    assert_code(ERR_USAGE, LOAD({"PAWL_POOL_MIN", "3"}, {"PAWL_POOL_MAX", "2"}));
    assert_contains(error.text, "PAWL_POOL_MIN must be at most PAWL_POOL_MAX (2), got 3");
}

TEST(settings_defaults_are_the_documented_ones)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  settings;
    Error                     error = {0};

    assert_ok(LOAD({"PAWL_DATABASE_URL", "host=a"}));
    assert_string_equal(settings.listen, "127.0.0.1:8080");
    assert_string_equal(settings.listen_database_url, "host=a");
    assert_true(settings.workers >= 1);
    assert_int_equal(settings.role, ROLE_API | ROLE_WORKER | ROLE_MONITOR | ROLE_BOT);
    assert_int_equal(settings.breaker_failures, 5);
    assert_int_equal(settings.breaker_open, 30000);
    assert_int_equal(settings.pool_idle, 5 * 60000);
    assert_int_equal(settings.pool_lifetime, 3600000);
    assert_int_equal(settings.health_every, 30000);
    assert_int_equal(settings.drain_timeout, 30000);
    assert_int_equal(settings.close_timeout, 10000);
    assert_int_equal(settings.dlq_every, 5 * 60000);
    assert_int_equal(settings.dlq_tries, 3);
    assert_int_equal(settings_log_level(&settings), LOG_ERROR); /* of a command; of the daemon info */
}

TEST(settings_durations_fit_an_int)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  settings;
    Error                     error = {0};

    assert_ok(LOAD({"PAWL_BREAKER_OPEN", "24d"}));
    assert_true(settings.breaker_open <= INT32_MAX);
    assert_code(ERR_USAGE, LOAD({"PAWL_BREAKER_OPEN", "25d"}));
    assert_contains(error.text, "--breaker-open");
}

TEST(settings_roles_are_bits_in_any_order)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  settings;
    Error                     error = {0};

    assert_ok(LOAD({"PAWL_ROLE", "monitor,api"}));
    assert_int_equal(settings.role, ROLE_API | ROLE_MONITOR);
    assert_code(ERR_USAGE, LOAD({"PAWL_ROLE", "emperor"}));
}

TEST(settings_home_is_absolute)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  settings;
    Error                     error = {0};

    assert_code(ERR_USAGE, LOAD({"PAWL_HOME", "here"}));
    assert_string_equal(error.text, "--home: \"here\" is not an absolute path");
}

TEST(settings_webhook_is_a_url_and_never_printed)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    char                      url[SETTINGS_WEBHOOK_MAX + 2];
    Settings                  settings;
    Error                     error = {0};

    assert_ok(LOAD({"PAWL_ALERT_WEBHOOK", "https://host/path"}));
    assert_code(ERR_USAGE, LOAD({"PAWL_ALERT_WEBHOOK", "ftp://s3cr3t"}));
    assert_null(strstr(error.text, "s3cr3t"));
    assert_code(ERR_USAGE, LOAD({"PAWL_ALERT_WEBHOOK", "https://s3cr3t host/"}));
    assert_null(strstr(error.text, "s3cr3t"));
    memset(url, 'x', sizeof url - 1);
    memcpy(url, "http://h/", strlen("http://h/"));
    url[sizeof url - 1] = '\0';
    assert_code(ERR_USAGE, LOAD({"PAWL_ALERT_WEBHOOK", url}));
    url[sizeof url - 2] = '\0';
    assert_ok(LOAD({"PAWL_ALERT_WEBHOOK", url}));
}

TEST(settings_check_listen_and_urls_before_anything_is_started)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  settings;
    Error                     error = {0};

    assert_ok(LOAD({"PAWL_LISTEN", "[::1]:0"}));
    assert_ok(LOAD({"PAWL_LISTEN", ":65535"}));
    assert_code(ERR_USAGE, LOAD({"PAWL_LISTEN", "host"}));
    assert_contains(error.text, "--listen: address \"host\" must be host:port");
    assert_code(ERR_USAGE, LOAD({"PAWL_LISTEN", "host:65536"}));
    assert_code(ERR_USAGE, LOAD({"PAWL_LISTEN", "host:80 "}));
    assert_ok(LOAD({"PAWL_DATABASE_URL", "host=a,b port=5432 password=s3cr3t"}));
    assert_code(ERR_USAGE, LOAD({"PAWL_DATABASE_URL", "mysql://s3cr3t"}));
    assert_contains(error.text, "--database-url: database url must begin with postgresql://, as in");
    assert_null(strstr(error.text, "s3cr3t"));
    assert_code(ERR_USAGE, LOAD({"PAWL_DATABASE_URL", "s3cr3t:5432/d"}));
    assert_contains(error.text, "must begin with postgresql://");
    assert_null(strstr(error.text, "s3cr3t"));
    assert_code(ERR_USAGE, LOAD({"PAWL_DATABASE_URL", "host s3cr3t://"}));
    assert_contains(error.text, "missing \"=\" after \"...\"");
}
