#!/usr/bin/env python3
"""bot_outage - the bot while PostgreSQL fails: users are notified, nothing that was confirmed is lost, all is done afterwards, in order."""
import json
import time

from bot_api import BotApi
from checks import metric, stop_clean
from pawl_test import Database, Pawl, main, test, wait_until
from servers import Cluster, Session

OUTAGE_S = 20
SECRET = "the-webhook-s_secret"
LATER = "⏳ I can’t reach my database"
DONE_LATE = "Done. Sorry"


class Here(Database):
    """The database of a server of one's own."""

    def __init__(self, url):
        self.url = url

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass  # it goes with its server


def people(api, group, *names):
    users = [api.user(100 + n, name, username=name.lower()) for n, name in enumerate(names)]
    for user in users:
        api.message(group, user, "hello")
    return users


def known(db, count):
    """The authors of messages that are no commands."""
    wait_until(lambda: db.value("select count(*) from rating.member") == str(count), what=f"{count} members are known")


def updates(db, status):
    return int(db.value("select count(*) from pawl.command c join pawl.domain d on d.id = c.domain_id "
                        f"where d.name = 'telegram:424242' and pawl.command_status(c.id) = '{status}'"))


def matches(db):
    """Scores in the order of registration, by group."""
    return db.rows("select g.chat_id || ' ' || m.score_a || ':' || m.score_b from rating.match m join rating.groups g on g.id = m.group_id "
                   "where m.undone_at is null order by m.id")


def letters(pawl, *more):
    done = pawl.run("dlq", "list", "--json", *more)
    assert done.code == 0, done
    return json.loads(done.stdout)


def notices(api, group):
    return [text for text in api.texts(group) if LATER in text]


def outage(mode):
    with Cluster(conf="synchronous_commit = on\n") as cluster, Here(cluster.url()) as db, BotApi() as api, Pawl(db, env=api.env(**mode)) as pawl:
        assert pawl.run("migrate").code == 0
        first, second, third = [api.group(-1001 - n) for n in range(3)]
        for group in (first, second, third):
            ann, _ = people(api, group, "Ann", "Bob")
        servers = [pawl.serve("--role", "bot,api,monitor") for _ in range(2)]
        if mode:
            api.do_setwebhook({"url": f"http://{servers[0].host}:{servers[0].port}/telegram/webhook", "secret_token": SECRET}, None)
        known(db, 6)
        with Session(db.url) as session:  # it is in its transaction when the server goes
            session.do("begin; lock table rating.match in access exclusive mode")
            begun = api.message(first, ann, "/match @ann @bob 3 1")
            wait_until(lambda: db.value("select count(*) from pg_stat_activity where application_name = 'pawl' and wait_event_type = 'Lock'") != "0",
                       what="the match waits for the lock")
            wait_until(lambda: begun not in api.pending, what="it is confirmed")
            cluster.stop("immediate")
        away = time.monotonic()
        api.message(first, ann, "/match @ann @bob 3 2")
        api.message(second, ann, "/match @ann @bob 4 1")
        api.message(second, ann, "hello")  # to which there is nothing to say
        wait_until(lambda: len(notices(api, first)) == 2 and len(notices(api, second)) == 1, what="users are notified")
        wait_until(lambda: time.monotonic() >= away + 3 * OUTAGE_S / 4, what="three quarters of the outage")
        api.message(third, ann, "/match @ann @bob 5 1")
        wait_until(lambda: notices(api, third), what="also later in the outage")
        wait_until(lambda: time.monotonic() >= away + OUTAGE_S, what="the outage")
        assert len(api.pending) == 4, "nothing is confirmed that is not stored"
        cluster.start()
        wait_until(lambda: len(matches(db)) == 4, what="all matches")
        wait_until(lambda: updates(db, "COMPLETED") == 4, what="all updates")
        wait_until(lambda: api.pending == [], what="all are confirmed")
        assert [m for m in matches(db) if m.startswith("-1001 ")] == ["-1001 3:1", "-1001 3:2"], "in the order of the chat"
        wait_until(lambda: [len(api.sent(g)) for g in (first, second, third)] == [4, 2, 2], what="one answer for each")
        for group, count in ((first, 2), (second, 1), (third, 1)):
            done = [text for text in api.texts(group) if "🏆" in text]
            assert len(done) == count and len(notices(api, group)) == count, api.texts(group)
            replied = [m["reply_to_message"]["message_id"] for m in api.sent(group) if LATER in m["text"]]
            assert len(set(replied)) == count, "each of them once"
        assert DONE_LATE in next(text for text in api.texts(first) if "3:1" in text), api.texts(first)
        letter, = wait_until(lambda: [letter for letter in letters(pawl, "--status", "resolved")
                                      if letter["operation_key"] == f"424242:{begun['update_id']}"], what="the letter")
        wait_until(lambda: letters(pawl) == [], what="no letter is open")
        assert letter["operation_type"] == "match_registration" and letter["retried_by"] == "pawl", letter
        assert letter["operation_data"]["chat_id"] == -1001 and letter["operation_data"]["text"] == "/match @ann @bob 3 1", letter
        assert pawl.run("rating", "verify").code == 0
        for server in servers:
            stop_clean(server)
        return api


@test
def twenty_seconds_without_postgresql_are_said_and_made_good():
    outage({})


@test
def twenty_seconds_without_postgresql_and_a_webhook_are_said_and_made_good():
    api = outage({"PAWL_TELEGRAM_MODE": "webhook", "PAWL_TELEGRAM_WEBHOOK_SECRET": SECRET})
    assert set(api.webhook_statuses) == {200, 503}, api.webhook_statuses


def update_attempts(db, update):
    return db.rows("select o.status, o.attempts from pawl.outcome o join pawl.command c on c.id = o.id "
                   f"where c.payload->>'update_id' = '{update['update_id']}'")


@test
def a_lock_makes_a_dead_letter_until_it_is_released():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        pawl.serve("--role", "bot,api,monitor")
        known(db, 2)
        with Session(db.url) as session:
            session.do("begin; lock table rating.match in access exclusive mode")
            update = api.message(group, ann, "/match @ann @bob 3 1")
            behind = api.message(group, ann, "/match @ann @bob 3 2")
            wait_until(lambda: notices(api, group), what="the user is notified")
            letter, = wait_until(lambda: letters(pawl), what="an open letter")
            assert letter["status"] == "pending" and letter["operation_type"] == "match_registration", letter
            assert letter["operation_key"] == f"424242:{update['update_id']}" and letter["error_code"], letter
            shown = pawl.run("dlq", "list")
            assert "match_registration" in shown.stdout, shown
            # By hand, before it can be done: it stays open.
            assert pawl.run("dlq", "retry", str(letter["id"])).code == 0
            assert update_attempts(db, behind) == [], "what follows in the chat waits behind it"
            session.do("rollback")
        wait_until(lambda: len(matches(db)) == 2)
        assert [m.split()[1] for m in matches(db)] == ["3:1", "3:2"]
        wait_until(lambda: len([text for text in api.texts(group) if "🏆" in text]) == 2)
        assert DONE_LATE in next(text for text in api.texts(group) if "3:1" in text), api.texts(group)
        assert len(notices(api, group)) == 1, "once"
        wait_until(lambda: letters(pawl) == [], what="it is resolved")
        assert [row["operation_key"] for row in letters(pawl, "--status", "resolved")] == [letter["operation_key"]]


@test
def every_command_says_that_it_was_done_late():
    """The first try of each of them fails; a refusal is not called done."""
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="0s")) as pawl:
        texts = ["/top", "/me", "/help", "/chart", "/match @ann @bob 3 1", "/undo", "/match @ann @nobody 3 1"]
        groups = [api.group(-1001 - n) for n in range(len(texts))]
        for group in groups:
            ann, _ = people(api, group, "Ann", "Bob")
            api.message(group, ann, "/match @ann @bob 2 1")
        first = pawl.serve("--role", "bot,api")
        wait_until(lambda: all(len(api.sent(group)) == 1 for group in groups))
        assert not any(DONE_LATE in text for group in groups for text in api.texts(group))
        stop_clean(first)
        for group, text in zip(groups, texts):
            api.message(group, ann, text)
        pawl.serve("--role", "bot,api", env={"PAWL_FAULT": f"bot.update.before:fail:{len(texts)}"})
        wait_until(lambda: all(len(api.sent(group)) == 3 for group in groups), what="notice and answer")
        for group, text in zip(groups, texts):
            before, notice, answer = api.texts(group)
            assert LATER in notice and before, notice
            assert (DONE_LATE in answer) == ("nobody" not in text), answer
            assert answer.count(DONE_LATE) <= 1


@test
def an_update_that_several_pods_try_is_notified_once():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        first = pawl.serve("--role", "bot,api,monitor")
        known(db, 2)
        stop_clean(first)
        api.message(group, ann, "/match @ann @bob 3 1")
        for _ in range(2):  # one pod after the other fails to do it
            pod = pawl.serve("--role", "bot,api,monitor", env={"PAWL_FAULT": "bot.update.before:fail"})
            wait_until(lambda: pod.said("an update failed, will retry"))
            wait_until(lambda: len(notices(api, group)) == 1, what="the notice")
            stop_clean(pod)
        pawl.serve("--role", "bot,api,monitor")
        wait_until(lambda: matches(db) == ["-1001 3:1"])
        wait_until(lambda: any(DONE_LATE in text for text in api.texts(group)), what="the answer")
        assert len(notices(api, group)) == 1, api.texts(group)


@test
def an_update_that_always_runs_out_of_time_is_given_up():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        pawl.serve("--role", "bot,api,monitor", env={"PAWL_FAULT": "bot.update.before:fail:4"})
        update = api.message(group, ann, "/match @ann @bob 3 1")
        wait_until(lambda: any("Something went wrong" in text for text in api.texts(group)))
        assert update_attempts(db, update) == ["COMPLETED|4"], update_attempts(db, update)
        letter, = letters(pawl)
        assert letter["status"] == "failed" and "bot.update.before" in letter["error_message"], letter
        assert matches(db) == [] and len(notices(api, group)) == 1
        api.message(group, ann, "/match @ann @bob 3 2")
        wait_until(lambda: matches(db) == ["-1001 3:2"], what="the chat goes on")
        # By hand: the update has ended, so there is nothing left to wait for.
        assert pawl.run("dlq", "retry", str(letter["id"])).code == 0
        wait_until(lambda: letters(pawl) == [])


@test
def a_version_conflict_and_an_error_of_the_game_are_final():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        group = api.group(-1001)
        ann, _ = people(api, group, "Ann", "Bob")
        server = pawl.serve("--role", "bot,api,monitor")
        known(db, 2)
        db.rows("create function public.stop() returns trigger language plpgsql as $$ begin raise exception 'changed' using errcode = tg_argv[0]; end $$")
        for state, words, tries in (("RT001", "at the same moment", 4), ("XX000", "Something went wrong", 1)):
            db.rows(f"create trigger stop before insert on rating.match execute function public.stop('{state}')")
            update = api.message(group, ann, "/match @ann @bob 3 1")
            wait_until(lambda: update_attempts(db, update), what="it has ended")
            assert update_attempts(db, update) == ["COMPLETED|1"], "no second try by the bus"
            wait_until(lambda: any(words in text for text in api.texts(group)), what=words)
            assert len([line for line in server.stderr if "running again" in line and state in line]) == tries - 1, server.stderr
            db.rows("drop trigger stop on rating.match")
        assert matches(db) == [] and letters(pawl) == []
        assert metric(pawl, "pawl_telegram_handled_total", 'outcome="conflict"') == 4
        api.message(group, ann, "/match @ann @bob 3 2")
        wait_until(lambda: matches(db) == ["-1001 3:2"], what="the chat goes on")


main()
