/*
 * judge_test.c - what an error is about, for every code.
 */
#include "process/judge.h"

#include "test/harness/test.h"

/* W: the world, S: the step, I: the item; for a statement of pawl's own, in a transaction of code without a word from it, raised by it. */
static const char *const abouts[ERROR_CODE_COUNT] = {
    [ERR_USAGE] = "IIS",     [ERR_INVALID] = "IIS",  [ERR_NO_TOKEN] = "IIS",    [ERR_DENIED] = "IIS",
    [ERR_NOT_FOUND] = "IIS", [ERR_METHOD] = "IIS",   [ERR_SLOW] = "IIS",        [ERR_CONFLICT] = "IIS",
    [ERR_LIMIT] = "IIS",     [ERR_MEDIA] = "IIS",    [ERR_KEY_REUSED] = "IIS",  [ERR_RATE] = "IIS",
    [ERR_HEADERS] = "IIS",   [ERR_INTERNAL] = "IIS", [ERR_BUSY] = "WSS",        [ERR_TIMEOUT] = "WSS",
    [ERR_STOPPING] = "WWS",  [ERR_REFUSED] = "WWS",  [ERR_UNAVAILABLE] = "WWS", [ERR_UNKNOWN] = "WWS",
};

TEST(judge_knows_every_code)
{
    static const char letters[] = {[ABOUT_STEP] = 'S', [ABOUT_ITEM] = 'I', [ABOUT_WORLD] = 'W'};

    for (int code = OK + 1; code < ERROR_CODE_COUNT; code++) {
        char found[4] = "";

        for (int when = JUDGE_OURS; when <= JUDGE_RAISED; when++)
            found[when] = letters[judge((ErrorCode)code, (JudgeWhen)when)];
        assert_non_null(abouts[code]);
        assert_string_equal(found, abouts[code]);
    }
}
