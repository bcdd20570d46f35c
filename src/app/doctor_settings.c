/*
 * doctor_settings.c - checks of the settings and of the environment.
 */
#include <string.h>
#include <unistd.h>

#include "app/doctor_internal.h"
#include "base/text.h"
#include "rating/chart.h"

ErrorCode check_settings(Doctor *doctor, Error *reterr)
{
    SettingsGiven serve = *doctor->given;

    TRY(app_open(doctor->given, APP_SETTINGS, &doctor->app, reterr));
    doctor->is_private = doctor->app->settings.database_url == NULL;
    serve.is_daemon    = true;
    TRY(settings_load(&serve, doctor->arena, &doctor->serve, reterr));
    if (!doctor->is_private) /* a malformed URL is a wrong setting */
        TRY(app_reach(doctor->app, APP_POOL, reterr));
    return doctor_ok(doctor, "home %s, %s database, pool of pawl serve %d to %d", doctor->app->settings.home,
                     doctor->is_private ? "private" : "given", (int)doctor->serve.pool_min,
                     (int)doctor->serve.pool_max);
}

/* Variables that are no settings of the program: for its handlers, its tests and the examples. */
static bool is_known_variable(const char *name, const char *const *names, size_t count)
{
    static const char *const others[] = {"PAWL_COMMAND_ID",   "PAWL_DOMAIN", "PAWL_TYPE",  "PAWL_ATTEMPT",
                                         "PAWL_MAX_ATTEMPTS", "PAWL_URL",    "PAWL_TOKEN", "PAWL_FAULT"};

    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    for (size_t i = 0; i < COUNT(others); i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return strncmp(name, "PAWL_TEST", strlen("PAWL_TEST")) == 0;
}

/* In the file a misspelled name is refused; in the environment it is ignored, because other programs may have variables like it. */
ErrorCode check_environment(Doctor *doctor, Error *reterr)
{
    const char **names = arena_alloc(doctor->arena, settings_table.count * sizeof *names);
    Text         text;

    (void)reterr;
    for (size_t i = 0; i < settings_table.count; i++)
        names[i] = settings_table.rows[i].name;
    text_init(&text, doctor->arena, TEXT_MAX_LINE);
    for (char **variable = environ; *variable; variable++) {
        const char *name = arena_bytes(doctor->arena, *variable, strcspn(*variable, "="));
        const char *near;

        if (strncmp(name, "PAWL_", strlen("PAWL_")) != 0 || is_known_variable(name, names, settings_table.count))
            continue;
        near = text_nearest(name, names, settings_table.count);
        text_print(&text, "%s%.60s is not a setting%s%s%s", text.length ? "; " : "", name,
                   near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    }
    if (text.length)
        return doctor_found(doctor, CHECK_WARN, "correct the name, or unset it: see pawl help settings", "%s",
                            text_string(&text));
    return doctor_ok(doctor, "every variable PAWL_... is a setting");
}

/* Only the bot draws. */
ErrorCode check_charts(Doctor *doctor, Error *reterr)
{
    Error error = {0};

    (void)reterr;
    if (!doctor->serve.telegram_token || !*doctor->serve.telegram_token)
        return doctor_ok(doctor, "no bot, which would draw them");
    if (chart_check(&error) != OK)
        return doctor_found(doctor, CHECK_WARN, "install the library, or /chart of the bot fails", "%s", error.text);
    return doctor_ok(doctor, "can be drawn");
}
