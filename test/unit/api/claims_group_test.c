/*
 * claims_group_test.c - whose turn it is to claim over HTTP, and whose cursor is kept; without threads.
 */
#include "test/harness/test.h"

#include "api/claims_internal.h"

static void claims_init(Claims *claims, int thread_count)
{
    *claims = (Claims){.thread_count = thread_count};
    mutex_init(&claims->mutex);
    cond_init(&claims->changed);
    claim_groups_init(claims);
}

static void claims_done(Claims *claims)
{
    claim_groups_free(claims);
    cond_done(&claims->changed);
    mutex_done(&claims->mutex);
}

static ClaimGroup *group_of_key(Claims *claims, const char *key, const char *domain, int type)
{
    char        name[20];
    const char *types[] = {name};
    ClaimWait   wait    = {.key = key, .domain = domain, .types = types, .type_count = 1, .worker = "w"};

    snprintf(name, sizeof name, "t%d", type);
    return claim_group_find(claims, &wait);
}

static ClaimGroup *group_of(Claims *claims, const char *domain, int type)
{
    return group_of_key(claims, "k", domain, type);
}

static ClaimGroup *group_due_of_key(Claims *claims, const char *key, const char *domain, int type)
{
    ClaimGroup *group = group_of_key(claims, key, domain, type);

    claim_group_move(claims, group, GROUP_DUE);
    return group;
}

static ClaimGroup *group_due(Claims *claims, const char *domain, int type)
{
    return group_due_of_key(claims, "k", domain, type);
}

/* Its turn, after which it is due again, as in a scan in parts. */
static void group_turn(Claims *claims, ClaimGroup *group)
{
    claim_group_move(claims, group, GROUP_BUSY);
    claim_group_move(claims, group, GROUP_DUE);
}

TEST(claims_of_a_domain_wait_for_one_turn_of_another_whatever_its_groups)
{
    Claims      claims;
    ClaimGroup *other, *group;

    claims_init(&claims, 1);
    for (int i = 0; i < 50; i++)
        group_due(&claims, "busy", i);
    other = group_due(&claims, "other", 0);
    for (int turn = 0; turn < 100; turn++) { /* each group is due again after its turn, as in a scan in parts */
        group = claim_group_next(&claims);
        assert_non_null(group);
        assert_int_equal(turn % 2 == 1, group == other);
        if (group != other)
            group->scan_last++;
        claim_group_move(&claims, group, GROUP_BUSY);
        claim_group_move(&claims, group, GROUP_DUE);
    }
    for (int i = 0; i < 50; i++)
        assert_int_equal(group_of(&claims, "busy", i)->scan_last, 1);
    claims_done(&claims);
}

TEST(claims_of_a_domain_wait_only_for_new_domains_that_came_before)
{
    Claims      claims;
    ClaimGroup *known, *group;
    char        name[20];
    int         turns = 0;

    claims_init(&claims, 1);
    known = group_due(&claims, "shop", 0);
    for (int i = 0; i < 100; i++) {
        group = claim_group_next(&claims);
        claim_group_move(&claims, group, GROUP_BUSY);
        turns += group == known;
        snprintf(name, sizeof name, "new-%d", i);
        group_due(&claims, name, 0);
        claim_group_move(&claims, group, group == known ? GROUP_DUE : GROUP_IDLE);
    }
    assert_int_equal(turns, 13); /* there is one domain more before it each time */
    claims_done(&claims);
}

TEST(claims_of_a_domain_leave_a_thread_to_others)
{
    Claims      claims;
    ClaimGroup *first, *other;

    claims_init(&claims, 2);
    first = group_due(&claims, "busy", 1);
    claim_group_move(&claims, first, GROUP_BUSY);
    group_due(&claims, "busy", 2);
    assert_non_null(claim_group_next(&claims)); /* no other domain is known */
    other = group_of(&claims, "other", 1);
    assert_null(claim_group_next(&claims));
    claim_group_move(&claims, other, GROUP_DUE);
    assert_ptr_equal(claim_group_next(&claims), other);
    claim_group_move(&claims, other, GROUP_BUSY);
    assert_null(claim_group_next(&claims));
    claim_group_move(&claims, first, GROUP_IDLE);
    assert_non_null(claim_group_next(&claims));
    claims_done(&claims);
}

TEST(claims_of_many_types_of_a_domain_forget_no_cursor_of_another)
{
    Claims      claims;
    ClaimGroup *other, *first;

    claims_init(&claims, 2);
    other = group_due(&claims, "other", 0);
    claim_group_move(&claims, other, GROUP_IDLE);
    other->scan_last = 7;
    first            = group_due(&claims, "busy", 0);
    claim_group_move(&claims, first, GROUP_IDLE);
    first->scan_last = 7;
    for (int i = 1; i < 1000; i++)
        claim_group_move(&claims, group_due(&claims, "busy", i), GROUP_IDLE);
    assert_in_range(claims.idle_count, 1, 256);
    assert_int_equal(group_of(&claims, "other", 0)->scan_last, 7);
    assert_int_equal(group_of(&claims, "busy", 0)->scan_last, 0);
    claims_done(&claims);
}

static ClaimWait *wait_add(ClaimGroup *group, ClaimWait *wait, int until_ms, int deadline_ms, bool tried)
{
    *wait = (ClaimWait){.until    = deadline_in_ms(until_ms),
                        .deadline = deadline_in_ms(deadline_ms),
                        .tried    = tried,
                        .group    = group};
    TAILQ_INSERT_TAIL(&group->waits, wait, link);
    return wait;
}

/* One that was not tried waits beyond its own limit, because there may be something for it, but not beyond its request. */
TEST(claims_that_wait_end_in_time_for_their_requests)
{
    Claims      claims;
    ClaimGroup *group;
    ClaimWait   waits[5];
    WaitList    done = TAILQ_HEAD_INITIALIZER(done);

    claims_init(&claims, 2);
    group           = group_due(&claims, "shop", 0);
    ClaimWait *late = wait_add(group, &waits[0], -1, 9000, /* tried= */ false);
    wait_add(group, &waits[1], -1, 3600000, /* tried= */ false);
    ClaimWait *read = wait_add(group, &waits[2], -1, 3600000, /* tried= */ true);
    wait_add(group, &waits[3], 3500000, 3600000, /* tried= */ true);
    wait_add(group, &waits[4], -1, 9000, /* tried= */ false)->running = true;
    claim_waits_expire(&claims, &done);
    assert_ptr_equal(TAILQ_FIRST(&done), late);
    assert_int_equal(late->code, ERR_TIMEOUT);
    assert_ptr_equal(TAILQ_NEXT(late, link), read);
    assert_int_equal(read->code, OK);
    assert_null(TAILQ_NEXT(read, link));
    /* The one that a claim is under way for is looked at again soon. */
    assert_true(mono_before(claims.expire_at, deadline_in_ms(1000).at));
    for (ClaimWait *wait; (wait = TAILQ_FIRST(&group->waits)) != NULL;)
        TAILQ_REMOVE(&group->waits, wait, link);
    claims_done(&claims);
}

static void domain_name(char *name, size_t size, int i)
{
    snprintf(name, size, "domain-%d", i);
}

TEST(claims_of_a_key_wait_for_one_turn_of_another_whatever_its_domains)
{
    Claims      claims;
    ClaimGroup *other;
    char        name[20];

    claims_init(&claims, 1);
    for (int i = 0; i < 150; i++) {
        domain_name(name, sizeof name, i);
        group_due_of_key(&claims, "greedy", name, 0);
    }
    other = group_due_of_key(&claims, "modest", "shop", 0);
    for (int turn = 0; turn < 300; turn++) {
        ClaimGroup *group = claim_group_next(&claims);

        assert_non_null(group);
        assert_int_equal(turn % 2 == 1, group == other);
        group->scan_last++;
        group_turn(&claims, group);
    }
    for (int i = 0; i < 150; i++) { /* within a key domains take turns */
        domain_name(name, sizeof name, i);
        assert_int_equal(group_of_key(&claims, "greedy", name, 0)->scan_last, 1);
    }
    claims_done(&claims);
}

/* One domain that both keys claim from. */
TEST(claims_of_a_key_take_turns_with_those_of_another_in_one_domain)
{
    Claims      claims;
    ClaimGroup *other;

    claims_init(&claims, 1);
    for (int i = 0; i < 20; i++)
        group_due_of_key(&claims, "greedy", "shop", i);
    other = group_due_of_key(&claims, "modest", "shop", 0);
    for (int turn = 0; turn < 40; turn++) {
        ClaimGroup *group = claim_group_next(&claims);

        assert_int_equal(turn % 2 == 1, group == other);
        group_turn(&claims, group);
    }
    claims_done(&claims);
}

/* As over HTTP with domains or types that are new each time: each turn ends, and a new group comes. */
TEST(claims_of_a_key_with_new_domains_and_types_do_not_go_before_another)
{
    Claims      claims;
    ClaimGroup *other;
    char        name[20];
    int         turns = 0;

    claims_init(&claims, 1);
    other = group_due_of_key(&claims, "modest", "shop", 0);
    for (int i = 0; i < 100; i++) {
        domain_name(name, sizeof name, i);
        group_due_of_key(&claims, "greedy", name, i);
    }
    for (int i = 0; i < 100; i++) {
        ClaimGroup *group = claim_group_next(&claims);

        turns += group == other;
        claim_group_move(&claims, group, GROUP_BUSY);
        claim_group_move(&claims, group, group == other ? GROUP_DUE : GROUP_IDLE);
        domain_name(name, sizeof name, 100 + i);
        group_due_of_key(&claims, "greedy", name, i);
    }
    assert_int_equal(turns, 50);
    claims_done(&claims);
}

TEST(claims_of_a_key_leave_a_thread_to_others)
{
    Claims      claims;
    ClaimGroup *other;
    char        name[20];

    claims_init(&claims, 3);
    for (int i = 0; i < 5; i++) {
        domain_name(name, sizeof name, i);
        group_due_of_key(&claims, "greedy", name, 0);
    }
    other = group_of_key(&claims, "modest", "shop", 0);
    for (int i = 0; i < 2; i++)
        claim_group_move(&claims, claim_group_next(&claims), GROUP_BUSY);
    assert_null(claim_group_next(&claims));
    claim_group_move(&claims, other, GROUP_DUE);
    assert_ptr_equal(claim_group_next(&claims), other);
    claims_done(&claims);
}

/* Of the threads that a key has, one domain leaves one to its others. */
TEST(claims_of_a_domain_leave_a_thread_of_their_key_to_others)
{
    Claims      claims;
    ClaimGroup *other;

    claims_init(&claims, 4);
    for (int i = 0; i < 5; i++)
        group_due_of_key(&claims, "greedy", "busy", i);
    other = group_of_key(&claims, "greedy", "other", 0);
    group_of_key(&claims, "modest", "shop", 0);
    for (int i = 0; i < 2; i++)
        claim_group_move(&claims, claim_group_next(&claims), GROUP_BUSY);
    assert_null(claim_group_next(&claims));
    claim_group_move(&claims, other, GROUP_DUE);
    assert_ptr_equal(claim_group_next(&claims), other);
    claims_done(&claims);
}

TEST(claims_of_many_domains_of_a_key_forget_no_cursor_of_another)
{
    Claims      claims;
    ClaimGroup *other;
    char        name[20];

    claims_init(&claims, 2);
    for (int i = 0; i < 50; i++) {
        domain_name(name, sizeof name, i);
        other = group_due_of_key(&claims, "modest", name, 0);
        claim_group_move(&claims, other, GROUP_IDLE);
        other->scan_last = 7;
    }
    for (int i = 0; i < 1000; i++) {
        domain_name(name, sizeof name, i);
        claim_group_move(&claims, group_due_of_key(&claims, "greedy", name, 0), GROUP_IDLE);
    }
    assert_in_range(claims.idle_count, 1, 256);
    for (int i = 0; i < 50; i++) {
        domain_name(name, sizeof name, i);
        assert_int_equal(group_of_key(&claims, "modest", name, 0)->scan_last, 7);
    }
    claims_done(&claims);
}
