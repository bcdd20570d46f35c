/*
 * module_test.c - the tables of all modules together.
 */
#include "api/key.h"
#include "base/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon.h"
#include "base/problem.h"
#include "bus/reserved_domain.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

/* Every row of every table, in one list. */
typedef struct {
    const MetricTable *table;
    const MetricRow   *row;
} Listed;

static size_t rows_list(Listed *list, size_t max)
{
    const MetricTable *table;
    size_t             count = 0;

    for (size_t t = 0; (table = module_metrics(t)); t++)
        for (size_t i = 0; i < table->count; i++) {
            assert_true(count < max);
            list[count++] = (Listed){table, &table->metrics[i].row};
        }
    return count;
}

TEST(metrics_of_one_name_stand_together_and_differ_in_label)
{
    Listed list[256];
    size_t count = rows_list(list, COUNT(list));

    assert_true(count > 60);
    for (size_t a = 0; a < count; a++) {
        assert_int_equal(strncmp(list[a].row->name, "pawl_", 5), 0);
        for (size_t b = 0; b < a; b++) {
            if (strcmp(list[a].row->name, list[b].row->name) != 0)
                continue;
            assert_ptr_equal(list[a].table, list[b].table);
            assert_string_equal(list[a - 1].row->name, list[a].row->name);
            assert_string_not_equal(list[a].row->label, list[b].row->label);
            assert_string_equal(list[a].row->help, list[b].row->help);
            assert_int_equal(list[a].row->kind, list[b].row->kind);
        }
    }
}

/* Links what the daemon uses, as the program does. */
static ErrorCode (*volatile const daemon_linked)(const SettingsGiven *given, Error *reterr) = daemon_run;

TEST(modules_of_the_program_have_joined)
{
    static const char *const names[] = {"base",    "bus",    "client",   "http",     "ops",   "pg",
                                        "process", "rating", "schedule", "telegram", "wallet"};

    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(module_at(i)->name, names[i]);
    assert_null(module_at(COUNT(names)));
    assert_true(daemon_linked != NULL);
}

TEST(sqlstates_of_all_modules_have_their_codes)
{
    static const struct {
        const char *sqlstate;
        ErrorCode   code;
    } rows[] = {
        {NULL,    ERR_UNAVAILABLE},
        {"",      ERR_UNAVAILABLE},
        {"40001", ERR_BUSY       },
        {"40P01", ERR_BUSY       },
        {"40003", ERR_UNKNOWN    },
        {"08007", ERR_UNKNOWN    },
        {"08006", ERR_UNAVAILABLE},
        {"57P01", ERR_UNAVAILABLE},
        {"57P03", ERR_UNAVAILABLE},
        {"57000", ERR_BUSY       },
        {"57014", ERR_TIMEOUT    },
        {"53100", ERR_UNAVAILABLE},
        {"53300", ERR_BUSY       },
        {"55P03", ERR_BUSY       },
        {"55006", ERR_BUSY       },
        {"55000", ERR_INTERNAL   },
        {"25006", ERR_UNAVAILABLE},
        {"25P03", ERR_UNAVAILABLE},
        {"25P04", ERR_UNAVAILABLE},
        {"25P02", ERR_INTERNAL   },
        {"0A000", ERR_INTERNAL   },
        {"23505", ERR_CONFLICT   },
        {"23514", ERR_INVALID    },
        {"22P02", ERR_INVALID    },
        {"28P01", ERR_REFUSED    },
        {"3D000", ERR_REFUSED    },
        {"42501", ERR_DENIED     },
        {"42601", ERR_INTERNAL   },
        {"58030", ERR_UNAVAILABLE},
        {"XX000", ERR_INTERNAL   },
        {"PW001", ERR_NOT_FOUND  },
        {"PW002", ERR_CONFLICT   },
        {"PW003", ERR_INVALID    },
        {"QW001", ERR_INVALID    },
        {"QW002", ERR_CONFLICT   },
        {"QW009", ERR_DENIED     },
        {"QW011", ERR_CONFLICT   },
        {"QW019", ERR_INVALID    },
        {"QW021", ERR_NOT_FOUND  },
        {"QW099", ERR_INTERNAL   },
        {"TG001", ERR_INVALID    },
        {"TG002", ERR_LIMIT      },
        {"ZZ999", ERR_INTERNAL   },
        {"5",     ERR_INTERNAL   },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ErrorCode code = error_from_sqlstate(rows[i].sqlstate);
        if (code != rows[i].code)
            print_error("SQLSTATE %s is %s\n", rows[i].sqlstate ? rows[i].sqlstate : "NULL", error_name(code));
        assert_int_equal(code, rows[i].code);
    }
}

TEST(sqlstates_of_outages_feed_the_breaker)
{
    static const char *const sick[] = {"08006", "08007", "53200", "57P01", "57P03", "58030"};
    static const char *const fine[] = {"23505", "40001", "40P01", "40003", "55P03", "57014", "57000", "53300",
                                       "53100", "25006", "25P03", "28P01", "42601", "PW001", "XX000", "ZZ999"};

    for (size_t i = 0; i < COUNT(sick); i++)
        assert_true(error_is_infrastructure(error_from_sqlstate(sick[i]), sick[i]));
    for (size_t i = 0; i < COUNT(fine); i++)
        assert_false(error_is_infrastructure(error_from_sqlstate(fine[i]), fine[i]));
}

TEST(every_type_of_problem_is_listed_once_with_a_meaning)
{
    Problem       a, b;
    const Module *module;
    size_t        count = 0, typed = 0;

    for (; problem_at(count, &a); count++) {
        assert_true(a.meaning && *a.meaning && a.action && *a.action);
        assert_true(problem_find(a.type, &b));
        assert_int_equal(a.code, b.code);
        for (size_t i = 0; i < count; i++)
            assert_true(problem_at(i, &b) && strcmp(a.type, b.type) != 0);
    }
    for (size_t i = 0; (module = module_at(i)); i++)
        for (const SqlState *row = module->states; row && row->sqlstate; row++) {
            Error error = {.code = row->code};

            error_set_sqlstate(&error, row->sqlstate);
            assert_true(problem_find(error_type(&error), &b));
            typed += row->type != NULL;
        }
    assert_true(typed > 10);
    assert_int_equal(count, ERROR_CODE_COUNT - 1 + typed);
    assert_false(problem_find("ok", &b));
    assert_false(problem_find("", &b));
}

/* The rows of SQL (sql/app/reserved.sql) and of C say the same about a domain. */
TEST(reserved_domains_are_the_same_in_sql)
{
    static const struct {
        const char *domain, *commands;
        bool        refuses_replies;
    } rows[] = {
        {"shop",                  "",                  false},
        {"processes",             "",                  false},
        {"process:",              "processes",         true },
        {"process:shop",          "processes",         true },
        {"telegram:",             "",                  false},
        {"telegram:shop",         "",                  false},
        {"telegram:42",           "updates of a bot",  true },
        {"telegram:42:outbox",    "messages of a bot", false},
        {"telegram:42:outbox2",   "",                  false},
        {"my.telegram:42:outbox", "",                  false},
    };
    scoped(database_free) TestDatabase *db = database_new();

    for (size_t i = 0; i < COUNT(rows); i++) {
        const ReservedDomain *row = reserved_domain_find(rows[i].domain);
        char                  sql[400];

        assert_string_equal(row ? row->commands : "", rows[i].commands);
        assert_int_equal(row && row->refuses_replies, rows[i].refuses_replies);
        snprintf(sql, sizeof sql,
                 "select count(*) from (select 1) d left join pawl.reserved_domains() r on '%s' ~ r.pattern"
                 " where (coalesce(r.commands, ''), coalesce(r.refuses_replies, false)) = ('%s', %s)",
                 rows[i].domain, rows[i].commands, rows[i].refuses_replies ? "true" : "false");
        if (database_get_i64(db, sql) != 1)
            fail_msg("SQL has another row for \"%s\"", rows[i].domain);
    }
    assert_null(reserved_domain_find(NULL));
}

/* A word that is no scope would open a domain to none, or to all. */
TEST(reserved_domains_name_scopes)
{
    const ReservedDomain *row;

    for (size_t i = 0; (row = reserved_domain_at(i)); i++)
        for (int use = 0; use < DOMAIN_USES; use++) {
            char *words = row->scopes[use] ? strdup(row->scopes[use]) : NULL, *rest = words;

            for (const char *word; (word = strsep(&rest, " "));) {
                bool found = false;

                for (int s = 0; s < SCOPE_COUNT; s++)
                    found |= strcmp(word, scope_names[s]) == 0;
                if (!found)
                    fail_msg("\"%s\" of %s is no scope", word, row->commands);
            }
            free(words);
        }
    assert_non_null(reserved_domain_at(0));
}
