/*
 * setting_test.c - who wins among the sources, every refusal word by word, and the page that describes the table.
 */
#include "base/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ini.h"
#include "test/harness/test.h"

typedef struct {
    const char *database_url;
    const char *listen;
    const char *token;
    int64_t     pool_max;
    int64_t     offset;
    int64_t     wait_ms;
    int64_t     pause_ms;
    bool        audit;
    const char *log;
    uint64_t    roles;
} Settings;

static const char *const levels[] = {"debug", "info", "warn", NULL};
static const char *const roles[]  = {"api", "worker", "monitor", NULL};

static const Setting rows[] = {
    {"PAWL_DATABASE_URL", "DATABASE_URL", SETTING_TEXT, offsetof(Settings, database_url),
     .help = "libpq URL or conninfo"},
    {"PAWL_LISTEN", NULL, SETTING_TEXT, offsetof(Settings, listen), "127.0.0.1:8080", .help = "HTTP address"},
    {"PAWL_ADMIN_TOKEN", NULL, SETTING_TEXT, offsetof(Settings, token), .secret = true,
     .help = "bearer token with all scopes"},
    {"PAWL_POOL_MAX", NULL, SETTING_INT, offsetof(Settings, pool_max), "10", 1, 1000, .reloads = true,
     .help = "the largest number of connections that this process opens to PostgreSQL at the same time"},
    {"PAWL_OFFSET", NULL, SETTING_INT, offsetof(Settings, offset), .help = "any number"},
    {"PAWL_WAIT", NULL, SETTING_DURATION_MS, offsetof(Settings, wait_ms), "5s", 10, 3600000,
     .help = "how long to wait"},
    {"PAWL_PAUSE", NULL, SETTING_DURATION_MS, offsetof(Settings, pause_ms), "0", .help = "how long to pause"},
    {"PAWL_AUDIT", NULL, SETTING_BOOL, offsetof(Settings, audit), "off", .help = "keep an audit"},
    {"PAWL_LOG", NULL, SETTING_WORD, offsetof(Settings, log), "info", .words = levels,
     .help = "the least level that is logged"},
    {"PAWL_ROLE", NULL, SETTING_WORDS, offsetof(Settings, roles), "api,worker", .words = roles,
     .help = "what this process does"},
};
static const SettingTable table = {rows, COUNT(rows)};

/* A file under the temporary folder, removed at the end of the test. */
typedef struct {
    char path[64];
} TestFile;

static TestFile file_make(const char *content, size_t size)
{
    TestFile file = {"/tmp/setting_test.XXXXXX"};
    int      fd   = mkstemp(file.path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, size), size);
    close(fd);
    return file;
}

static void file_remove(TestFile *file)
{
    unlink(file->path);
}
#define scoped_file __attribute__((cleanup(file_remove))) TestFile

static const char *const environment_none[] = {NULL};

/* The message of a refusal: `given` is one environment entry. */
static void assert_refused(const char *given, const char *expected)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  settings = {.pool_max = -77};
    Error                     error    = {0};
    const char *const         list[]   = {given, NULL};

    assert_code(ERR_USAGE, setting_load(&table, &(SettingSources){.environment = list}, arena, &settings, &error));
    assert_string_equal(error.text, expected);
    assert_int_equal(settings.pool_max, -77);
}

/* The same for a file; %s in the expected message is its path. */
static void assert_file_refused(const char *content, size_t size, const char *expected)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    scoped_file               file     = file_make(content, size);
    Settings                  settings = {.pool_max = -77};
    Error                     error    = {0};
    Text                      message;

    text_init(&message, arena, TEXT_MAX_LINE);
    const char *path = strstr(expected, "FILE");
    text_print(&message, "%.*s%s%s", (int)(path - expected), expected, file.path, path + strlen("FILE"));
    assert_code(ERR_USAGE, setting_load(&table, &(SettingSources){.file = file.path}, arena, &settings, &error));
    assert_string_equal(error.text, text_string(&message));
    assert_int_equal(settings.pool_max, -77);
}

TEST(setting_defaults_stand_when_nothing_is_given)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  s;
    Error                     error = {0};

    assert_ok(setting_load(&table, &(SettingSources){.environment = environment_none}, arena, &s, &error));
    assert_null(s.database_url);
    assert_null(s.token);
    assert_string_equal(s.listen, "127.0.0.1:8080");
    assert_int_equal(s.pool_max, 10);
    assert_int_equal(s.offset, 0);
    assert_int_equal(s.wait_ms, 5000);
    assert_int_equal(s.pause_ms, 0);
    assert_false(s.audit);
    assert_ptr_equal(s.log, levels[1]);
    assert_int_equal(s.roles, 3);
}

TEST(setting_flag_beats_environment_beats_file_beats_default)
{
    static const char content[] =
        "\xef\xbb\xbf# pool\npool_max = 20\r\n\n[pawl]\n ; more\n\taudit=yes\nlog = warn\nwait = 1m\n"
        "role = monitor , api\nlisten = \"  a;b#c=d \"\noffset = -5\ndatabase_url =\n";
    scoped(arena_free) Arena *arena         = arena_new(ARENA_BYTES_DEFAULT);
    scoped_file               file          = file_make(content, strlen(content));
    const char *const         environment[] = {
        "PAWL_LOG=debug", "PAWL_WAIT=2m", "PAWL_AUDIT=", "PAWL_UNHEARD=1", "DATABASE_URL=postgres://alt", NULL};
    const SettingFlag flags[] = {
        {"PAWL_WAIT", "1h"   },
        {"PAWL_WAIT", "250ms"},
        {NULL,        NULL   }
    };
    Settings s;
    Error    error = {0};

    assert_ok(setting_load(&table, &(SettingSources){file.path, NULL, environment, flags}, arena, &s, &error));
    assert_int_equal(s.pool_max, 20);
    assert_true(s.audit);
    assert_string_equal(s.log, "debug");
    assert_int_equal(s.wait_ms, 250);
    assert_int_equal(s.roles, 5);
    assert_string_equal(s.listen, "  a;b#c=d ");
    assert_int_equal(s.offset, -5);
    assert_string_equal(s.database_url, "postgres://alt");
}

TEST(setting_own_name_beats_the_other_name)
{
    scoped(arena_free) Arena *arena         = arena_new(ARENA_BYTES_DEFAULT);
    const char *const         environment[] = {"DATABASE_URL=alt", "PAWL_DATABASE_URL=own", NULL};
    Settings                  s;
    Error                     error = {0};

    assert_ok(setting_load(&table, &(SettingSources){.environment = environment}, arena, &s, &error));
    assert_string_equal(s.database_url, "own");
}

TEST(setting_takes_the_first_usual_file_that_exists)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    scoped_file               one     = file_make("pool_max=2", 10);
    scoped_file               two     = file_make("pool_max=3\nlog=warn", 19);
    const char *const         files[] = {"/nonexistent/pawl.ini", one.path, two.path, NULL};
    Settings                  s;
    Error                     error = {0};

    assert_ok(setting_load(&table, &(SettingSources){.files = files}, arena, &s, &error));
    assert_int_equal(s.pool_max, 2);
    assert_string_equal(s.log, "info");
    assert_ok(setting_load(&table, &(SettingSources){.file = two.path, .files = files}, arena, &s, &error));
    assert_int_equal(s.pool_max, 3);
}

TEST(setting_named_file_must_exist_and_be_a_file)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  s;
    Error                     error = {0};

    assert_code(ERR_USAGE, setting_load(&table, &(SettingSources){.file = "/nonexistent.ini"}, arena, &s, &error));
    assert_string_equal(error.text, "settings file \"/nonexistent.ini\" does not exist");
    assert_code(ERR_USAGE, setting_load(&table, &(SettingSources){.file = "/tmp"}, arena, &s, &error));
    assert_string_equal(error.text, "could not read settings file \"/tmp\": Is a directory");
}

TEST(setting_refuses_wrong_values_by_name_and_location)
{
    static const struct {
        const char *given, *expected;
    } cases[] = {
        {"PAWL_POOL_MAX=ten",                                             "PAWL_POOL_MAX in the environment must be an integer from 1 to 1000, got \"ten\""        },
        {"PAWL_POOL_MAX=0",                                               "PAWL_POOL_MAX in the environment must be an integer from 1 to 1000, got \"0\""          },
        {"PAWL_POOL_MAX=1001",                                            "PAWL_POOL_MAX in the environment must be an integer from 1 to 1000, got \"1001\""       },
        {"PAWL_POOL_MAX=10x",                                             "PAWL_POOL_MAX in the environment must be an integer from 1 to 1000, got \"10x\""        },
        {"PAWL_POOL_MAX= 10",                                             "PAWL_POOL_MAX in the environment must be an integer from 1 to 1000, got \" 10\""        },
        {"PAWL_POOL_MAX=1\n2",                                            "PAWL_POOL_MAX in the environment must be an integer from 1 to 1000, got \"1\\n2\""      },
        {"PAWL_OFFSET=-",                                                 "PAWL_OFFSET in the environment must be an integer, got \"-\""                           },
        {"PAWL_OFFSET=9223372036854775808",
         "PAWL_OFFSET in the environment must be an integer, got \"9223372036854775808\""                                                                          },
        {"PAWL_OFFSET=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9zz",
         "PAWL_OFFSET in the environment must be an integer, got \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\""                                                   },
        {"PAWL_WAIT=30",                                                  "PAWL_WAIT in the environment must be a duration from 10ms to 1h, got \"30\", which has no "
                         "unit (ms, s, m, h or d)"                                                                                         },
        {"PAWL_WAIT=5ms",                                                 "PAWL_WAIT in the environment must be a duration from 10ms to 1h, got \"5ms\""           },
        {"PAWL_WAIT=2h",                                                  "PAWL_WAIT in the environment must be a duration from 10ms to 1h, got \"2h\""            },
        {"PAWL_PAUSE=soon",                                               "PAWL_PAUSE in the environment must be a duration such as 250ms, 10s or 5m, got \"soon\""},
        {"PAWL_AUDIT=maybe",                                              "PAWL_AUDIT in the environment must be on or off, got \"maybe\""                         },
        {"PAWL_LOG=loud",                                                 "PAWL_LOG in the environment must be one of debug, info, warn, got \"loud\""             },
        {"PAWL_ROLE=api,boss",
         "PAWL_ROLE in the environment must be some of api, worker, monitor, comma-separated, got \"api,boss\""                                                    },
        {"PAWL_ROLE=api,",
         "PAWL_ROLE in the environment must be some of api, worker, monitor, comma-separated, got \"api,\""                                                        },
        {"DATABASE_URL=\xff",                                             "DATABASE_URL in the environment must be text in UTF-8, got \"\xef\xbf\xbd\""            },
        {"PAWL_ADMIN_TOKEN=hush\xff",                                     "PAWL_ADMIN_TOKEN in the environment must be text in UTF-8"                              },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].given, cases[i].expected);
}

TEST(setting_refuses_wrong_flags)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  s;
    Error                     error = {0};

    assert_code(ERR_USAGE, setting_load(&table,
                                        &(SettingSources){
                                            .flags = (SettingFlag[]){{"PAWL_POOL_MAX", "many"}, {0}}
    },
                                        arena, &s, &error));
    assert_string_equal(error.text, "--pool-max must be an integer from 1 to 1000, got \"many\"");
    assert_code(ERR_USAGE, setting_load(&table,
                                        &(SettingSources){
                                            .flags = (SettingFlag[]){{"PAWL_POLL", "1"}, {0}}
    },
                                        arena, &s, &error));
    assert_string_equal(error.text, "unknown setting \"PAWL_POLL\"");
}

TEST(setting_refuses_wrong_lines_by_number)
{
#define CASE(content, expected)               \
    {                                         \
        content, sizeof content - 1, expected \
    }
    static const struct {
        const char *content;
        size_t      size;
        const char *expected;
    } cases[] = {
        CASE("\n\npool_max = ten\n", "PAWL_POOL_MAX in FILE line 3 must be an integer from 1 to 1000, got \"ten\""),
        CASE("pool_mx = 10", "unknown setting \"pool_mx\" in FILE line 1, did you mean \"pool_max\"?"),
        CASE("PAWL_POOL_MAX = ten", "PAWL_POOL_MAX in FILE line 1 must be an integer from 1 to 1000, got \"ten\""),
        CASE("pool_max = 10\nPAWL_POOL_MAX = 10", "\"PAWL_POOL_MAX\" in FILE line 2 was already set in line 1"),
        CASE("colour = red", "unknown setting \"colour\" in FILE line 1"),
        CASE("= 5", "unknown setting \"\" in FILE line 1"),
        CASE("# x\npool_max", "FILE line 2 is not of the form name = value"),
        CASE("pool_max = 1\n[pawn]\n", "unknown section in FILE line 2: it must be [pawl]"),
        CASE("[pawl\npool_max = 1\n", "unknown section in FILE line 1: it must be [pawl]"),
        CASE("pool_max = 1\nlog = info\npool_max = 1\n", "\"pool_max\" in FILE line 3 was already set in line 1"),
        CASE("pool_max = 1\0", "settings file \"FILE\" is not UTF-8 text"),
        CASE("listen = \xff\n", "settings file \"FILE\" is not UTF-8 text"),
    };
#undef CASE

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_file_refused(cases[i].content, cases[i].size, cases[i].expected);
}

typedef struct {
    const char *program;
    int64_t     count;
} Part;

static const Setting part_rows[] = {
    {"exec", NULL, SETTING_TEXT, offsetof(Part, program)},
    {"count", NULL, SETTING_INT, offsetof(Part, count), "8", 1, 100},
};
static const SettingTable part_table = {part_rows, COUNT(part_rows)};
static const SettingGroup part_group = {"worker", &part_table, sizeof(Part)};

TEST(setting_reads_sections_with_a_name)
{
    static const char         content[] = "pool_max = 7\n[worker shop]\nexec = ./charge -x\n[pawl]\nlog = warn\n"
                                          "[ worker  big mail ]\ncount = 3\n[worker none]\n";
    TestFile                  made      = file_make(content, sizeof content - 1);
    scoped(arena_free) Arena *arena     = arena_new(ARENA_BYTES_DEFAULT);
    const char *const         env[]     = {"exec=no", "PAWL_EXEC=no", NULL};
    SettingSources            sources   = {.file = made.path, .environment = env, .group = &part_group};
    Settings                  settings  = {0};
    SettingSection           *list      = NULL;
    size_t                    count     = 0;
    Error                     error     = {0};

    assert_ok(setting_load(&table, &sources, arena, &settings, &error));
    assert_int_equal(7, settings.pool_max);
    assert_string_equal("warn", settings.log);
    assert_ok(setting_load_sections(&sources, arena, &list, &count, &error));
    assert_int_equal(3, count);
    assert_string_equal("shop", list[0].name);
    assert_string_equal("./charge -x", ((Part *)list[0].values)->program);
    assert_int_equal(8, ((Part *)list[0].values)->count);
    assert_string_equal("big mail", list[1].name);
    assert_null(((Part *)list[1].values)->program);
    assert_int_equal(3, ((Part *)list[1].values)->count);
    assert_string_equal("none", list[2].name);
    assert_contains(list[2].location, "[worker none] in /tmp/setting_test.");
    assert_contains(list[2].location, " line 8");
    unlink(made.path);
}

TEST(setting_refuses_wrong_sections_by_line)
{
    static const struct {
        const char *content, *expected;
    } cases[] = {
        {"[worker a]\nexce = x\n",             "line 2, did you mean \"exec\"?"                     },
        {"[worker a]\ncount = no\n",           "line 2 must be an integer from 1 to 100, got \"no\""},
        {"[worker a]\n[worker a]\n",           "line 2 is already in line 1"                        },
        {"[worker a]\ncount = 1\ncount = 2\n", "line 3 was already set in line 2"                   },
        {"[worker]\n",                         "line 1: it must be [pawl] or [worker NAME]"         },
        {"[workers a]\n",                      "line 1: it must be [pawl] or [worker NAME]"         },
        {"[]\n",                               "line 1: it must be [pawl] or [worker NAME]"         },
        {"[\n",                                "line 1: it must be [pawl] or [worker NAME]"         },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        TestFile                  file  = file_make(cases[i].content, strlen(cases[i].content));
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        SettingSection           *list  = NULL;
        size_t                    count;
        Error                     error = {0};

        assert_code(ERR_USAGE, setting_load_sections(&(SettingSources){.file = file.path, .group = &part_group}, arena,
                                                     &list, &count, &error));
        assert_contains(error.text, cases[i].expected);
        unlink(file.path);
    }
}

TEST(setting_refuses_a_file_that_is_too_large)
{
    char *content = malloc(INI_BYTES_MAX + 1);

    assert_non_null(content);
    memset(content, '\n', INI_BYTES_MAX + 1);
    assert_file_refused(content, INI_BYTES_MAX + 1, "settings file \"FILE\" is larger than 262144 bytes");
    free(content);
}

TEST(setting_durations)
{
    static const struct {
        const char *word;
        int64_t     ms;
    } good[] = {
        {"250ms", 250      },
        {"10s",   10000    },
        {"5m",    300000   },
        {"1h",    3600000  },
        {"2d",    172800000},
        {"0",     0        }
    };
    static const char *const bad[] = {
        "", "s", "7", "-1s", "1.5s", "10 s", "1w", "1S", "9223372036854775807d", "99999999999999999999s"};
    Error error = {0};

    for (size_t i = 0; i < COUNT(good); i++) {
        int64_t ms = -1;

        assert_ok(setting_duration(good[i].word, &ms, &error));
        assert_int_equal(ms, good[i].ms);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t ms = -1;

        assert_code(ERR_INVALID, setting_duration(bad[i], &ms, &error));
        assert_contains(error.text, "must be a duration such as 250ms, 10s, 5m, 1h or 2d, got \"");
        assert_int_equal(ms, -1);
    }
    assert_code(ERR_INVALID, setting_duration("20y", &(int64_t){0}, &error));
    assert_contains(error.text, "got \"20y\", whose unit is none of ms, s, m, h and d");
}

TEST(setting_durations_are_printed_in_their_largest_whole_unit)
{
    static const struct {
        int64_t     ms;
        const char *text;
    } cases[] = {
        {0,         "0s"    },
        {1,         "1ms"   },
        {1500,      "1500ms"},
        {90000,     "90s"   },
        {3600000,   "1h"    },
        {172800000, "2d"    }
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        scoped_text Text text = {0};

        text_init(&text, NULL, TEXT_MAX_LINE);
        setting_duration_print(cases[i].ms, &text);
        assert_string_equal(text_string(&text), cases[i].text);
    }
}

TEST(setting_page_has_columns)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_BODY);
    setting_describe(&table, &text);
    assert_string_equal(text_string(&text),
                        "setting            default         meaning\n"
                        "PAWL_DATABASE_URL  (none)          libpq URL or conninfo (else DATABASE_URL)\n"
                        "PAWL_LISTEN        127.0.0.1:8080  HTTP address\n"
                        "PAWL_ADMIN_TOKEN   (none)          bearer token with all scopes\n"
                        "PAWL_POOL_MAX      10              the largest number of connections that this\n"
                        "                                   process opens to PostgreSQL at the same time\n"
                        "                                   (an integer from 1 to 1000; SIGHUP reloads\n"
                        "                                   it)\n"
                        "PAWL_OFFSET        (none)          any number (an integer)\n"
                        "PAWL_WAIT          5s              how long to wait (a duration from 10ms to 1h)\n"
                        "PAWL_PAUSE         0               how long to pause (a duration such as 250ms,\n"
                        "                                   10s or 5m)\n"
                        "PAWL_AUDIT         off             keep an audit (on or off)\n"
                        "PAWL_LOG           info            the least level that is logged (one of debug,\n"
                        "                                   info, warn)\n"
                        "PAWL_ROLE          api,worker      what this process does (some of api, worker,\n"
                        "                                   monitor, comma-separated)\n");
}
