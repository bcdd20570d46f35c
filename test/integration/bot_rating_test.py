#!/usr/bin/env python3
"""bot_rating - the game through the bot: what members of a group write, and what they see; each mistake of the bot that this one replaces."""
import collections
import os
import random
import threading
from pathlib import Path

from bot_api import BotApi, units
from checks import stop_clean
from pawl_test import Database, Pawl, Proxy, main, test, wait_until

FAST = {"PAWL_TELEGRAM_CHAT_INTERVAL": "0ms", "PAWL_TELEGRAM_GROUP_PER_MINUTE": "1000", "PAWL_TELEGRAM_PER_SECOND": "1000"}


def bot(db, api, **more):
    return Pawl(db, env={**api.env(), **FAST, **more})


def people(api, group, *names):
    """Users with usernames who have written something in the group."""
    users = [api.user(100 + n, name, username=name.lower()) for n, name in enumerate(names)]
    for user in users:
        api.member(group, user)
        api.message(group, user, "hello")
    return users


def answers(api, group, count):
    wait_until(lambda: len(api.sent(group)) >= count, what=f"{count} messages")
    got = api.texts(group)
    assert len(got) == count, got
    return got


def matches(db, where="true"):
    return int(db.value(f"select count(*) from rating.match where {where}"))


def known(db, count):
    wait_until(lambda: int(db.value("select count(*) from rating.member")) == count, what=f"{count} members are known")


@test
def from_the_first_message_to_undo():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001, "Chess", forum=True)
        ann, bob = people(api, group, "Ann", "Bob")
        # Emoji and Cyrillic before the mentions, the bot's name behind the command, a topic.
        api.message(group, ann, f"/match@{api.username} @ann @bob 3 1", topic=7)
        pawl.serve("--role", "bot,api")
        first, = answers(api, group, 1)
        assert first == "🏆 Ann 3:1 Bob\nAnn: 1516 (+16), place 1\nBob: 1484 (−16), place 2", first
        sent = api.sent(group)[0]
        assert sent["message_thread_id"] == 7, sent
        button = sent["reply_markup"]["inline_keyboard"][0][0]
        assert button["callback_data"].startswith("undo:"), button
        api.callback(bob, sent, button["callback_data"])
        wait_until(lambda: "Undone" in api.texts(group)[0], what="the message is edited")
        wait_until(lambda: api.answered, what="the press is answered")
        assert matches(db, "undone_at is null") == 0
        assert pawl.run("rating", "verify").code == 0
        assert {scope for scope, _ in api.commands} >= {"all_group_chats", "all_chat_administrators"}, api.commands
        assert not api.calls_of("setMessageReaction")
        stop_clean(pawl.server)


@test
def entities_in_utf16_and_linked_names():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        lee = api.user(300, "🎉 Анна <b>Ли</b> & co")
        api.member(group, lee)
        text = "/match 🎉 Анна <b>Ли</b> & co @bob 2:0"
        entities = [{"type": "text_mention", "offset": units("/match "), "length": units("🎉 Анна <b>Ли</b> & co"), "user": lee}]
        api.message(group, ann, text, entities=entities)
        pawl.serve("--role", "bot,api")
        got, = answers(api, group, 1)
        assert got.startswith("🏆 🎉 Анна <b>Ли</\u2060b> & co 2:0 Bob"), got


@test
def a_linked_user_who_is_not_in_the_group_is_no_player():
    """A link names any user of Telegram."""
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        pavel, lee, kim = api.user(300, "Pavel"), api.user(301, "Lee"), api.user(302, "Kim")
        api.member(group, lee)
        api.member(group, kim, "kicked")

        def match(user, score):
            text = f"/match @ann {user['first_name']} {score}"
            entities = [{"type": "text_mention", "offset": units("/match @ann "), "length": units(user["first_name"]), "user": user}]
            return api.message(group, ann, text, entities=entities)

        pawl.serve("--role", "bot,api")
        for user, score in ((pavel, "9 0"), (kim, "9 1"), (lee, "3 1"), (lee, "3 2")):
            match(user, score)
        got = answers(api, group, 4)
        assert ["I do not know Pavel here" in got[0], "I do not know Kim here" in got[1], "Ann 3:1 Lee" in got[2], "Ann 3:2 Lee" in got[3]] == [True] * 4, got
        asked = [int(call.parameters["user_id"]) for call in api.calls_of("getChatMember")]
        assert asked == [300, 302, 301], "once, and not about who is known"
        assert db.rows("select name from rating.player where user_id in (300, 302)") == []
        # A server that does not say is no reason to refuse.
        api.answer("getChatMember", 400, description="Bad Request: member list is inaccessible")
        match(api.user(303, "Ola"), "1 0")
        assert "Ann 1:0 Ola" in answers(api, group, 5)[4]
        assert matches(db) == 3


@test
def the_same_update_to_three_instances_is_one_match_and_one_answer():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        for _ in range(3):
            pawl.serve("--role", "bot,api")
        update = api.message(group, ann, "/match @ann @bob 3 1")
        for _ in range(4):
            api.again(update)
        answers(api, group, 1)
        undo = api.message(group, ann, "/undo")
        for _ in range(4):
            api.again(undo)
        assert "Undone" in answers(api, group, 2)[1]
        api.message(group, ann, "/top")
        answers(api, group, 3)
        assert matches(db) == 1 and matches(db, "undone_at is null") == 0


@test
def undo_by_reply_takes_that_match_and_a_second_one_the_match_before():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001)
        ann, bob = people(api, group, "Ann", "Bob")
        cid = api.user(400, "Edmundo", username="edmundo_undo")
        api.message(group, cid, "I would never undo anything /undo")
        pawl.serve("--role", "bot,api")
        for score in ("3 1", "3 2", "3 0"):
            api.message(group, ann, f"/match @ann @bob {score}")
        answers(api, group, 3)
        api.message(group, bob, "/undo", reply_to=api.sent(group)[0])
        assert "Ann 3:1 Bob" in answers(api, group, 4)[3]
        api.message(group, ann, "/undo")
        assert "Ann 3:0 Bob" in answers(api, group, 5)[4]
        api.message(group, ann, "/undo")
        assert "Ann 3:2 Bob" in answers(api, group, 6)[5]
        assert matches(db, "undone_at is null") == 0
        api.message(group, ann, "/match @ann @bob 1 0")
        answers(api, group, 7)
        api.message(group, cid, "/undo")
        assert "Only its players and admins" in answers(api, group, 8)[7]
        api.member_change(group, cid, "member", "administrator")
        api.message(group, cid, "/undo")
        assert "Undone" in answers(api, group, 9)[8]


@test
def edits_anonymous_admins_topics_and_strangers():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001, forum=True)
        ann, bob = people(api, group, "Ann", "Bob")
        pawl.serve("--role", "bot,api")
        update = api.message(group, ann, "/match @ann @bob 3 1")  # in the General topic
        answers(api, group, 1)
        assert "message_thread_id" not in api.sent(group)[0]
        api.edit(update, "/match @ann @bob 9 1")
        fake = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
        api.message(group, fake, "/settings k 20", sender_chat=group)
        assert "k = 20" in answers(api, group, 2)[1]
        api.message(group, fake, "/match 3 1", sender_chat=group, reply_to=update["message"])
        assert "cannot see who you are" in answers(api, group, 3)[2]
        api.message(group, bob, "/settings k 30")
        assert "Only admins" in answers(api, group, 4)[3]
        api.message(group, bob, "/match @ann @bob 5 5", forward_origin={"type": "user", "sender_user": ann, "date": 1})
        assert "cannot be forwarded" in answers(api, group, 5)[4]
        api.message(group, bob, "/match @ann @" + api.username + " 5 0")
        assert "❌" in answers(api, group, 6)[5]
        assert matches(db) == 1


@test
def who_writes_as_a_channel_has_no_rights():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        channel = {"id": 136817688, "is_bot": True, "first_name": "Channel", "username": "Channel_Bot"}
        anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
        api.message(group, ann, "/match @ann @bob 3 1")
        for text in ("/settings k 400", "/settings published on", "/undo"):
            api.message(group, channel, text, sender_chat={"id": -100777, "type": "channel", "title": "News"})
        api.message(group, anonymous, "/settings k 400")  # a server that does not say in whose name
        pawl.serve("--role", "bot,api")
        got = answers(api, group, 5)
        refused = ("Only admins", "Only admins", "Only its players and admins", "could not find out")  # the one of the match may come earlier
        assert all(sum(text in answer for answer in got) == refused.count(text) for text in refused), got
        assert matches(db, "undone_at is null") == 1
        assert db.value("select is_published::text || ' ' || rules_id from rating.groups") == "false 1"


@test
def commands_that_wait_while_a_group_moves_are_its_own():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001, "Chess")
        ann, _ = people(api, group, "Ann", "Bob")
        for n in range(5):
            api.message(group, ann, f"/match @ann @bob {n + 1} 0")
        api.migrate(group, -100999)
        pawl.serve("--role", "bot,api")
        wait_until(lambda: matches(db) == 5, what="all matches are registered")
        wait_until(lambda: db.value("select string_agg(chat_id::text, ',') from rating.groups") == "-100999", what="one group is left")
        assert db.value("select count(distinct group_id) from rating.match") == "1"
        assert pawl.run("rating", "verify").code == 0


@test
def chart_and_export_are_files():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        api.message(group, ann, "/match @ann @bob 3 1")
        api.message(group, ann, "/chart")
        api.message(group, ann, "/export")
        pawl.serve("--role", "bot,api")
        answers(api, group, 4)
        photo, = api.calls_of("sendPhoto")
        assert photo.files["photo"]["bytes"].startswith(b"\x89PNG"), photo.files
        assert len(api.calls_of("sendDocument")) == 2
        # What is kept of the messages for weeks has no files; those go when their messages have ended.
        wait_until(lambda: db.value("select count(*) from pawl.outcome o join pawl.command c using (id) where c.type in ('photo', 'document')") == "3")
        assert db.value("select max(length(payload::text)) < 1000 from pawl.command") == "t"
        db.rows("select pawl.telegram_prune(30, 100)")
        assert db.value("select count(*) from pawl.telegram_file") == "0"


@test
def only_a_pod_that_draws_loads_cairo():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        daemon = pawl.serve("--role", "bot,api")
        api.message(group, ann, "/match @ann @bob 3 1")
        answers(api, group, 1)
        assert "libcairo" not in Path(f"/proc/{daemon.pid}/maps").read_text()
        api.message(group, ann, "/chart")
        wait_until(lambda: api.calls_of("sendPhoto"), what="the chart is sent")
        assert "libcairo" in Path(f"/proc/{daemon.pid}/maps").read_text()


@test
def a_chart_without_its_library_is_refused_in_words():
    with Database() as db, BotApi() as api, bot(db, api, PAWL_FAULT="rating.cairo.load:fail") as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        server = pawl.serve("--role", "bot,api")
        api.message(group, ann, "/match @ann @bob 3 1")
        api.message(group, ann, "/chart")
        assert "libcairo2" in answers(api, group, 2)[1]
        wait_until(lambda: server.said("cannot draw a chart"))


@test
def a_group_that_moves_keeps_its_ratings():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-55, "Chess", kind="group")
        ann, _ = people(api, group, "Ann", "Bob")
        api.message(group, ann, "/match @ann @bob 3 1")
        pawl.serve("--role", "bot,api")
        answers(api, group, 1)
        moved = api.migrate(group, -1002)
        api.message(moved, ann, "/top")
        assert "Ann - 1516" in answers(api, moved, 1)[0]
        assert matches(db) == 1


@test
def an_outage_is_said_and_made_good():
    with Database() as db, Proxy(db) as proxy, BotApi() as api, Pawl(proxy.url, env={**api.env(), **FAST}) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        pawl.serve("--role", "bot,api")
        known(db, 2)
        proxy.do("mode refuse")
        proxy.do("cut")
        api.message(group, ann, "/match @ann @bob 3 1")
        proxy.do("mode pass")
        wait_until(lambda: matches(db) == 1)
        wait_until(lambda: any("1516" in text for text in api.texts(group)))


def undo_updates(api, group, user):
    """/undo in one group, and a press of the button in another."""
    sent = api.sent(group[1])[-1]
    return [api.message(group[0], user, "/undo"),
            api.callback(user, sent, sent["reply_markup"]["inline_keyboard"][0][0]["callback_data"])]


@test
def an_undo_delivered_twice_with_a_kill_in_between_takes_one_match():
    """Killed before the transaction, in it, and after its commit; each time delivered again, and run again."""
    for point in ("bot.update.before", "bot.update.game", "bot.update.after"):
        with Database() as db, BotApi() as api, bot(db, api) as pawl:
            groups = [api.group(-1001), api.group(-1002)]
            for group in groups:
                ann, _ = people(api, group, "Ann", "Bob")
            first = pawl.serve("--role", "bot,api")
            for group in groups:
                for score in ("3 1", "3 2", "3 0"):
                    api.message(group, ann, f"/match @ann @bob {score}")
            for group in groups:
                answers(api, group, 3)
            stop_clean(first)
            undos = undo_updates(api, groups, ann)
            for n in range(1, 3):  # the next one that begins an update dies there; each of the two undos meets it once
                killed = pawl.serve("--role", "bot", wait=False, env={"PAWL_FAULT": f"{point}:kill"})
                wait_until(lambda: not killed.is_running(), what=f"{point}: instance {n} is killed")
                for update in undos:
                    api.again(update)
                db.rows("update pawl.lease set until = now() - interval '1 s'")  # as if its time were over
            pawl.serve("--role", "bot,api")
            for update in undos:
                api.again(update)
            wait_until(lambda: db.value("select count(*) from pawl.lease") == "0" and matches(db, "undone_at is not null") == 2, what="both are undone")
            for group in groups:
                api.message(group, ann, "/top")
            wait_until(lambda: all("Ann" in api.texts(group)[-1] and len(api.sent(group)) >= 4 for group in groups))
            by_group = db.rows("select group_id, count(*) filter (where undone_at is not null), count(*) from rating.match group by group_id order by group_id")
            assert [row.split("|")[1:] for row in by_group] == [["1", "3"], ["1", "3"]], (point, by_group)
            assert pawl.run("rating", "verify").code == 0


@test
def the_same_undo_twice_takes_one_match():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        groups = [api.group(-1001), api.group(-1002)]
        for group in groups:
            ann, _ = people(api, group, "Ann", "Bob")
        pawl.serve("--role", "bot,api")
        pawl.serve("--role", "bot,api")
        for group in groups:
            for score in ("3 1", "3 2"):
                api.message(group, ann, f"/match @ann @bob {score}")
        for group in groups:
            answers(api, group, 2)
        undos = undo_updates(api, groups, ann)
        for update in undos * 3:
            api.again(update)
        # The same message and the same press under other numbers, as two servers of one bot would give them.
        api.update(message=undos[0]["message"])
        api.update(callback_query=undos[1]["callback_query"])
        wait_until(lambda: matches(db, "undone_at is not null") == 2)
        for group in groups:
            api.message(group, ann, "/top")
        for group in groups:
            wait_until(lambda: "Ann" in api.texts(group)[-1] and "1516" in api.texts(group)[-1], what="the answer to what was sent last")
        assert db.rows("select count(*) filter (where undone_at is not null) from rating.match group by group_id") == ["1", "1"]


@test
def two_messages_without_an_id_stay_two():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        pawl.serve("--role", "bot,api")
        one = api.message(group, ann, "/match @ann @bob 3 1", message_id=0)
        api.message(group, ann, "/match @ann @bob 3 2", message_id=0)
        api.update(message=one["message"])
        api.again(one)
        wait_until(lambda: matches(db) == 2)
        api.message(group, ann, "/top")
        wait_until(lambda: "Ann - 15" in (api.texts(group) or [""])[-1], what="the last answer")
        assert matches(db) == 2, "the same message without an id again is the same match"


class Instances:
    """Three instances, one of them killed every second; each has a name that the server sees."""

    def __init__(self, pawl, api):
        self.pawl, self.api = pawl, api
        self.count, self.killed, self.running, self.log = 0, {}, [], []
        self.stopping = threading.Event()
        for _ in range(3):
            self.start()
        self.thread = threading.Thread(target=self.run)

    def start(self):
        self.count += 1
        name = f"i{self.count}"
        self.running.append((name, self.pawl.serve("--role", "bot,api", wait=False, env={"PAWL_TELEGRAM_API_ROOT": f"{self.api.root}/via/{name}"})))

    def run(self):
        while not self.stopping.wait(1):
            name, server = self.running.pop(0)
            if not server.said("ready"):  # what has not begun would not be missed
                self.running.append((name, server))
                continue
            self.killed[name] = True
            server.kill()
            self.log += server.stderr
            self.start()

    def stop(self):
        self.stopping.set()
        self.thread.join()
        for _, server in self.running:
            self.log += server.stderr


@test
def many_matches_of_many_groups_while_instances_are_killed():
    """PAWL_TEST_BOT_MATCHES=1000 for the full size."""
    size, chats = int(os.environ.get("PAWL_TEST_BOT_MATCHES", "96")), 16
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        users = [api.user(100 + n, f"P{n}", username=f"player{n}") for n in range(6)]
        groups = [api.group(-1001 - n) for n in range(chats)]
        instances = Instances(pawl, api)
        for group in groups:
            for user in users:
                api.message(group, user, "hello")
        known(db, 6 * chats)
        db.rows("create sequence public.tries; create function public.sometimes() returns trigger language plpgsql security definer as $$ begin "
                "if nextval('public.tries') % 10 = 0 then "
                "raise exception 'changed' using errcode = 'RT001'; end if; return new; end $$;"
                "create trigger sometimes before insert on rating.match for each row execute function public.sometimes()")  # as another writer would
        instances.thread.start()
        rng = random.Random(5)
        sent = []

        def play(part):
            for n in part:
                a, b = rng.sample(range(6), 2)
                update = api.message(groups[n % chats], users[rng.randrange(6)], f"/match @player{a} @player{b} {n % 50 + 1} {n % 7}")
                sent.append((groups[n % chats]["id"], update["message"]["message_id"]))
        threads = [threading.Thread(target=play, args=(range(k, size, 4),)) for k in range(4)]
        for thread in threads:
            thread.start()
        wait_until(lambda: matches(db) == size, timeout=600, what="all matches")
        for thread in threads:
            thread.join()
        instances.stop()
        assert instances.killed, "none was killed"
        wait_until(lambda: db.value("select count(*) from pawl.command c where not exists (select from pawl.outcome o where o.id = c.id)") == "0",
                   timeout=600, what="all is done")
        assert matches(db) == size
        assert pawl.run("rating", "verify").code == 0
        calls = collections.defaultdict(list)
        for call in api.calls_of("sendMessage"):
            if call.parameters.get("reply_parameters"):
                calls[call.parameters["chat_id"], call.parameters["reply_parameters"]["message_id"]].append(call)
        assert sorted(calls) == sorted(sent), "every answer is sent at least once"
        twice = {key: made for key, made in calls.items() if len(made) > 1}
        again = set(db.rows("select distinct c.payload->>'chat_id' || ' ' || (c.payload->>'reply_to') from pawl.command c join pawl.outcome o on o.id = c.id "
                            "where o.attempts > 1 and c.payload ? 'chat_id'"))
        for (chat, message), made in twice.items():  # at most once, unless the instance died while sending
            assert all(call.via in instances.killed for call in made[:-1]), made
            assert f"{chat} {message}" in again, "its lease ran out, no answer was recorded"
        per_kill = collections.Counter(call.via for made in twice.values() for call in made[:-1])
        assert all(count <= 16 for count in per_kill.values()), "no more than it sends at the same time"
        conflicts = [line for line in instances.log if "RT001" in line and "running again" in line]
        assert conflicts, "version conflicts are retried and logged"
        print(f"# {size} matches, {len(instances.killed)} kills, {len(twice)} answers twice, {len(conflicts)} conflicts")


main()
