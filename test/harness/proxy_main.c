/*
 * proxy_main.c - pawl_test_proxy URL: the proxy for tests in other languages.
 *
 * Prints its port, then obeys one command per line on stdin, each answered by one line; ends with stdin.
 *     mode pass|refuse|stall|blackhole        delay MS        slice BYTES        cut        counts
 *     cut-commit before|sent|answered COUNT       cut-on before|sent|answered COUNT SQL
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "test/harness/proxy.h"

static const char *const modes[]   = {"pass", "refuse", "stall", "blackhole"};
static const char *const moments[] = {"before", "sent", "answered"};

static int word_find(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(word, words[i]))
            return (int)i;
    return -1;
}

static bool mode_set(Proxy *proxy, const char *arguments)
{
    int mode = word_find(arguments, modes, COUNT(modes));

    if (mode >= 0)
        proxy_set_mode(proxy, (ProxyMode)mode);
    return mode >= 0;
}

static bool delay_set(Proxy *proxy, const char *arguments)
{
    proxy_set_delay(proxy, (int)strtol(arguments, NULL, 10));
    return true;
}

static bool slice_set(Proxy *proxy, const char *arguments)
{
    proxy_set_slice(proxy, (int)strtol(arguments, NULL, 10));
    return true;
}

static bool cut_now(Proxy *proxy, const char *arguments)
{
    (void)arguments;
    proxy_cut_now(proxy);
    return true;
}

/* "answered 1 insert into": moment, count, and for cut-on a part of the statement. */
static bool trigger_set(Proxy *proxy, const char *arguments, bool is_commit)
{
    char word[16];
    int  count, length = 0;

    if (sscanf(arguments, "%15s %d %n", word, &count, &length) < 2 || (!is_commit && !arguments[length]))
        return false;
    int moment = word_find(word, moments, COUNT(moments));
    if (moment < 0)
        return false;
    if (is_commit)
        proxy_cut_commit(proxy, (ProxyMoment)moment, count);
    else
        proxy_cut_on(proxy, arguments + length, (ProxyMoment)moment, count);
    return true;
}

static bool commit_cut(Proxy *proxy, const char *arguments)
{
    return trigger_set(proxy, arguments, true);
}

static bool statement_cut(Proxy *proxy, const char *arguments)
{
    return trigger_set(proxy, arguments, false);
}

static bool counts_show(Proxy *proxy, const char *arguments)
{
    (void)proxy;
    (void)arguments;
    return true; /* every answer has them */
}

static const struct {
    const char *name;
    bool (*run)(Proxy *proxy, const char *arguments);
} commands[] = {
    {"mode",       mode_set     },
    {"delay",      delay_set    },
    {"slice",      slice_set    },
    {"cut",        cut_now      },
    {"cut-commit", commit_cut   },
    {"cut-on",     statement_cut},
    {"counts",     counts_show  },
};

static bool command_run(Proxy *proxy, char *line)
{
    char *space = strchr(line, ' ');

    if (space)
        *space++ = '\0';
    for (size_t i = 0; i < COUNT(commands); i++)
        if (!strcmp(line, commands[i].name))
            return commands[i].run(proxy, space ? space : "");
    return false;
}

int main(int argc, char **argv)
{
    char line[1024];

    if (argc != 2) {
        fprintf(stderr, "usage: pawl_test_proxy URL\n");
        return 2;
    }
    scoped(proxy_free) Proxy *proxy = proxy_new(argv[1]);
    printf("%d\n", proxy_port(proxy));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        bool        good          = command_run(proxy, line);
        ProxyCounts counts        = proxy_counts(proxy);
        printf("%s %d accepted %d open %d cut\n", good ? "ok" : "what?", counts.accepted, counts.open, counts.cuts);
        fflush(stdout);
    }
    return 0;
}
