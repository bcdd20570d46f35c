/*
 * diagram_test.c - the whole text of a diagram, and labels that try to leave their quotes.
 */
#include "process/diagram.h"

#include <string.h>

#include "test/harness/test.h"

static const char *diagram(const char *file, Arena *arena)
{
    const Definition *definition = NULL;
    Text              text;
    Error             error = {0};

    assert_ok(definition_parse("order.json", file, strlen(file), arena, &definition, &error));
    text_init(&text, arena, TEXT_MAX_BODY);
    diagram_print(definition, &text);
    return text_string(&text);
}

TEST(diagram_draws_every_kind)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    assert_string_equal(
        "flowchart TD\n"
        "    start([\"shop order\"])\n"
        "    s0[\"reserve<br/>sql shop.reserve\"]\n"
        "    c0[\"exec ./release\"]:::compensation\n"
        "    s1{\"check<br/>state.total #62; 100\"}\n"
        "    s2([\"paid<br/>wait for 2 payment, at most 1h, then go on\"])\n"
        "    s3{{\"both<br/>parallel\"}}\n"
        "    subgraph g3_0[\"stock\"]\n"
        "        s4{{\"mails<br/>each state.list, 4 at once\"}}\n"
        "        subgraph g4_0[\"mails\"]\n"
        "            s5[\"send<br/>http POST https://h/...\"]\n"
        "        end\n"
        "        j4((\"join\"))\n"
        "    end\n"
        "    subgraph g3_1[\"money\"]\n"
        "        s6[\"hold<br/>wallet hold\"]\n"
        "        s7([\"rest<br/>sleep 10m\"])\n"
        "    end\n"
        "    j3((\"join\"))\n"
        "    s8[\"bill<br/>command shop charge\"]\n"
        "    s9[[\"refund<br/>process shop refund\"]]\n"
        "    s10([\"night<br/>sleep until state.at\"])\n"
        "    s11([\"enough<br/>wait until state.votes #62;= 3\"])\n"
        "    s12[\"note<br/>set\"]\n"
        "    s13{{\"poll<br/>repeat, at most 9 times, then go on\"}}\n"
        "    subgraph g13_0[\"poll\"]\n"
        "        s14[\"ask<br/>exec ./ask\"]\n"
        "        s15([\"nap<br/>sleep 1s\"])\n"
        "    end\n"
        "    j13{\"steps.ask.n #62; 1\"}\n"
        "    s16{\"more<br/>state.more\"}\n"
        "    s17([\"refuse<br/>fail no more\"])\n"
        "    s18([\"again<br/>continue as new\"])\n"
        "    finish([\"end\"])\n"
        "    start --> s0\n"
        "    s0 -.->|compensate| c0\n"
        "    s0 --> s1\n"
        "    s1 -->|yes| s2\n"
        "    s1 -->|no| s3\n"
        "    s2 --> s3\n"
        "    j3 --> s8\n"
        "    s3 --> s4\n"
        "    j4 --> j3\n"
        "    s4 --> s5\n"
        "    s5 --> j4\n"
        "    s3 --> s6\n"
        "    s6 --> s7\n"
        "    s7 --> j3\n"
        "    s8 --> s9\n"
        "    s9 --> s10\n"
        "    s10 --> s11\n"
        "    s11 --> s12\n"
        "    s12 --> s13\n"
        "    j13 -->|yes| s16\n"
        "    j13 -->|no| s14\n"
        "    s13 --> s14\n"
        "    s14 --> s15\n"
        "    s15 --> j13\n"
        "    s16 -->|yes| s18\n"
        "    s16 -->|no| s17\n"
        "    s18 -.-> start\n"
        "    classDef compensation stroke-dasharray: 4 4\n",
        diagram(
            "{\"type\":\"order\",\"domain\":\"shop\",\"steps\":["
            "{\"name\":\"reserve\",\"sql\":\"shop.reserve\",\"compensate\":{\"exec\":\"./release\"}},"
            "{\"name\":\"check\",\"when\":\"state.total > 100\",\"then\":\"paid\",\"else\":\"both\"},"
            "{\"name\":\"paid\",\"wait\":{\"response\":\"payment\",\"count\":2},\"timeout\":\"1h\",\"on_timeout\":"
            "\"continue\"},"
            "{\"name\":\"both\",\"parallel\":{\"stock\":[{\"name\":\"mails\",\"each\":\"{{state.list}}\","
            "\"concurrency\":4,\"steps\":["
            "{\"name\":\"send\",\"http\":{\"method\":\"POST\",\"url\":\"https://h/{{item}}\"}}]}],"
            "\"money\":[{\"name\":\"hold\",\"wallet\":{\"kind\":\"hold\",\"owner\":\"x\",\"amount\":1}},"
            "{\"name\":\"rest\",\"sleep\":\"10m\"}]}},"
            "{\"name\":\"bill\",\"command\":{\"type\":\"charge\"}},"
            "{\"name\":\"refund\",\"process\":{\"type\":\"refund\"}},"
            "{\"name\":\"night\",\"sleep\":{\"until\":\"{{state.at}}\"}},"
            "{\"name\":\"enough\",\"wait\":{\"until\":\"state.votes >= 3\"}},"
            "{\"name\":\"note\",\"set\":{}},"
            "{\"name\":\"poll\",\"repeat\":[{\"name\":\"ask\",\"exec\":\"./ask\"},{\"name\":\"nap\",\"sleep\":\"1s\"}],"
            "\"until\":\"steps.ask.n > 1\",\"times\":9,\"on_exhausted\":\"continue\"},"
            "{\"name\":\"more\",\"when\":\"state.more\",\"then\":\"again\"},"
            "{\"name\":\"refuse\",\"fail\":\"no more\"},{\"name\":\"again\",\"continue\":{}}]}",
            arena));
}

TEST(diagram_escapes_labels)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    assert_contains(diagram("{\"type\":\"t\",\"domain\":\"d\",\"steps\":[{\"name\":\"a\",\"exec\":"
                            "\"x \\\"]; click <b>#&`\\n%%{y}\\u007f \\u00fc\"}]}",
                            arena),
                    "    s0[\"a<br/>exec x #34;]#59; click #60;b#62;#35;#38;#96; #37;#37;#123;y#125;  \xc3\xbc\"]\n");
}

TEST(diagram_shortens_labels)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    assert_contains(
        diagram("{\"type\":\"t\",\"domain\":\"d\",\"steps\":[{\"name\":\"a\",\"exec\":"
                "\"0123456789012345678901234567890123456789012345678901234567890123456789012345678\xc3\xbc!\"}]}",
                arena),
        "exec 0123456789012345678901234567890123456789012345678901234567890123456789012345678...\"]\n");
}
