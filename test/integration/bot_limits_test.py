#!/usr/bin/env python3
"""bot_limits - how many messages of the bot wait: 1,000 in all, a share of them for each chat; nothing that was queued is lost."""
from bot_api import BotApi
from helpers import metric
from pawl_test import Database, Pawl, main, test, wait_until

FAST = {"PAWL_TELEGRAM_CHAT_INTERVAL": "0ms", "PAWL_TELEGRAM_GROUP_PER_MINUTE": "1000", "PAWL_TELEGRAM_PER_SECOND": "1000",
        "PAWL_RATING_USER_PER_MINUTE": "1000", "PAWL_RATING_GROUP_PER_MINUTE": "1000"}
REFUSED = 'outcome="full"'  # of pawl_telegram_messages_total


def bot(db, api, **more):
    return Pawl(db, env={**api.env(), **FAST, **more})


def waiting(db, api):
    return int(db.value(f"select pawl.telegram_waiting({api.bot_id}, 100000)"))


def held_up(db, api):
    """Messages that the server has refused with a 429. Those that are being sent do not wait, so only this number is stable."""
    return int(db.value("select count(*) from pawl.delayed w join pawl.domain d on d.id = w.domain_id "
                        f"where d.name = pawl.telegram_outbox({api.bot_id}) and w.due > now() + interval '30 min'"))


def resume(db, api):
    """The server takes messages again, and their time has come."""
    api.limited = {}
    db.rows("update pawl.telegram_chat set next_free = now(), refusals = 0; update pawl.delayed set due = now()")


def handled(db, api):
    return int(db.value("select count(*) from pawl.outcome o join pawl.command c on c.id = o.id join pawl.domain d on d.id = c.domain_id "
                        f"where d.name = 'telegram:{api.bot_id}'"))


@test
def the_1001st_message_of_the_bot_is_refused_and_none_before_it_is_lost():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        users = [api.user(5000 + n, f"P{n}") for n in range(1002)]
        chats = [api.private(user) for user in users]
        api.limited = {user["id"]: 3600 for user in users[:-1]}
        server = pawl.serve("--role", "bot,api")
        for chat, user in zip(chats[:1000], users):
            api.message(chat, user, "/start")
        wait_until(lambda: held_up(db, api) == 1000, timeout=600, what="1,000 messages wait")
        assert waiting(db, api) == 1000
        assert metric(pawl, "pawl_telegram_messages_total", REFUSED) == 0 and not server.said("outbox is full")
        api.message(chats[1000], users[1000], "/start")
        wait_until(lambda: handled(db, api) == 1001, what="the 1,001st update is handled")
        assert waiting(db, api) == 1000
        assert metric(pawl, "pawl_telegram_messages_total", REFUSED) == 1, "it is counted"
        wait_until(lambda: server.said("outbox is full: messages were refused"), what="it is logged")
        resume(db, api)
        wait_until(lambda: all(api.sent(chat) for chat in chats[:1000]), timeout=600, what="all that were queued arrive")
        assert all(len(api.sent(chat)) == 1 for chat in chats[:1000]) and not api.sent(chats[1000])
        api.message(chats[1001], users[1001], "/start")
        wait_until(lambda: api.sent(chats[1001]), what="the bot answers again")


@test
def one_chat_cannot_fill_the_outbox():
    with Database() as db, BotApi() as api, bot(db, api, PAWL_TELEGRAM_OUTBOX="260") as pawl:
        eve = api.user(666, "Eve")
        flood, group = api.private(eve), api.group(-1001)
        api.limited = {666: 3600}
        server = pawl.serve("--role", "bot,api")
        for _ in range(280):
            api.message(flood, eve, "/start")
        wait_until(lambda: handled(db, api) == 280, what="the flood is handled")
        assert 250 <= waiting(db, api) <= 251, waiting(db, api)  # and the one that the server refused
        assert metric(pawl, "pawl_telegram_messages_total", REFUSED) in (29, 30) and server.said("messages were refused")
        ann, bob = [api.user(100 + n, name, username=name.lower()) for n, name in enumerate(("Ann", "Bob"))]
        api.message(group, bob, "/me")
        api.message(group, ann, "/match @ann @bob 3 1")
        wait_until(lambda: len(api.sent(group)) == 2, what="another chat is answered")
        resume(db, api)
        wait_until(lambda: waiting(db, api) == 0, what="what was queued is sent")
        assert len(api.sent(flood)) in (250, 251)


@test
def a_429_holds_up_questions_about_members_on_all_pods():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="0ms", PAWL_TELEGRAM_GROUP_PER_MINUTE="1000")) as pawl:
        group = api.group(-1001)
        users = [api.user(100 + n, f"User{n}", f"user{n}") for n in range(12)]
        api.answer("getChatMember", 429, retry_after=3600, times=100)
        for _ in range(2):
            pawl.serve("--role", "bot,api")
        for user in users:
            api.message(group, user, "/settings k 20")
        wait_until(lambda: len(api.sent(group)) == 12)
        assert all("could not find out" in text for text in api.texts(group)), api.texts(group)
        assert len(api.calls_of("getChatMember")) == 1 and not api.calls_of("getChatAdministrators"), api.calls_of("getChatMember", "getChatAdministrators")
        assert db.value("select ask_free > now() + interval '55 min' from pawl.telegram_pace") == "t"


@test
def the_server_is_asked_once_about_a_member():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="0ms", PAWL_TELEGRAM_GROUP_PER_MINUTE="1000")) as pawl:
        group = api.group(-1001)
        ann, bob = api.user(100, "Ann", "ann"), api.user(101, "Bob", "bob")
        api.member(group, ann, "member")
        pawl.serve("--role", "bot,api")
        for n in range(5):
            api.message(group, ann, "/settings k 20")
        wait_until(lambda: len(api.sent(group)) == 5)
        assert all("Only admins" in text for text in api.texts(group)), api.texts(group)
        assert len(api.calls_of("getChatMember")) == 1
        # A server that does not say anything is not asked by every command either.
        api.answer("getChatMember", 400, times=100)
        api.answer("getChatAdministrators", 400, times=100)
        for n in range(5):
            api.message(group, bob, "/settings k 20")
        wait_until(lambda: len(api.sent(group)) == 10)
        assert db.value("select status from pawl.telegram_member where user_id = 101") == ""
        asked = len(api.calls_of("getChatAdministrators"))
        assert asked < 5 and len(api.calls_of("getChatMember")) == 1 + asked, asked
        # Who is promoted is asked about again.
        api.answers["getChatMember"].clear()
        api.member_change(group, ann, "member", "administrator")
        api.message(group, ann, "/settings k 20")
        assert "k = 20" in wait_until(lambda: api.texts(group)[10:])[0], api.texts(group)
        db.rows("update pawl.telegram_member set until = now() - interval '1 s'")
        assert db.value("select pawl.telegram_prune(30, 100) >= 2") == "t" and db.value("select count(*) from pawl.telegram_member") == "0"


@test
def rows_of_quiet_chats_are_deleted_in_both_modes():
    for mode in ({}, {"PAWL_TELEGRAM_MODE": "webhook", "PAWL_TELEGRAM_WEBHOOK_SECRET": "the-webhook-s_secret"}):
        with Database() as db, BotApi() as api, Pawl(db, env=api.env(**mode)) as pawl:
            db.rows("insert into rating.usage (group_id, player_id, at) select n, 1, now() - n * interval '1 hour' from generate_series(1, 3000) n")
            db.rows("insert into rating.question (group_id, key, player_a, player_b, score_a, score_b, asked_at) "
                    "select n, 'k' || n, 1, 2, 3, 1, now() - n * interval '1 hour' from generate_series(1, 30) n")
            pawl.serve("--role", "bot,api")
            wait_until(lambda: db.value("select count(*) from rating.usage where at < now() - interval '25 hours'") == "0")
            wait_until(lambda: db.value("select count(*) from rating.question where asked_at < now() - interval '25 hours'") == "0")
            assert db.value("select count(*) >= 23 from rating.usage") == "t" and db.value("select count(*) >= 23 from rating.question") == "t"


main()
