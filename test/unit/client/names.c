/*
 * names.c - see names.h.
 */
#include "test/unit/client/names.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

typedef int Resolve(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static pthread_mutex_t mutex   = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed = PTHREAD_COND_INITIALIZER;
static bool            hangs;
static int             waiting;

static const struct {
    const char *name, *address;
} names[] = {
    {"loopback.test", "127.0.0.1"      },
    {"other.test",    "127.0.0.1"      },
    {"metadata.test", "169.254.169.254"},
};

static int resolve_hang(void)
{
    pthread_mutex_lock(&mutex);
    waiting++;
    while (hangs)
        pthread_cond_wait(&changed, &mutex);
    waiting--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return EAI_AGAIN;
}

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints, struct addrinfo **ret_list)
{
    Resolve *resolve = (Resolve *)dlsym(RTLD_NEXT, "getaddrinfo");

    if (node && strcmp(node, "hang.test") == 0)
        return resolve_hang();
    for (size_t i = 0; node && i < COUNT(names); i++)
        if (strcmp(node, names[i].name) == 0)
            return resolve(names[i].address, service, hints, ret_list);
    return resolve(node, service, hints, ret_list);
}

void names_hang(void)
{
    pthread_mutex_lock(&mutex);
    hangs = true;
    pthread_mutex_unlock(&mutex);
}

void names_release(void)
{
    pthread_mutex_lock(&mutex);
    hangs = false;
    pthread_cond_broadcast(&changed);
    while (waiting > 0)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}
