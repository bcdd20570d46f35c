#!/usr/bin/env python3
"""bot_limits - how many messages of the bot wait: 1,000 in all, a share of them for each chat; nothing that was queued is lost."""
from bot_api import BotApi
from checks import metric
from pawl_test import Database, Pawl, main, test, wait_until
from telegram_queue import put

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


def queued(db, api, key):
    """Messages that were queued for a chat, sent or not."""
    return int(db.value("select count(*) from pawl.command c join pawl.domain d on d.id = c.domain_id "
                        f"where d.name = pawl.telegram_outbox({api.bot_id}) and c.order_key = '{key}'"))


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
def a_match_is_confirmed_first_in_a_group_that_asks_too_much():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001)
        ann, bob = [api.user(100 + n, name, username=name.lower()) for n, name in enumerate(("Ann", "Bob"))]
        api.message(group, bob, "/me")
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.sent(group), what="the bot answers")
        api.limited = {-1001: 3600}
        for n in range(40):
            api.message(group, (ann, bob)[n % 2], "/me")
        wait_until(lambda: handled(db, api) == 41, what="the reads are handled")
        # Ten answers wait, and the one that the server refused; the others are replaced by one notice.
        assert 11 <= queued(db, api, "-1001") <= 13, queued(db, api, "-1001")
        assert queued(db, api, "-1001:busy") in (1, 2), "one in a minute"
        api.message(group, ann, "/match @ann @bob 3 1")
        wait_until(lambda: handled(db, api) == 42, what="the match is handled")
        before = len(api.calls_of("sendMessage"))
        resume(db, api)
        wait_until(lambda: waiting(db, api) == 0 and len(api.sent(group)) >= 13, what="all that wait are sent")
        texts = [call.parameters["text"] for call in api.calls_of("sendMessage")[before:]]
        assert "Ann</b> 3:1 Bob" in texts[0], texts
        assert len([text for text in texts if "3:1" in text]) == 1, texts
        assert len([text for text in texts if "faster than I may answer" in text]) in (1, 2), texts


@test
def a_match_waits_for_a_place_for_its_confirmation():
    with Database() as db, BotApi() as api, bot(db, api, PAWL_TELEGRAM_OUTBOX="20") as pawl:
        ann, bob = [api.user(100 + n, name, username=name.lower()) for n, name in enumerate(("Ann", "Bob"))]
        group = api.group(-1001)
        api.message(group, bob, "/me")
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.sent(group), what="the bot answers")
        api.limited = {-1001: 3600}
        put(db, api, -1001, [str(n) for n in range(250)], first=True)
        wait_until(lambda: held_up(db, api) == 1, what="the first is refused, and leaves its place")
        put(db, api, -1001, ["250"], key="u", first=True)
        api.message(group, ann, "/match @ann @bob 3 1")
        wait_until(lambda: db.value("select count(*) from pawl.event where details->>'reason' = 'outbox is full'") != "0", what="the match waits")
        assert db.value("select count(*) from rating.match") == "0" and len(api.sent(group)) == 1
        resume(db, api)
        wait_until(lambda: len(api.sent(group)) == 253, what="the match is confirmed")
        assert "3:1" in api.texts(group)[252] and db.value("select count(*) from rating.match") == "1"


@test
def a_mailing_of_an_application_delays_no_match():
    with Database() as db, BotApi() as api, bot(db, api, PAWL_TELEGRAM_OUTBOX="20") as pawl:
        ann, bob = [api.user(100 + n, name, username=name.lower()) for n, name in enumerate(("Ann", "Bob"))]
        group = api.group(-1001)
        api.message(group, bob, "/me")
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.sent(group), what="the bot answers")
        news = pawl.run("key", "create", "news", "--scopes", "command").stdout.strip()
        for number in range(1, 101):
            api.private(api.user(number))
        api.limited = {number: 3600 for number in range(1, 101)}
        items = [{"domain": f"telegram:{api.bot_id}:outbox", "type": "send", "order_key": str(number),
                  "payload": {"chat_id": number, "text": "news"}} for number in range(1, 101)]
        assert pawl.http("POST", "/v1/commands/batch", {"items": items}, token=news).status in (200, 201)
        wait_until(lambda: held_up(db, api) == 100, what="the mailing waits")
        api.message(group, ann, "/match @ann @bob 3 1")
        wait_until(lambda: len(api.sent(group)) == 2, what="the match is confirmed")
        assert "3:1" in api.texts(group)[1] and held_up(db, api) == 100, api.texts(group)


@test
def of_many_edits_of_a_message_the_last_one_is_sent():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001)
        users = [api.user(100 + n, f"User{n:02}", f"user{n}") for n in range(25)]
        pawl.serve("--role", "bot,api")
        for user in users:
            api.message(group, user, "/me")
        for n in range(12):
            api.message(group, users[n], f"/match @user{2 * n} @user{2 * n + 1} 3 1")
        api.message(group, users[0], "/ranking")
        wait_until(lambda: len(api.sent(group)) == 38, what="all are answered")
        board = api.sent(group)[-1]
        button = board["reply_markup"]["inline_keyboard"][0][-1]["callback_data"]
        assert not api.calls_of("editMessageText")
        api.limited = {-1001: 3600}
        for _ in range(12):
            api.callback(users[0], board, button)
        wait_until(lambda: handled(db, api) == 50, what="the presses are handled")
        wait_until(lambda: held_up(db, api) == 1, what="the first edit is refused")
        refused = len(api.calls_of("editMessageText"))
        resume(db, api)
        wait_until(lambda: waiting(db, api) == 0 and len(api.calls_of("editMessageText")) > refused, what="the last edit is sent")
        assert len(api.calls_of("editMessageText")) == refused + 1, [c.parameters for c in api.calls_of("editMessageText")]


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
def only_players_of_a_command_within_the_limits_are_asked_about():
    """A text may link 100 users, and anyone may add the bot to a group."""
    limits = {"PAWL_RATING_USER_PER_MINUTE": "6", "PAWL_RATING_GROUP_PER_MINUTE": "1000", "PAWL_TELEGRAM_PER_SECOND": "1000"}
    with Database() as db, BotApi() as api, bot(db, api, **limits) as pawl:
        group = api.group(-1001)
        eve = api.user(666, "Eve")
        links = [api.user(1000 + n, f"U{n:03}") for n in range(60)]
        for user in links:
            api.member(group, user)

        def write(text, users):
            found = [{"type": "bot_command", "offset": 0, "length": len(text)}]
            for user in users:
                found.append({"type": "text_mention", "offset": len(text) + 1, "length": 4, "user": user})
                text += f" {user['first_name']}"
            api.message(group, eve, text, entities=found)
            return text

        def asked():
            return [int(call.parameters["user_id"]) - 1000 for call in api.calls_of("getChatMember")]

        pawl.serve("--role", "bot,api")
        write("/foo", links)
        write("/match help", links)
        write("/match", links)
        wait_until(lambda: api.sent(group), what="the answer about the format")
        wait_until(lambda: handled(db, api) == 3)
        assert asked() == [0, 1], asked()
        write("/chart", links[:12])
        wait_until(lambda: handled(db, api) == 4)
        assert asked() == list(range(8)), asked()
        for n in (20, 30, 40):
            write("/match 3 1", links[n:n + 1])
        wait_until(lambda: handled(db, api) == 7)
        assert asked() == [*range(8), 20, 30, 40], asked()
        for n in (50, 51, 52):
            write("/match 3 1", links[n:n + 1])
        wait_until(lambda: handled(db, api) == 10)
        assert "not registered" in wait_until(lambda: api.texts(group)[-1]), api.texts(group)
        assert asked() == [*range(8), 20, 30, 40], "not beyond the limits"
        assert db.value("select count(*) from rating.player where user_id between 1012 and 1019 or user_id between 1050 and 1060") == "0"


@test
def questions_about_members_keep_the_bots_rate():
    with Database() as db, BotApi() as api, bot(db, api, PAWL_TELEGRAM_PER_SECOND="2") as pawl:
        group = api.group(-1001)
        users = [api.user(100 + n, f"User{n}", f"user{n}") for n in range(12)]
        server = pawl.serve("--role", "bot,api")
        wait_until(lambda: api.commands and server.said("polls for the updates"), what="the bot has started")
        # The bot's rate is used up by messages that have reserved their times.
        db.rows(f"insert into pawl.telegram_pace (bot_id, next_free) values ({api.bot_id}, now() + interval '5 s') "
                "on conflict (bot_id) do update set next_free = excluded.next_free")
        for user in users:
            api.message(group, user, "/settings k 20")
        wait_until(lambda: handled(db, api) == 12)
        assert len(api.calls_of("getChatMember")) <= 1, "those that come before their time are not sent"


@test
def rows_of_quiet_chats_are_deleted_in_both_modes():
    for mode in ({}, {"PAWL_TELEGRAM_MODE": "webhook", "PAWL_TELEGRAM_WEBHOOK_SECRET": "the-webhook-s_secret"}):
        with Database() as db, BotApi() as api, Pawl(db, env=api.env(**mode)) as pawl:
            db.rows("insert into rating.usage (group_id, player_id, at) select n, 1, now() - n * interval '1 hour' from generate_series(1, 3000) n")
            db.rows("insert into rating.question (group_id, key, player_a, player_b, score_a, score_b, asked_at) "
                    "select n, 'k' || n, 1, 2, 3, 1, now() - n * interval '1 hour' from generate_series(1, 30) n")
            pawl.serve("--role", "bot,api")
            wait_until(lambda: db.value("select count(*) from rating.usage where at < now() - interval '25 hours'") == "0",
                       timeout=180, what="the usage is deleted, 1,000 rows with each poll, which may wait for 25 s")
            wait_until(lambda: db.value("select count(*) from rating.question where asked_at < now() - interval '25 hours'") == "0")
            assert db.value("select count(*) >= 23 from rating.usage") == "t" and db.value("select count(*) >= 23 from rating.question") == "t"


main()
