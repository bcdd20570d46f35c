/*
 * target_test.c - which URLs, hosts and addresses may be called, and what Retry-After means.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "client/client.h"
#include "client/target.h"
#include "test/harness/test.h"

TEST(target_reads_scheme_host_and_port)
{
    static const struct {
        const char *url, *host;
        int         port;
        bool        is_https;
    } rows[] = {
        {"https://example.org/x",              "example.org", 443,  true },
        {"http://example.org",                 "example.org", 80,   false},
        {"HTTPS://EXAMPLE.org./x",             "example.org", 443,  true },
        {"http://user:secret@example.org:81/", "example.org", 81,   false},
        {"http://[::1]:8080/",                 "[::1]",       8080, false},
        {"http://127.1/",                      "127.0.0.1",   80,   false}, /* as libcurl will connect to it */
        {"http://0x7f.0.0.1/",                 "127.0.0.1",   80,   false},
        {"http://2130706433/",                 "127.0.0.1",   80,   false},
    };
    Error error = {0};

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped_target Target target = {0};

        assert_ok(target_parse(rows[i].url, &target, &error));
        assert_string_equal(rows[i].host, target.host);
        assert_int_equal(rows[i].port, target.port);
        assert_int_equal(rows[i].is_https, target.is_https);
    }
}

TEST(target_refuses_what_is_no_web_address_and_repeats_none_of_it)
{
    static const char *const urls[] = {"",
                                       "secret",
                                       "secret/path",
                                       "//secret/",
                                       "file:///secret",
                                       "ftp://secret/",
                                       "gopher://secret/",
                                       "javascript:secret",
                                       "http://",
                                       "http://secret@b@example.org/",
                                       "http://secret:port/",
                                       "http://secret:99999/",
                                       "http://sec ret/",
                                       ("http://s\xc3\xa9"
                                        "cret.org/"),
                                       "http://[::1/secret",
                                       "http://[secret]/",
                                       "http://se\r\ncret/"};
    Error                    error  = {0};

    for (size_t i = 0; i < COUNT(urls); i++) {
        scoped_target Target target = {0};
        ErrorCode            code   = target_parse(urls[i], &target, &error);

        if (code != ERR_INVALID)
            fail_msg("\"%s\" gave %s", urls[i], error_name(code));
        assert_null(strstr(error.text, "cret"));
    }
}

TEST(target_refuses_a_url_that_is_too_long)
{
    static char          url[CLIENT_URL_BYTES_MAX + 2];
    scoped_target Target target = {0};
    Error                error  = {0};

    memset(url, 'a', sizeof url - 1);
    memcpy(url, "http://x/", 9);
    assert_code(ERR_INVALID, target_parse(url, &target, &error));
    assert_contains(error.text, "at most 8192 bytes");
}

TEST(target_redirects_keep_credentials_within_one_origin)
{
    static const struct {
        const char *location;
        ErrorCode   code;
        const char *url; /* where it leads */
    } rows[] = {
        {"/b?c=d",                        OK,          "https://u:p@a.org/b?c=d"},
        {"b",                             OK,          "https://u:p@a.org/x/b"  },
        {"https://a.org/b",               OK,          "https://u:p@a.org/b"    },
        {"https://evil:evil@a.org:443/b", OK,          "https://u:p@a.org:443/b"},
        {"https://a.org:444/b",           OK,          "https://a.org:444/b"    },
        {"https://evil:evil@b.org/",      OK,          "https://b.org/"         },
        {"//b.org/c",                     OK,          "https://b.org/c"        },
        {"http://a.org/b",                ERR_DENIED,  NULL                     },
        {"HTTP://b.org/",                 ERR_DENIED,  NULL                     },
        {"ftp://a.org/",                  ERR_REFUSED, NULL                     },
        {"file:///etc/passwd",            ERR_REFUSED, NULL                     },
        {"javascript:alert(1)",           ERR_REFUSED, NULL                     },
        {"https://a.org:99999/",          ERR_REFUSED, NULL                     },
        {"https://",                      ERR_REFUSED, NULL                     },
    };
    scoped_target Target from  = {0};
    Error                error = {0};

    assert_ok(target_parse("https://u:p@a.org/x/y", &from, &error));
    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped_target Target target = {0};
        ErrorCode            code   = target_redirect(&from, rows[i].location, &target, &error);
        char                *url    = NULL;

        if (code != rows[i].code)
            fail_msg("\"%s\" gave %s", rows[i].location, error_name(code));
        if (code != OK)
            continue;
        assert_int_equal(CURLUE_OK, curl_url_get(target.url, CURLUPART_URL, &url, 0));
        assert_string_equal(rows[i].url, url);
        curl_free(url);
    }
}

TEST(target_redirects_from_http_to_https_without_credentials)
{
    scoped_target Target from = {0}, target = {0};
    Error                error = {0};
    char                *user  = NULL;

    assert_ok(target_parse("http://u:p@a.org/", &from, &error));
    assert_ok(target_redirect(&from, "https://a.org/", &target, &error));
    assert_true(target.is_https);
    assert_int_equal(CURLUE_NO_USER, curl_url_get(target.url, CURLUPART_USER, &user, 0));
}

TEST(hosts_allow_names_subdomains_addresses_and_ports)
{
    static const struct {
        const char *list, *url;
        bool        allowed;
    } rows[] = {
        {NULL,               "http://any.org/",       true },
        {"",                 "http://any.org/",       true },
        {" , ",              "http://any.org/",       true },
        {"a.org",            "http://a.org/",         true },
        {"a.org",            "http://A.ORG./",        true },
        {"A.org.",           "http://a.org/",         true },
        {"a.org",            "http://b.a.org/",       false},
        {"a.org",            "http://aa.org/",        false},
        {"a.org",            "http://a.org.evil/",    false},
        {"a.org",            "http://a.org@evil/",    false},
        {"b.org, a.org",     "http://a.org/",         true },
        {"b.org a.org",      "http://a.org/",         true },
        {"*.a.org",          "http://b.a.org/",       true },
        {"*.a.org",          "http://c.b.a.org/",     true },
        {"*.a.org",          "http://a.org/",         false},
        {"*.a.org",          "http://ba.org/",        false},
        {"a.org:8443",       "https://a.org:8443/",   true },
        {"a.org:8443",       "https://a.org/",        false},
        {"a.org:443",        "https://a.org/",        true },
        {"192.0.2.7",        "http://192.0.2.7/",     true },
        {"192.0.2.7",        "http://0xc0000207/",    true },
        {"[2001:db8::1]:80", "http://[2001:db8::1]/", true },
        {"[2001:db8::1]",    "http://[2001:db8::2]/", false},
    };
    Error error = {0};

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped_target Target target = {0};

        assert_ok(hosts_check(rows[i].list, &error));
        assert_ok(target_parse(rows[i].url, &target, &error));
        if (hosts_allow(rows[i].list, &target) != rows[i].allowed)
            fail_msg("\"%s\" for %s", rows[i].list, rows[i].url);
    }
}

TEST(hosts_that_are_malformed_are_refused)
{
    static const char *const lists[] = {"*",           "*.",      ".a.org",  "a.org:",       "a.org:0",
                                        "a.org:65536", "a.org:x", "a.org/x", "http://a.org", "u@a.org",
                                        "[::1",        "*.[::1]", "a*.org",  "b.org,a;b",    "\xc3\xa9.org"};
    Error                    error   = {0};

    for (size_t i = 0; i < COUNT(lists); i++) {
        Client   *client = NULL;
        ErrorCode code   = client_new(&(ClientOptions){.allowed_hosts = lists[i]}, &client, &error);

        if (code != ERR_USAGE)
            fail_msg("\"%s\" gave %s", lists[i], error_name(code));
        assert_contains(error.text, "must be a name");
    }
}

TEST(address_tells_private_from_public)
{
    static const struct {
        const char *text;
        bool        is_private;
    } rows[] = {
        {"0.0.0.0",           true },
        {"10.1.2.3",          true },
        {"100.64.0.1",        true },
        {"100.63.255.255",    false},
        {"100.128.0.0",       false},
        {"127.0.0.1",         true },
        {"127.255.255.254",   true },
        {"128.0.0.1",         false},
        {"169.254.169.254",   true },
        {"172.15.255.255",    false},
        {"172.16.0.1",        true },
        {"172.31.255.255",    true },
        {"172.32.0.0",        false},
        {"192.0.0.8",         true },
        {"192.0.1.1",         false},
        {"192.168.1.1",       true },
        {"198.19.0.1",        true },
        {"203.0.113.9",       true },
        {"223.255.255.255",   false},
        {"224.0.0.1",         true },
        {"240.0.0.1",         true },
        {"255.255.255.255",   true },
        {"8.8.8.8",           false},
        {"::",                true },
        {"::1",               true },
        {"::ffff:127.0.0.1",  true },
        {"::ffff:8.8.8.8",    false},
        {"64:ff9b::10.0.0.1", true },
        {"64:ff9b::8.8.8.8",  false},
        {"64:ff9b:1::1",      true },
        {"fc00::1",           true },
        {"fd12::1",           true },
        {"fe80::1",           true },
        {"ff02::1",           true },
        {"2001::1",           true },
        {"2001:1ff::1",       true },
        {"2001:200::1",       false},
        {"2001:db8::1",       true },
        {"2002:7f00:1::",     true },
        {"2606:4700::1111",   false},
        {"3fff:fff::1",       true },
        {"3fff:1000::1",      false},
        {"4000::1",           true },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct sockaddr_in  v4    = {.sin_family = AF_INET};
        struct sockaddr_in6 v6    = {.sin6_family = AF_INET6};
        bool                is_v4 = inet_pton(AF_INET, rows[i].text, &v4.sin_addr) == 1;

        if (!is_v4)
            assert_int_equal(1, inet_pton(AF_INET6, rows[i].text, &v6.sin6_addr));
        if (address_is_private(is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6) != rows[i].is_private)
            fail_msg("%s", rows[i].text);
    }
    assert_true(address_is_private(&(struct sockaddr){.sa_family = AF_UNIX}));
}

TEST(retry_after_is_seconds_or_a_date)
{
    static const struct {
        const char *value;
        int         ms;
    } rows[] = {
        {NULL,                              0                        },
        {"",                                0                        },
        {"0",                               0                        },
        {"1",                               1000                     },
        {"120",                             120000                   },
        {"86400",                           CLIENT_RETRY_AFTER_MS_MAX},
        {"86401",                           CLIENT_RETRY_AFTER_MS_MAX},
        {"999999999",                       CLIENT_RETRY_AFTER_MS_MAX},
        {"99999999999999999999999999",      CLIENT_RETRY_AFTER_MS_MAX},
        {"-5",                              0                        },
        {"1.5",                             0                        },
        {"soon",                            0                        },
        {"Tue, 14 Nov 2023 22:13:30 GMT",   10000                    },
        {"Tue, 14 Nov 2023 22:13:10 GMT",   0                        },
        {"Fri, 31 Dec 9999 23:59:59 GMT",   CLIENT_RETRY_AFTER_MS_MAX},
        {"Tuesday, 14-Nov-23 22:13:30 GMT", 10000                    },
        {"Tue Nov 14 22:13:30 2023",        10000                    },
        {"Tue, 99 Nov 2023 22:13:30 GMT",   0                        },
    };
    Wall now = {1700000000LL * 1000000}; /* 2023-11-14 22:13:20 UTC */

    for (size_t i = 0; i < COUNT(rows); i++)
        if (retry_after_ms(rows[i].value, now) != rows[i].ms)
            fail_msg("\"%s\" gave %d", rows[i].value, retry_after_ms(rows[i].value, now));
}
