/*
 * conf.c - a PostgreSQL for a small machine that writes many small transactions.
 */
#include "cluster/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

#define SHARED_MB_MAX 256
#define CONF_MAX      ((size_t)16 << 10)

static const struct {
    const char *name;
    const char *value;
    const char *why;
} settings[] = {
    {"listen_addresses",                "''",                  "the unix socket is the only door"                                           },
    {"port",                            "5432",                "part of the socket's name"                                                  },
    {"unix_socket_permissions",         "0700",                NULL                                                                         },
    {"cluster_name",                    "'pawl'",              "shown by ps"                                                                },
    {"max_connections",                 "200",                 "a few pods with their pools, and interactive sessions"                      },
    {"fsync",                           "on",                  "what was answered is on disk"                                               },
    {"full_page_writes",                "on",                  NULL                                                                         },
    {"synchronous_commit",              "on",                  NULL                                                                         },
    {"wal_compression",                 "on",                  "half the WAL for little CPU"                                                },
    {"max_wal_size",                    "2GB",                 "fewer checkpoints under load: a page is written in full once per checkpoint"},
    {"checkpoint_timeout",              "15min",               NULL                                                                         },
    {"random_page_cost",                "1.1",                 "solid-state disks"                                                          },
    {"jit",                             "off",                 "short queries lose more time to compiling than they win"                    },
    {"autovacuum_naptime",              "10s",                 "queues turn over quickly: dead rows must go before claims scan past them"   },
    {"autovacuum_vacuum_scale_factor",  "0.02",                NULL                                                                         },
    {"autovacuum_analyze_scale_factor", "0.02",                NULL                                                                         },
    {"timezone",                        "'UTC'",               "the same on every machine"                                                  },
    {"log_timezone",                    "'UTC'",               NULL                                                                         },
    {"logging_collector",               "on",                  "one file per day of the week, overwritten after a week"                     },
    {"log_directory",                   "'../log'",            NULL                                                                         },
    {"log_filename",                    "'postgresql-%a.log'", NULL                                                                         },
    {"log_rotation_age",                "1d",                  NULL                                                                         },
    {"log_rotation_size",               "0",                   NULL                                                                         },
    {"log_truncate_on_rotation",        "on",                  NULL                                                                         },
    {"log_line_prefix",                 "'%m [%p] %e '",       NULL                                                                         },
    {"log_error_verbosity",             "terse",               "no keys and no statements: payloads do not belong in a log"                 },
    {"log_min_error_statement",         "panic",               NULL                                                                         },
};

/* A quarter of the memory, at most SHARED_MB_MAX: the machine has other work, and the kernel caches the rest. */
static long shared_mb(void)
{
    long mb = sysconf(_SC_PHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024);

    if (mb / 4 > SHARED_MB_MAX)
        return SHARED_MB_MAX;
    return mb / 4 > 16 ? mb / 4 : 16;
}

static void conf_print(const ClusterHome *home, Text *text)
{
    text_append(text, "# Written by pawl at each start of its private PostgreSQL; changes here are lost.\n"
                      "# Write your own settings at the end of data/postgresql.conf.\n");
    text_print(text, "unix_socket_directories = '%s'\n", home->run);
    text_print(text, "shared_buffers = %ldMB\n", shared_mb());
    for (size_t i = 0; i < COUNT(settings); i++)
        text_print(text, "%s = %s%s%s\n", settings[i].name, settings[i].value, settings[i].why ? " # " : "",
                   settings[i].why ? settings[i].why : "");
}

/* All of it, and on disk. */
static bool file_write(const char *path, int flags, mode_t mode, const char *bytes)
{
    errno = ENOSPC; /* what a short write means, which sets no errno */

    int  file    = open(path, flags | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, mode);
    bool written = file >= 0 && write(file, bytes, strlen(bytes)) == (ssize_t)strlen(bytes) && fsync(file) == 0;
    int  error   = errno;

    if (file >= 0)
        close(file);
    errno = error;
    return written;
}

ErrorCode cluster_conf_write(const ClusterHome *home, Error *reterr)
{
    char             path[PATH_MAX + 8];
    mode_t           mode = geteuid() == 0 ? 0644 : 0600; /* as root, read by another account; the file has no secret */
    scoped_text Text text = {0};

    snprintf(path, sizeof path, "%s.new", home->conf);
    text_init(&text, NULL, CONF_MAX);
    conf_print(home, &text);
    if (!file_write(path, O_CREAT | O_TRUNC, mode, text_string(&text)) || chmod(path, mode) < 0 ||
        rename(path, home->conf) < 0)
        return fail(reterr, ERR_DENIED, "cannot write \"%s\": %s", home->conf, strerror(errno));
    return OK;
}

ErrorCode cluster_conf_include(const char *data, Error *reterr)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/postgresql.conf", data);
    if (!file_write(path, O_APPEND, 0, "\ninclude '../pawl.conf'\n"))
        return fail(reterr, ERR_DENIED, "cannot write \"%s\": %s", path, strerror(errno));
    return OK;
}
