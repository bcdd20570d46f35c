#!/usr/bin/env python3
"""The bot's transport: updates in once, in order, by polls and webhooks; messages out once, in order, paced."""
import signal
import socket
import threading
import time

from bot_api import BotApi
from checks import alert, problem
from pawl_test import Database, Pawl, Proxy, main, test, wait_until
from servers import Receiver, Session, backends
from telegram_queue import put

SECRET = "the-webhook-s_secret"
WEBHOOK = {"PAWL_TELEGRAM_MODE": "webhook", "PAWL_TELEGRAM_WEBHOOK_SECRET": SECRET}


def updates(db, status=None):
    """Commands of updates: (update_id, status)."""
    rows = db.rows("select c.payload->>'update_id', pawl.command_status(c.id) from pawl.command c join pawl.domain d on d.id = c.domain_id "
                   "where d.name = 'telegram:424242' order by c.id")
    pairs = [(int(row.split("|")[0]), row.split("|")[1]) for row in rows]
    return [pair for pair in pairs if status in (None, pair[1])]


def metric(pawl, name):
    body = pawl.http("GET", "/metrics").body.decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in body.splitlines() if line.startswith(name))


@test
def a_poll_confirms_what_is_stored():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        group, ann = api.group(-1001), api.user(11, "Ann")
        sent = [api.message(group, ann, f"/x {n}")["update_id"] for n in range(3)]
        pawl.serve("--role", "bot,api")
        wait_until(lambda: updates(db, "COMPLETED") == [(n, "COMPLETED") for n in sent])
        wait_until(lambda: api.pending == [], what="confirmed")
        polls = api.calls_of("getUpdates")
        assert polls[0].parameters["allowed_updates"] == ["message", "edited_message", "callback_query", "my_chat_member", "chat_member"]
        assert any(call.parameters.get("offset") == sent[-1] + 1 for call in polls), polls
        assert "getMe" in [call.method for call in api.calls]
        assert db.value("select username from pawl.telegram_bot") == api.username
        assert pawl.stop() == 0


@test
def what_members_write_to_each_other_is_not_stored():
    for mode in ({}, WEBHOOK):
        with Database() as db, BotApi() as api, Pawl(db, env=api.env(**mode)) as pawl:
            group, ann, bob = api.group(-1001), api.user(11, "Ann"), api.user(12, "Bob", username="bob")
            server = pawl.serve("--role", "bot,api")
            if mode:
                api.do_setwebhook({"url": f"http://{server.host}:{server.port}/telegram/webhook", "secret_token": SECRET}, None)
            secret = api.message(group, bob, "a SECRET of ours", photo=[{"file_id": "SECRET"}])
            api.edit(secret, "an edited SECRET")
            api.update(poll={"question": "SECRET"})
            api.message(group, ann, "/match 3 1", reply_to=secret["message"])
            wait_until(lambda: len(updates(db, "COMPLETED")) == 1)
            assert len(updates(db)) == 1, "what is no command becomes none"
            stored = "\n".join(db.rows("select payload from pawl.command"))
            assert "SECRET" not in stored and "/match 3 1" in stored, stored
            wait_until(lambda: any("Ann 3:1 Bob" in text for text in api.texts(group)), what="the reply names its opponent all the same")


def players(db):
    return db.rows("select p.name, m.is_present from rating.member m join rating.player p on p.id = m.player_id order by p.user_id")


@test
def who_writes_is_noted_without_a_command():
    for mode in ({}, WEBHOOK):
        with Database() as db, BotApi() as api, Pawl(db, env=api.env(**mode)) as pawl:
            group, other, ann, bob = api.group(-1001, "Chess"), api.group(-1002), api.user(11, "Ann"), api.user(12, "Bob")
            eve = api.user(13, "Eve")
            server = pawl.serve("--role", "bot,api")
            if mode:
                api.do_setwebhook({"url": f"http://{server.host}:{server.port}/telegram/webhook", "secret_token": SECRET}, None)
            anna = {**ann, "first_name": "Anna"}
            first = api.message(group, ann, "hello")
            api.edit(first, "hallo")
            api.message(group, anna, "hello", reply_to=api.content(group, bob, "x"))
            api.message(other, anna, "hello Eve", entities=[{"type": "text_mention", "offset": 6, "length": 3, "user": eve}])
            api.message(api.private(ann), ann, "hello")
            wait_until(lambda: api.pending == [], what="all are confirmed")
            assert players(db) == ["Anna|t", "Anna|t", "Bob|t"], players(db)
            assert db.rows("select chat_id, title from rating.groups order by 1 desc") == ["-1001|Chess", "-1002|Group"]
            assert updates(db) == [] and metric(pawl, 'pawl_telegram_updates_total{outcome="noted"}') == 5
            api.message(group, None, left_chat_member=anna)
            wait_until(lambda: len(updates(db, "COMPLETED")) == 1)
            assert "Anna|f" in players(db)
            api.message(group, ann, "I am back")
            wait_until(lambda: players(db).count("Ann|t") == 2, what="she is present again, under her present name")
            # The bot comes back to a group that has removed it.
            api.member_change(group, api.me(), "member", "kicked", of_bot=True)
            wait_until(lambda: db.value("select count(*) from rating.groups where not is_active") == "1")
            api.member(group, api.me())
            api.message(group, bob, "there you are")
            wait_until(lambda: db.value("select count(*) from rating.groups where not is_active") == "0")


@test
def who_writes_is_noted_by_a_command_while_a_row_is_locked():
    """Updates of other chats do not wait for that."""
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        group, other, ann, bob = api.group(-1001), api.group(-1002), api.user(11, "Ann"), api.user(12, "Bob")
        api.message(group, ann, "hello")
        api.message(other, bob, "hello")
        pawl.serve("--role", "bot,api")
        wait_until(lambda: players(db) == ["Ann|t", "Bob|t"])
        with Session(db.url) as session:
            session.do("begin; insert into rating.member (group_id, player_id, is_present, rating, deviation, volatility) "
                       "select g.id, p.id, true, 1500, 350, 0.06 from rating.groups g, rating.player p where g.chat_id = -1001 and p.user_id = 12")
            seen = api.message(group, bob, "hello")
            api.message(other, ann, "/me")
            wait_until(lambda: api.sent(other), what="the other chat is answered")
            assert seen["update_id"] in [number for number, _ in updates(db)] and len(players(db)) == 3, (updates(db), players(db))
            session.do("rollback")
        wait_until(lambda: players(db).count("Bob|t") == 2, what="the command is done")


@test
def an_update_is_not_confirmed_while_the_database_is_away():
    with Database() as db, Proxy(db) as proxy, BotApi() as api, Pawl(proxy.url, env=api.env()) as pawl:
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.poll, what="a poll is open")
        proxy.do("mode refuse")
        proxy.do("cut")
        update = api.message(api.group(-1001), api.user(11), "/x")
        wait_until(lambda: pawl.server.said("cannot store updates"), what="it tries to store")
        assert api.pending == [update] and updates(db) == []
        proxy.do("mode pass")
        wait_until(lambda: updates(db, "COMPLETED"))
        wait_until(lambda: api.pending == [], what="confirmed")


@test
def the_same_update_five_times_to_three_instances_is_one_command():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        group, ann = api.group(-1001), api.user(11)
        servers = [pawl.serve("--role", "bot,api") for _ in range(3)]
        update = api.message(group, ann, "/x")
        for _ in range(4):
            api.again(update)
        wait_until(lambda: updates(db, "COMPLETED"))
        for _ in range(5):  # and after it was confirmed
            api.again(update)
        last = api.message(group, ann, "/x last")
        wait_until(lambda: len(updates(db, "COMPLETED")) == 2)
        assert updates(db) == [(update["update_id"], "COMPLETED"), (last["update_id"], "COMPLETED")]
        assert [s.stop() for s in servers] == [0, 0, 0]
    with Database() as db, BotApi() as api, Pawl(db, env={**api.env(), **WEBHOOK}) as pawl:
        servers = [pawl.serve("--role", "bot,api") for _ in range(3)]
        update = {"update_id": 5, "message": api.content(api.group(-1001), api.user(11), "/x")}
        statuses = []
        posts = [threading.Thread(target=lambda s=s: statuses.append(
                     api.post(f"http://{s.host}:{s.port}/telegram/webhook", update, SECRET))) for s in servers for _ in range(5)]
        for post in posts:
            post.start()
        for post in posts:
            post.join()
        assert statuses == [200] * 15, statuses
        wait_until(lambda: updates(db, "COMPLETED"))
        assert len(updates(db)) == 1


@test
def updates_of_a_chat_keep_their_order():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        groups, ann = [api.group(-1001 - n) for n in range(3)], api.user(11)
        for n in range(150):
            api.message(groups[n % 3], ann, f"/x {n}")
        pawl.serve("--role", "bot,api")
        pawl.serve("--role", "bot,api")
        wait_until(lambda: len(updates(db, "COMPLETED")) == 150)
        wrong = db.value("""
            select count(*) from (
              select c.id, o.ended_at, lag(o.ended_at) over (partition by c.order_key order by c.id) as before
              from pawl.command c join pawl.outcome o on o.id = c.id where c.order_key is not null) q
            where q.ended_at < q.before""")
        assert wrong == "0", wrong
        assert db.value("select count(distinct order_key) from pawl.command") == "3"


def head_only(server, secret):
    """The status for a request whose body never comes."""
    with socket.create_connection((server.host, server.port), 5) as client:
        given = f"X-Telegram-Bot-Api-Secret-Token: {secret}\r\n" if secret else ""
        client.sendall(f"POST /telegram/webhook HTTP/1.1\r\nHost: a\r\n{given}Transfer-Encoding: chunked\r\n\r\n".encode())
        return int(client.recv(100).split()[1])


@test
def a_webhook_wants_its_secret():
    with Database() as db, BotApi() as api, Pawl(db, env={**api.env(), **WEBHOOK}) as pawl:
        server = pawl.serve("--role", "bot,api")
        url = f"http://{server.host}:{server.port}/telegram/webhook"
        update = {"update_id": 5, "message": api.content(api.group(-1001), api.user(11), "/x")}
        for secret in (None, "", "wrong", SECRET + "x", SECRET[:-1]):
            assert api.post(url, update, secret) == 401, secret
            assert head_only(server, secret) == 401, secret
        assert api.post(url, update, SECRET) == 200
        assert len(updates(db)) == 1
        # What can never be read is acknowledged, or it would be delivered for a day.
        for odd in ({}, {"update_id": "x"}, [], {"update_id": -1}):
            assert api.post(url, odd, SECRET) == 200, odd
        assert len(updates(db)) == 1
        assert metric(pawl, 'pawl_telegram_updates_total{outcome="malformed"}') == 4
    with Database() as db, Pawl(db) as pawl:
        server = pawl.serve()
        assert api.post(f"http://{server.host}:{server.port}/telegram/webhook", {"update_id": 1}, SECRET) == 404
        assert head_only(server, SECRET) == 404
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_MODE="webhook")) as pawl:
        done = pawl.run("serve", "--listen", "127.0.0.1:0")
        assert done.code == 2 and "PAWL_TELEGRAM_WEBHOOK_SECRET must be set" in done.stderr, done


@test
def a_webhook_is_registered_and_a_poller_removes_it_without_dropping():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        update = api.message(api.group(-1001), api.user(11), "/x")
        url = "http://127.0.0.1:9/telegram/webhook"
        first = pawl.serve("--role", "bot,api", env={**WEBHOOK, "PAWL_TELEGRAM_WEBHOOK_URL": url})
        wait_until(lambda: api.webhook)
        assert api.webhook["url"] == url and api.webhook["secret_token"] == SECRET and "callback_query" in api.webhook["allowed_updates"]
        assert not api.webhook.get("drop_pending_updates")
        assert first.stop() == 0
        pawl.serve("--role", "bot,api")
        wait_until(lambda: updates(db, "COMPLETED") == [(update["update_id"], "COMPLETED")])
        assert [c.parameters.get("drop_pending_updates") for c in api.calls_of("deleteWebhook")] == [False]


@test
def one_instance_polls_and_another_takes_over():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        servers = [pawl.serve("--role", "bot,api") for _ in range(3)]
        group, ann = api.group(-1001), api.user(11)
        api.message(group, ann, "/x")
        wait_until(lambda: len(updates(db, "COMPLETED")) == 1)
        assert api.conflicts == 0, "two polled at the same time"

        def polls(server):
            pawl.server = server
            return metric(pawl, "pawl_telegram_polling") == 1

        first = wait_until(lambda: [s for s in servers if polls(s)])
        assert len(first) == 1
        first[0].kill()
        rest = [s for s in servers if s is not first[0]]
        second = wait_until(lambda: [s for s in rest if polls(s)], what="another polls")
        api.message(group, ann, "/x")
        wait_until(lambda: len(updates(db, "COMPLETED")) == 2)
        assert second[0].stop() == 0  # gives the lease back
        api.message(group, ann, "/x")
        wait_until(lambda: len(updates(db, "COMPLETED")) == 3)


@test
def a_409_makes_it_step_back():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.poll)
        with api.lock:  # another program begins a poll
            api.poll = "another"
            api.lock.notify_all()
        wait_until(lambda: pawl.server.said("stepping back"))
        wait_until(lambda: db.value("select count(*) from pawl.task where name like 'telegram:%'") == "0")
        update = api.message(api.group(-1001), api.user(11), "/x")
        wait_until(lambda: updates(db, "COMPLETED") == [(update["update_id"], "COMPLETED")], what="it polls again")
        assert metric(pawl, "pawl_telegram_conflicts_total") == 1
        assert alert(pawl, "bot-conflict")["state"] == "ok", "one may be a pod that has died"
        for n in range(2):
            wait_until(lambda: api.poll not in (None, "another"), what="it polls")
            with api.lock:
                api.poll = "another"
                api.lock.notify_all()
            wait_until(lambda n=n: metric(pawl, "pawl_telegram_conflicts_total") == n + 2)
        wait_until(lambda: alert(pawl, "bot-conflict")["state"] == "firing", what="the alert")


@test
def sigterm_in_a_long_poll_and_in_a_webhook():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        pawl.serve("--role", "bot", wait=False)  # without HTTP there is no address to say
        wait_until(lambda: api.poll)
        started = time.monotonic()
        assert pawl.stop() == 0
        assert time.monotonic() - started < 20, "a long poll takes 25 s"
        assert db.value("select count(*) from pawl.task where name like 'telegram:%'") == "0"
    with Database() as db, BotApi() as api, Pawl(db, env={**api.env(), **WEBHOOK}) as pawl:
        server = pawl.serve("--role", "bot,api")
        update = {"update_id": 5, "message": api.content(api.group(-1001), api.user(11), "/x")}
        statuses = []
        with Session(db.url) as session:
            session.do("begin; lock table pawl.command in access exclusive mode")
            post = threading.Thread(target=lambda: statuses.append(
                api.post(f"http://{server.host}:{server.port}/telegram/webhook", update, SECRET)))
            post.start()
            wait_until(lambda: backends(db, "application_name = 'pawl' and wait_event_type = 'Lock'"), what="the request is under way")
            server.send(signal.SIGTERM)
            wait_until(lambda: server.said("stopping"))
            session.do("rollback")
            post.join()
        assert statuses == [200], "what was accepted is acknowledged"
        assert server.wait() == 0
        assert len(updates(db)) == 1


@test
def messages_are_sent_once_in_order_and_paced():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="200ms")) as pawl:
        for n in range(3):
            api.private(api.user(11 + n))
        chats = [api.chats[11 + n] for n in range(3)]
        servers = [pawl.serve("--role", "bot,api") for _ in range(2)]
        for chat in chats:
            assert put(db, api, chat["id"], [f"{n}" for n in range(10)]) == 0
            assert put(db, api, chat["id"], [f"{n}" for n in range(10)]) == 0  # the same again
        wait_until(lambda: all(len(api.sent(chat)) == 10 for chat in chats))
        for chat in chats:
            assert api.texts(chat) == [f"{n}" for n in range(10)]
        for chat in chats:
            # Turns are 200 ms apart; a call may come later than its turn, never before.
            ago = float(db.value("select extract(epoch from clock_timestamp() - min(a.at)) from pawl.audit a join pawl.command c using (id) "
                                 f"where c.order_key = '{chat['id']}' and a.event = 'RECEIVED'"))
            begun = time.monotonic() - ago
            times = [call.at for call in api.calls_of("sendMessage") if call.parameters["chat_id"] == chat["id"]]
            assert all(at - begun > n * 0.2 - 0.05 for n, at in enumerate(times)), [at - begun for at in times]
        assert [s.stop() for s in servers] == [0, 0]


@test
def a_group_gets_so_many_messages_a_minute():
    with Database() as db:
        call = "select wait_ms, is_reserved from pawl.telegram_pace(1, array[{}]::bigint[], 0, 3, 1000, 400) order by ord"
        assert all(row.endswith("|t") for row in db.rows(call.format("-5, -5, -5")))
        wait, reserved = db.rows(call.format("-5"))[0].split("|")
        assert reserved == "f" and 50000 < int(wait) <= 60000, wait
        assert db.rows(call.format("5, 5, 5, 5, -6"))[-1].endswith("|t"), "other chats are not held up, and users have no such limit"
        all_of_them = "select wait_ms from pawl.telegram_pace(2, array[1, 2, 3, 4]::bigint[], 0, 20, 10, 1000) order by ord"
        assert [round(int(row) / 100) for row in db.rows(all_of_them)] == [0, 1, 2, 3]


@test
def a_storm_of_429_delays_its_chats_only():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="0s", PAWL_TELEGRAM_GROUP_PER_MINUTE="1000")) as pawl:
        chats = [api.group(-1001 - n) for n in range(20)]
        api.rate(chat_s=1.0)
        for chat in chats:
            put(db, api, chat["id"], [f"{n}" for n in range(10)])
        servers = [pawl.serve("--role", "bot,api") for _ in range(3)]
        wait_until(lambda: sum(len(api.sent(chat)) for chat in chats) == 200, what="all 200 arrive")
        for chat in chats:
            assert api.texts(chat) == [f"{n}" for n in range(10)], api.texts(chat)
        assert len([c for c in api.calls_of("sendMessage")]) > 200, "some got a 429"
        limited = db.rows("select max(attempt) from pawl.event e where e.event = 'RETRY_SCHEDULED' and e.details->>'reason' = '429'")
        assert limited == ["0"], "a 429 uses up no attempt"
        assert db.value("select count(*) from pawl.tsq") == "0"
        assert [s.stop() for s in servers] == [0, 0, 0]


@test
def a_429_is_obeyed_in_full_and_no_other_chat_waits():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        slow, other = api.group(-1001), api.group(-1002)
        api.answer("sendMessage", 429, retry_after=10)
        put(db, api, slow["id"], ["a", "b"])
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.calls_of("sendMessage"))
        put(db, api, other["id"], ["c"])
        wait_until(lambda: api.sent(other))
        assert not api.sent(slow)
        wait_until(lambda: len(api.sent(slow)) == 2)
        first, again = [c.at for c in api.calls_of("sendMessage") if c.parameters["text"] == "a"]
        assert again - first >= 10, again - first
        assert api.texts(slow) == ["a", "b"]
        # Without parameters the header counts, without it 1, 2, 4 ... 60 s.
        waits = db.rows("select pawl.telegram_limited(1, 5, 0) from generate_series(1, 9)")
        assert waits == ["1000", "2000", "4000", "8000", "16000", "32000", "60000", "60000", "60000"], waits
        assert db.value("select pawl.telegram_limited(1, 5, 90000)") == "90000"
        api.answer("sendMessage", 429, body="slow down", header=2)
        put(db, api, other["id"], ["d"], key="u")
        wait_until(lambda: api.texts(other) == ["c", "d"])
        first, again = [c.at for c in api.calls_of("sendMessage") if c.parameters["text"] == "d"]
        assert again - first >= 2


@test
def the_scope_command_sends_messages_and_touches_none_that_wait():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        pawl.serve("--role", "api")
        news, boss = [pawl.run("key", "create", name, "--scopes", scopes).stdout.strip()
                      for name, scopes in (("news", "command"), ("boss", "command,admin"))]
        domain = f"telegram:{api.bot_id}:outbox"
        message = {"domain": domain, "type": "send", "payload": {"chat_id": -1001, "text": "news"}, "order_key": "-1001"}
        sent = pawl.http("POST", "/v1/commands", message, token=news)
        assert sent.status == 201, sent
        put(db, api, -1001, ["of the bot"])
        own = db.value("select md5('t' || -1001 || 0)::uuid")
        for command in (sent.json["command_id"], own):
            for path in (f"/v1/commands/{command}/cancel", f"/v1/commands/{command}/cancel?domain={domain}"):
                problem(pawl.http("POST", path, {}, token=news), 403, "not-allowed", "admin")
            problem(pawl.http("GET", f"/v1/commands/{command}", token=news), 403, "not-allowed", "admin")
        problem(pawl.http("POST", f"/v1/domains/{domain}/claim", {"limit": 1}, token=news), 403, "not-allowed", "admin")
        for verb, item in (("settle", {"outcome": "complete"}), ("extend", {})):
            body = {"items": [{"command_id": own, "lease": 1, **item}], **({"lease_s": 30} if verb == "extend" else {})}
            problem(pawl.http("POST", f"/v1/domains/{domain}/{verb}", body, token=news), 403, "not-allowed", "admin")
        assert db.value("select count(*) from pawl.ready") == "2"
        assert pawl.http("POST", f"/v1/commands/{own}/cancel", {}, token=boss).status == 200
        assert pawl.server.stop() == 0


@test
def a_429_of_a_poll_is_obeyed_in_full():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        api.answer("getUpdates", 429, retry_after=5)
        server = pawl.serve("--role", "bot,api")
        wait_until(lambda: len(api.calls_of("getUpdates")) >= 2, what="it polls again")
        first, again = [call.at for call in api.calls_of("getUpdates")][:2]
        assert again - first >= 5, again - first
        assert server.stop() == 0


@test
def the_alert_of_429_counts_three_instances_once():
    with Database() as db, BotApi() as api, Receiver() as receiver, \
            Pawl(db, env=api.env(PAWL_ALERT_WEBHOOK=receiver.url, PAWL_TELEGRAM_CHAT_INTERVAL="0s")) as pawl:
        chats = [api.group(-1001 - n) for n in range(12)]
        api.answer("sendMessage", 429, retry_after=1, times=12)
        servers = [pawl.serve() for _ in range(3)]
        for chat in chats:
            put(db, api, chat["id"], ["x"])
        wait_until(lambda: all(api.sent(chat) for chat in chats))
        counts = []
        for server in servers:
            pawl.server = server
            counts.append(metric(pawl, "pawl_rate_limited_total"))
        assert sum(counts) == 12 and max(counts) <= 12, counts
        wait_until(lambda: receiver.states("rate-limited") == ["firing"])
        for server in servers:  # each of them shows it
            pawl.server = server
            wait_until(lambda: alert(pawl, "rate-limited")["state"] == "firing")
        assert receiver.states("rate-limited") == ["firing"]


@test
def the_1001st_waiting_message_is_refused():
    with Database() as db, BotApi() as api:
        domain = f"telegram:{api.bot_id}:outbox"
        capacity = f"1000 - pawl.telegram_waiting({api.bot_id}, 1000)"
        def put_to(chat, kind="send"):  # chats have a share of it: so many of them
            return (f"select pawl.telegram_put({api.bot_id}, array[gen_random_uuid()], array[{chat}::bigint], array['{kind}'], "
                    f"array[jsonb_build_object('chat_id', {chat}, 'text', 'x')], {capacity})")

        assert db.value(f"select sum(({put_to('11 + n % 100')})) from generate_series(1, 1000) n") == "0"
        assert db.value(put_to(5000)) == "1"
        assert db.value(put_to(0, "answer")) == "0", "answers to buttons have a limit of their own"
        assert db.value(f"select count(*) from pawl.command c join pawl.domain d on d.id = c.domain_id where d.name = '{domain}'") == "1001"


@test
def answers_to_presses_use_up_no_place_of_a_message():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_OUTBOX="100")) as pawl:
        group = api.group(-1001)
        assert put(db, api, 0, ["late"] * 250, kind="answer", callback_id="1") == 50, "200 of them wait"
        assert db.value(f"select pawl.telegram_waiting({api.bot_id}, 1000)") == "0"
        api.answer("answerCallbackQuery", 429, retry_after=6)
        pawl.serve("--role", "bot,api")
        api.message(group, api.user(9, "Ann"), "/help")
        wait_until(lambda: api.sent(group), what="a group hears from the bot")
        # The 429 for one holds up all but those whose turn had come; then they come within the bot's rate.
        wait_until(lambda: len(api.calls_of("answerCallbackQuery")) == 201)
        calls = sorted(call.at for call in api.calls_of("answerCallbackQuery"))
        after = [at - calls[0] for at in calls]
        assert not [at for at in after if 4 < at < 6], after
        later = [at for at in after if at >= 6]
        assert later[-1] >= 6 + (len(later) - 1) / 30 - 0.5, ("30 per second", after)


@test
def an_answer_to_a_press_has_one_attempt_and_a_minute():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        api.answer("answerCallbackQuery", 502, body="bad gateway")
        put(db, api, 0, ["doubt"], kind="answer", callback_id="1", key="a")
        pawl.serve("--role", "bot,api")
        errors = "select o.error from pawl.outcome o where o.status <> 'COMPLETED'"
        assert "given up after 1 attempts" in wait_until(lambda: db.rows(errors))[0], db.rows(errors)
        # The server wants so much time that the press is forgotten.
        api.answer("answerCallbackQuery", 429, retry_after=90)
        put(db, api, 0, ["limited"], kind="answer", callback_id="2", key="b")
        wait_until(lambda: db.value("select max(refusals) from pawl.telegram_chat where chat_id = 0") == "1", what="the 429 is written down")
        put(db, api, 0, ["behind it"], kind="answer", callback_id="3", key="c")
        wait_until(lambda: any("more than a minute" in row for row in db.rows(errors)))
        assert len(api.calls_of("answerCallbackQuery")) == 2 and not api.answered


@test
def permanent_errors_are_not_repeated_and_do_not_hold_the_chat():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="10ms")) as pawl:
        group = api.group(-1001)
        put(db, api, -4444, ["nobody there"])
        put(db, api, group["id"], ["<b>broken", "fine"])
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.texts(group) == ["fine"])
        wait_until(lambda: db.value("select count(*) from pawl.outcome where status = 'FAILED'") == "2")
        assert len(api.calls_of("sendMessage")) == 3
        assert "chat not found" in db.value("select error from pawl.outcome o join pawl.command c on c.id = o.id where c.order_key = '-4444'")
        wait_until(lambda: metric(pawl, 'pawl_telegram_messages_total{outcome="refused"}') == 2, what="both are counted")


@test
def a_method_that_the_server_does_not_have_holds_no_chat():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="10ms")) as pawl:
        group = api.group(-1001)
        api.answer("sendPhoto", 404, description="Not Found: method not found", times=100)
        put(db, api, -1001, ["chart"], kind="photo", file="iVBORw0KGgo=", file_name="chart.png", key="p")
        put(db, api, -1001, ["fine"])
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.texts(group) == ["fine"])
        assert len(api.calls_of("sendPhoto")) == 1 and pawl.server.said("given up")


@test
def failures_that_pass_are_repeated():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="10ms")) as pawl:
        group = api.group(-1001)
        api.answer("sendMessage", 500, body="Internal Server Error")
        api.answer("sendMessage", 502, body='{"message": "API method is not supported"}')
        put(db, api, group["id"], ["a", "b"])
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.texts(group) == ["a", "b"])


@test
def a_text_that_is_too_long_fails_and_is_not_cut():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="10ms")) as pawl:
        group = api.group(-1001)
        put(db, api, group["id"], ["x" * 4097, "<b>" + "\U0001f3c6" * 2048 + "</b>"])
        put(db, api, group["id"], ["y" * 1025], kind="photo", key="p", file="aGVsbG8=", file_name="a.png")
        put(db, api, group["id"], ["end"], key="e")
        pawl.serve("--role", "bot,api")
        wait_until(lambda: "end" in api.texts(group))
        assert api.texts(group) == ["\U0001f3c6" * 2048, "end"], api.texts(group)
        errors = db.rows("select o.error from pawl.outcome o where o.status = 'FAILED' order by o.id")
        assert errors == ["text must have at most 4096 UTF-16 units without tags, got 4097", "text must have at most 1024 UTF-16 units without tags, got 1025"], errors


@test
def a_file_that_the_server_cannot_take_holds_its_chat_for_four_attempts():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="10ms")) as pawl:
        group = api.group(-1001)
        api.answer("sendPhoto", 500, times=100)
        put(db, api, group["id"], ["chart"], kind="photo", file="aGVsbG8=", file_name="a.png")
        put(db, api, group["id"], ["next"], key="n")
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.texts(group) == ["next"])
        assert len(api.calls_of("sendPhoto")) == 4
        assert db.value("select o.error from pawl.outcome o where o.status = 'FAILED'").startswith("given up after 4 attempts")


@test
def a_confirmation_by_an_edit_that_is_refused_is_a_new_message():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="10ms")) as pawl:
        group = api.group(-1001)
        api.answer("editMessageText", 400, description="Bad Request: message can't be edited", times=2)
        put(db, api, group["id"], ["Undone"], kind="edit", message_id=9, first=True)
        put(db, api, group["id"], ["page 2"], kind="edit", key="e", message_id=9)
        put(db, api, group["id"], ["end"], key="n")
        pawl.serve("--role", "bot,api")
        wait_until(lambda: "end" in api.texts(group))
        assert api.texts(group) == ["Undone", "end"], api.texts(group)


@test
def a_group_that_moves_is_followed():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="10ms")) as pawl:
        group = api.group(-77, kind="group")
        put(db, api, -77, ["a", "b"])
        with api.lock:
            api.moved[-77] = -10077
        moved = api.group(-10077)
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.texts(moved) == ["a", "b"])
        assert len([c for c in api.calls_of("sendMessage") if c.parameters["chat_id"] == -77]) == 1
        # By its service message, before anything is refused.
        second = api.group(-78, kind="group")
        moved = api.migrate(second, -10078)
        wait_until(lambda: db.rows("select moved_to from pawl.telegram_chat where chat_id = -78") == ["-10078"])
        put(db, api, -78, ["c"])
        wait_until(lambda: api.texts(moved) == ["c"])
        assert not [c for c in api.calls_of("sendMessage") if c.parameters["chat_id"] == -78]
        assert group["id"] == -77
        # Numbers of messages begin anew there: what was an edit of the old chat, or a reply, overwrites and answers nothing.
        other = api.sent(moved)[0]["message_id"]
        put(db, api, -78, ["edited"], kind="edit", key="e", message_id=other)
        put(db, api, -78, ["replied"], key="r", reply_to=other)
        wait_until(lambda: api.texts(moved) == ["c", "edited", "replied"], what="both are new messages")
        assert "reply_to_message" not in api.sent(moved)[2], api.sent(moved)
        assert not api.calls_of("editMessageText")


@test
def topics_replies_buttons_edits_photos_and_documents():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="10ms")) as pawl:
        forum, plain = api.group(-1001, forum=True), api.group(-1002)
        buttons = [[{"text": "Undo", "data": "undo:1"}]]
        put(db, api, -1001, ["<b>x</b> &lt;"], thread_id=7, reply_to=4, buttons=buttons, reference="match:1")
        put(db, api, -1002, ["y"], thread_id=9)  # the topic is gone: sent outside of it
        pawl.serve("--role", "bot,api")
        sent = wait_until(lambda: api.sent(forum))[0]
        assert sent["text"] == "x <" and sent["message_thread_id"] == 7 and sent["reply_to_message"]["message_id"] == 4
        assert sent["reply_markup"] == {"inline_keyboard": [[{"text": "Undo", "callback_data": "undo:1"}]]}
        wait_until(lambda: db.rows("select reference from pawl.telegram_sent") == ["match:1"])
        assert db.value(f"select pawl.telegram_reference({api.bot_id}, -1001, {sent['message_id']})") == "match:1"
        assert "message_thread_id" not in wait_until(lambda: api.sent(plain))[0]
        put(db, api, -1001, ["edited"], kind="edit", message_id=sent["message_id"], key="e")
        put(db, api, -1001, ["edited"], kind="edit", message_id=sent["message_id"], key="f")  # not modified: fine
        put(db, api, -1001, ["caption"], kind="photo", file="iVBORw0KGgo=", file_name="chart.png", key="p")
        put(db, api, -1001, ["caption"], kind="document", file="YSxiDQo=", file_name="ratings.csv", key="d")
        put(db, api, 0, ["done"], kind="answer", callback_id="77", alert=True, key="a")
        wait_until(lambda: len(api.calls_of("sendDocument")) == 1 and api.answered)
        assert api.sent(forum)[0]["text"] == "edited"
        # A name or a word that looks like an address brings no picture of a page into the group.
        for method in ("sendMessage", "editMessageText"):
            assert all(call.parameters["link_preview_options"] == {"is_disabled": True} for call in api.calls_of(method)), method
        photo, document = api.calls_of("sendPhoto")[0].files["photo"], api.calls_of("sendDocument")[0].files["document"]
        assert photo == {"name": "chart.png", "type": "image/png", "bytes": b"\x89PNG\r\n\x1a\n"}, photo
        assert document["name"] == "ratings.csv" and document["bytes"] == b"a,b\r\n"
        assert api.answered["77"]["text"] == "done" and api.answered["77"]["show_alert"] is True
        wait_until(lambda: db.value("select count(*) from pawl.outcome where status = 'COMPLETED'") == "7")
        assert db.value("select count(*) from pawl.outcome where status = 'FAILED'") == "0"


@test
def servers_that_answer_oddly():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="10ms")) as pawl:
        api.drop_results = True
        api.answer("getMe", 500, body="oops")
        api.answer("getUpdates", 500, body="Internal Server Error")
        api.answer("getUpdates", 200, body="<html>")
        api.answer("getUpdates", 200, body='{"ok": true}')
        api.answer("getUpdates", 200, body='{"ok": true, "result": [null, 5, {}, {"update_id": 3, "message": null}]}')
        api.answer("getUpdates", 200, body='{"ok": false, "error_code": 429, "parameters": {"retry_after": 1}}')
        group = api.group(-1001)
        update = api.message(group, api.user(11), "/x")
        put(db, api, -1001, ["y"])
        pawl.serve("--role", "bot,api")
        wait_until(lambda: updates(db, "COMPLETED") == [(update["update_id"], "COMPLETED")])
        wait_until(lambda: api.texts(group) == ["y"])


@test
def a_server_without_long_polls_makes_no_busy_loop():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        api.answer("getUpdates", 200, body='{"ok": true, "result": []}', times=1000)
        pawl.serve("--role", "bot,api")
        wait_until(lambda: len(api.calls_of("getUpdates")) >= 4)
        times = [call.at for call in api.calls_of("getUpdates")]
        assert times[3] - times[0] > 1.2, times


@test
def the_token_is_in_no_log_and_no_answer():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_LOG="debug")) as pawl:
        api.answer("getMe", 401, description="Unauthorized")
        api.answer("sendMessage", 500, body="x")
        put(db, api, api.group(-1001)["id"], ["x"])
        server = pawl.serve()
        wait_until(lambda: api.texts(api.chats[-1001]) == ["x"])
        api.__exit__()  # nothing listens any more
        put(db, api, -1001, ["y"], key="z")
        wait_until(lambda: server.said("cannot reach the server"))
        assert server.stop() == 0
        everything = "\n".join(server.stdout + server.stderr) + "\n".join(db.rows("select * from pawl.event"))
        assert "TEST-token" not in everything


@test
def a_message_to_a_topic_that_is_gone_is_sent_outside_of_it():
    """With the default pace: the second call must not wait for a turn that the first one has taken."""
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        group = api.group(-1001)
        put(db, api, -1001, ["a"], thread_id=7)
        put(db, api, -1001, ["b"], key="u")
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.texts(group) == ["a", "b"])
        assert len(api.calls_of("sendMessage")) == 3, api.calls_of("sendMessage")


@test
def an_update_that_cannot_be_read_stops_no_other():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        group, ann = api.group(-1001), api.user(11)
        deep = current = {}
        for _ in range(80):
            current["x"] = {}
            current = current["x"]
        good = [api.message(group, ann, "/before")]
        for text, more in (("a\0b", {}), ("lone \ud800 surrogate", {}), ("deep", {"x": deep}), ('quote " and \\ [ { \0', {})):
            api.message(group, ann, text, **more)
            good.append(api.message(group, ann, "/between ] } \\\" , :"))
        pawl.serve("--role", "bot,api")
        wait_until(lambda: updates(db, "COMPLETED") == [(u["update_id"], "COMPLETED") for u in good])
        wait_until(lambda: api.pending == [], what="all are confirmed")
        assert metric(pawl, 'pawl_telegram_updates_total{outcome="malformed"}') == 4
        assert pawl.server.said("skipping an update that cannot be read")
        api.message(group, ann, "\0")  # the last one
        wait_until(lambda: api.pending == [], what="confirmed, without a good one behind it")


@test
def what_failed_at_the_start_is_tried_again():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        api.answer("getMe", 500, body="oops", times=2)
        api.answer("setMyCommands", 429, retry_after=1)
        group = api.group(-1001)
        for other in ("another_bot", api.username):
            api.message(group, api.user(11, "Ann"), f"/me@{other}")
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.commands, what="the commands are registered")
        wait_until(lambda: len(updates(db, "COMPLETED")) == 2, what="updates wait for the name")
        wait_until(lambda: api.sent(group))
        assert len(api.sent(group)) == 1, "nothing is said to a command for another bot"
        assert db.value("select username from pawl.telegram_bot") == api.username
        assert len(api.calls_of("getMe")) == 3
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(**WEBHOOK, PAWL_TELEGRAM_WEBHOOK_URL="http://127.0.0.1:9/x")) as pawl:
        api.answer("setWebhook", 502, body="<html>")
        pawl.serve("--role", "bot,api")
        wait_until(lambda: api.webhook, what="the webhook is registered")


@test
def a_page_with_status_200_is_no_answer():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env()) as pawl:
        group = api.group(-1001)
        for body in ("<html>welcome</html>", "{}", "[]", '{"result": {"message_id": 5}}'):
            api.answer("sendMessage", 200, body=body)
        put(db, api, -1001, ["a"])
        server = pawl.serve("--role", "bot,api")
        wait_until(lambda: api.texts(group) == ["a"])
        assert len(api.calls_of("sendMessage")) == 5
        assert server.said("not an answer of the Bot API")


@test
def an_update_under_the_id_of_another_one_is_handled():
    """Servers may begin anew with their numbers, after a week without updates or a restart of one's own."""
    for mode in ({}, WEBHOOK):
        with Database() as db, BotApi() as api, Pawl(db, env=api.env(**mode)) as pawl:
            group, ann = api.group(-1001), api.user(11, "Ann")
            server = pawl.serve("--role", "bot,api")

            def deliver(update):
                if mode:
                    assert api.post(f"http://{server.host}:{server.port}/telegram/webhook", update, SECRET) == 200
                else:
                    api.again(update)
                    wait_until(lambda: api.pending == [], what="confirmed")

            first = {"update_id": 7, "message": api.content(group, ann, "/me")}
            second = {"update_id": 7, "message": api.content(group, ann, "/help")}
            for update in (first, second, first, second):
                deliver(update)
            wait_until(lambda: len(updates(db, "COMPLETED")) == 2)
            wait_until(lambda: len(api.sent(group)) == 2)
            assert len(updates(db)) == 2 and server.said("has the id of another one")


@test
def a_retry_after_may_be_a_fraction_a_text_or_huge():
    with Database() as db, BotApi() as api, Pawl(db, env=api.env(PAWL_TELEGRAM_CHAT_INTERVAL="10ms")) as pawl:
        said = {1: "1.5", 2: '"2"', 3: "10000000000", 4: "99999999999999999999999999"}
        for number, value in said.items():
            api.private(api.user(number))
            api.answer("sendMessage", 429, body='{"ok": false, "error_code": 429, "parameters": {"retry_after": %s}}' % value, chat=number)
            put(db, api, number, ["x"])
            if number == 1:
                server = pawl.serve("--role", "bot,api")
            # The refusals of the first two are forgotten when they succeed, which a slow machine may see too late.
            wait_until(lambda: any(c.parameters["chat_id"] == number for c in api.calls_of("sendMessage")), what=f"{number} was refused")
        for number in (3, 4):
            wait_until(lambda: db.value(f"select count(*) from pawl.telegram_chat where chat_id = {number} and refusals = 1") == "1")
        for number in (1, 2):
            wait_until(lambda: api.texts(api.chats[number]) == ["x"], what=f"{number}")
            first, again = [c.at for c in api.calls_of("sendMessage") if c.parameters["chat_id"] == number]
            assert again - first >= number + (0.5 if number == 1 else 0), again - first
        for number in (3, 4):
            left = db.value(f"select extract(epoch from next_free - now()) > 9.9 * 365 * 86400 from pawl.telegram_chat where chat_id = {number}")
            assert left == "t" and len([c for c in api.calls_of("sendMessage") if c.parameters["chat_id"] == number]) == 1
        assert server.stop() == 0


@test
def bot_role_needs_a_token():
    with Database() as db, Pawl(db) as pawl:
        done = pawl.run("serve", "--role", "bot", "--listen", "127.0.0.1:0")
        assert done.code == 2 and "PAWL_TELEGRAM_TOKEN is not set" in done.stderr, done
        done = pawl.run("serve", env={"PAWL_TELEGRAM_TOKEN": "not a token"})
        assert done.code == 2 and "PAWL_TELEGRAM_TOKEN" in done.stderr and "not a token" not in done.stderr, done
        for token in ("abcdef", ":AAE", "42", "42:", "-42:AAE", "4" * 19 + ":AAE"):
            done = pawl.run("serve", env={"PAWL_TELEGRAM_TOKEN": token})
            assert done.code == 2 and "must be NUMBER:SECRET" in done.stderr and token not in done.stderr.replace("424242:AAE", ""), done


main()
