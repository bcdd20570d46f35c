/*
 * cairo_load.c - see cairo_load.h.
 */
#include "rating/cairo_load.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/fault.h"

#define LIBRARY "libcairo.so.2"

CairoLibrary cairo_library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static Error          failure; /* its code is OK if everything was found */

static void library_load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!library) {
        (void)fail(&failure, ERR_INTERNAL, "charts need cairo (Debian: libcairo2): %s", dlerror());
        return;
    }
#define X(name)                                                                      \
    cairo_library.name = (__typeof__(cairo_##name) *)dlsym(library, "cairo_" #name); \
    if (!cairo_library.name)                                                         \
        (void)fail(&failure, ERR_INTERNAL, "charts need a newer cairo: %s", dlerror());
    CAIRO_FUNCTIONS(X)
#undef X
}

ErrorCode cairo_load(Error *reterr)
{
    pthread_once(&once, library_load);
    if (FAULT_NAMED("rating.cairo.load"))
        return fail(reterr, ERR_INTERNAL, "charts need cairo (Debian: libcairo2): fault at rating.cairo.load");
    return error_pass(failure.code, &failure, reterr);
}
