#!/usr/bin/env python3
"""bot_commands - what every command answers, in both languages; one update to three instances by a webhook; undo after changes of the rules."""
import threading

from bot_api import BotApi
from pawl_test import Database, Pawl, main, test, wait_until

FAST = {"PAWL_TELEGRAM_CHAT_INTERVAL": "0ms", "PAWL_TELEGRAM_GROUP_PER_MINUTE": "1000", "PAWL_TELEGRAM_PER_SECOND": "1000",
        "PAWL_RATING_USER_PER_MINUTE": "1000", "PAWL_RATING_GROUP_PER_MINUTE": "1000"}
SECRET = "the-webhook-s_secret"
WEBHOOK = {"PAWL_TELEGRAM_MODE": "webhook", "PAWL_TELEGRAM_WEBHOOK_SECRET": SECRET}

# What stands behind a command so that it has something to do.
COMMANDS = {"match": "@ann @bob {n} 1", "ranking": "", "me": "", "stats": "@bob", "history": "@ann", "h2h": "@ann @bob", "chart": "@ann @bob",
            "undo": "", "export": "", "help": "", "settings": "", "rank": "", "top": "", "start": ""}
ALIASES = {"rank", "top", "start"}  # in no menu


def bot(db, api, **more):
    return Pawl(db, env={**api.env(), **FAST, **more})


def people(api, group, *names, language="en"):
    users = [api.user(100 + n, name, username=name.lower(), language_code=language) for n, name in enumerate(names)]
    for user in users:
        api.member(group, user, "administrator")
    return users


def replies(api, group):
    """What was answered, by the message that it answers."""
    found = {}
    for message in api.sent(group):
        found.setdefault(message.get("reply_to_message", {}).get("message_id"), []).append(message)
    return found


def is_russian(message):
    return any("а" <= letter <= "я" for letter in message.get("text", message.get("caption", "")).lower())


@test
def every_command_answers_in_both_languages():
    """The commands as they are, with help, with the bot's name, in capitals; aliases; and all that the menus offer."""
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        pawl.serve("--role", "bot,api")
        scopes = [(scope, language) for scope in ("all_group_chats", "all_chat_administrators", "all_private_chats") for language in ("", "ru")]
        wait_until(lambda: set(api.commands) == set(scopes), what="the menus are registered")
        group_menu = {row["command"] for row in api.commands["all_group_chats", ""]}
        admin_menu = {row["command"] for row in api.commands["all_chat_administrators", ""]}
        assert group_menu | {"settings"} == admin_menu == set(COMMANDS) - ALIASES, (group_menu, admin_menu)
        for scope in ("all_group_chats", "all_chat_administrators", "all_private_chats"):
            english, russian = api.commands[scope, ""], api.commands[scope, "ru"]
            assert [row["command"] for row in english] == [row["command"] for row in russian], "the menus have the same entries"
            assert all(is_russian({"text": row["description"]}) for row in russian), russian
            assert not any(is_russian({"text": row["description"]}) for row in english), english
        for number, language in ((-1001, "en"), (-1002, "ru")):
            group = api.group(number)
            ann, bob = people(api, group, "Ann", "Bob", language=language)
            api.message(group, bob, "/me")
            asked = {}
            for n, (command, words) in enumerate(COMMANDS.items(), 2):
                words = words.format(n=n)
                forms = [f"/{command} {words}", f"/{command} help", f"/{command}@{api.username} {words}", f"/{command.upper()} {words}", f"/{command} nonsense"]
                if command == "match":
                    forms[2], forms[3] = forms[2].replace(f" {n} ", f" {n} 2"), forms[3].replace(f" {n} ", f" {n} 3")
                for text in forms:
                    asked[api.message(group, ann, text)["message"]["message_id"]] = text
                wait_until(lambda: set(asked) <= set(replies(api, group)), what=f"/{command} is answered")  # no more than ten may wait
            silent = [api.message(group, ann, text)["message"]["message_id"] for text in ("/me@another_bot", "/unknown", "me", "undo")]
            last = api.message(group, ann, "/help")["message"]["message_id"]
            wait_until(lambda: last in replies(api, group), what="the last answer")
            answered = replies(api, group)
            assert set(asked) <= set(answered), [text for key, text in asked.items() if key not in answered]
            assert not set(silent) & set(answered), "other bots' commands, unknown ones and plain words get no answer"
            # Names and figures are the same in all languages, so of these only the words of a help are looked at.
            for key, text in asked.items():
                if text.endswith(" help"):
                    assert is_russian(answered[key][0]) == (language == "ru"), (text, answered[key][0])
            documents = [m for key, text in asked.items() if text.strip() == "/export" for m in answered[key]]
            assert len(documents) == 2 and all("document" in m for m in documents), documents
            photos = [m for key, text in asked.items() if text.startswith("/chart @") for m in answered[key]]
            assert photos and all("photo" in m for m in photos), photos
        for number, language in ((901, "en"), (902, "ru")):
            user = api.user(number, "Eve", language_code=language)
            chat = api.private(user)
            keys = [api.message(chat, user, f"/{row['command']}")["message"]["message_id"] for row in api.commands["all_private_chats", ""]]
            keys += [api.message(chat, user, "/start")["message"]["message_id"], api.message(chat, user, "/match 3 1")["message"]["message_id"]]
            wait_until(lambda: set(keys) <= set(replies(api, chat)), what="answers in a private chat")
            assert all(is_russian(m) == (language == "ru") for key in keys for m in replies(api, chat)[key])
        assert pawl.run("rating", "verify").code == 0


def at_once(api, servers, update, times=5):
    """Deliver an update to each instance so many times, all at the same time."""
    statuses = []
    posts = [threading.Thread(target=lambda s=s: statuses.append(api.post(f"http://{s.host}:{s.port}/telegram/webhook", update, SECRET)))
             for s in servers for _ in range(times)]
    for post in posts:
        post.start()
    for post in posts:
        post.join()
    assert statuses == [200] * len(posts), statuses


@test
def the_same_update_by_webhook_to_three_instances_is_one_match_and_one_answer():
    with Database() as db, BotApi() as api, bot(db, api, **WEBHOOK) as pawl:
        group = api.group(-1001)
        ann, bob = people(api, group, "Ann", "Bob")
        servers = [pawl.serve("--role", "bot,api") for _ in range(3)]
        number = iter(range(1, 100))

        def send(user, text):
            update = {"update_id": next(number), "message": api.content(group, user, text)}
            at_once(api, servers, update)
            return update["message"]["message_id"]

        asked = [send(bob, "/me"), send(ann, "/match @ann @bob 3 1"), send(ann, "/match @ann @bob 3 2")]
        wait_until(lambda: set(asked) <= set(replies(api, group)), what="the answers")
        pressed = replies(api, group)[asked[2]][0]
        press = {"update_id": next(number), "callback_query": {"id": "1", "from": bob, "chat_instance": "1", "message": pressed,
                                                               "data": pressed["reply_markup"]["inline_keyboard"][0][0]["callback_data"]}}
        at_once(api, servers, press)
        asked += [send(ann, "/undo"), send(ann, "/top")]
        wait_until(lambda: set(asked) <= set(replies(api, group)), what="the answers")
        # What has come is all that comes: the last answer is behind all others in its chat.
        assert {key: len(made) for key, made in replies(api, group).items()} == {key: 1 for key in asked}, api.texts(group)
        undone = ["↩️ Undone: Ann 3:1 Bob", "↩️ Undone: Ann 3:2 Bob", "↩️ Undone: Ann 3:1 Bob"]  # the first is the edited message about the match
        wait_until(lambda: [text.split("\n")[0] for text in api.texts(group)[1:4]] == undone, what="the edits")
        assert db.value("select count(*) || ' ' || count(undone_at) from rating.match") == "2 2"
        assert db.value("select count(*) from pawl.command where type = 'update'") == "6"
        assert len(api.calls_of("sendMessage")) == len(asked) and len(api.calls_of("editMessageText")) == 2
        assert pawl.run("rating", "verify").code == 0


# Matches, and changes of the rules between them; the one with "*" is undone.
PLAYED = ["/match @ann @bob 3 1", "/settings k 64", "/match @bob @cid 2 0", "*/match @ann @cid 5 0", "/settings margin on", "/match @ann @bob 9 1",
          "/match @cid @bob 4 2", "/settings system glicko2", "/match @ann @bob 1 3", "/match @cid @ann 2 2", "/settings system elo", "/settings k 20",
          "/match @bob @cid 7 0", "/settings margin off", "/match @ann @cid 0 3", "/settings start 1200", "/match @dan @ann 3 0"]


def ratings(db, chat):
    return db.rows("select p.user_id, m.rating, m.deviation, m.volatility, m.games from rating.member m join rating.groups g on g.id = m.group_id "
                   f"join rating.player p on p.id = m.player_id where g.chat_id = {chat} and m.games > 0 order by p.user_id")


@test
def undo_after_changes_of_the_rules_gives_what_a_replay_gives():
    """One group plays all and takes one match back; another one has never played it."""
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        groups = [api.group(-1001), api.group(-1002)]
        pawl.serve("--role", "bot,api")
        undone = None
        for group in groups:
            users = people(api, group, "Ann", "Bob", "Cid", "Dan")
            asked = [api.message(group, user, "/me") for user in users]
            for text in PLAYED:
                if text.startswith("*") and group is groups[1]:
                    continue
                asked.append(api.message(group, users[0], text.lstrip("*")))
                undone = asked[-1] if text.startswith("*") else undone
            wait_until(lambda: len(replies(api, group)) == len(asked), what="all are answered")  # matches before the others
        played, without = ratings(db, -1001), ratings(db, -1002)
        assert len(played) == 4 and played != without, "the match made a difference"
        answer = replies(api, groups[0])[undone["message"]["message_id"]][0]
        key = api.message(groups[0], users[0], "/undo", reply_to=answer)["message"]["message_id"]
        wait_until(lambda: key in replies(api, groups[0]), what="the undo is answered")
        assert "Later matches recalculated: 7" in replies(api, groups[0])[key][0]["text"], replies(api, groups[0])[key]
        assert ratings(db, -1001) == without
        verified = pawl.run("rating", "verify")
        assert verified.code == 0, verified
        # Back and forth: each rule change is the match's own, so taking all back leaves nothing.
        while int(db.value("select count(*) from rating.match m join rating.groups g on g.id = m.group_id where g.chat_id = -1001 and undone_at is null")):
            key = api.message(groups[0], users[0], "/undo")["message"]["message_id"]
            wait_until(lambda: key in replies(api, groups[0]), what="the undo is answered")
            verified = pawl.run("rating", "verify")
            assert verified.code == 0, verified
        assert ratings(db, -1001) == []


@test
def a_press_counts_only_with_a_button_of_its_message():
    """Data of a press is the client's word: a stranger's edits nothing, undoes nothing and answers no question."""
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        pawl.serve("--role", "bot,api")
        group = api.group(-1001)
        ann, bob = people(api, group, "Ann", "Bob")
        stranger = api.user(900, "Eve")
        api.message(group, bob, "hello")
        for words in ("@ann @bob 3 1", "@ann @bob 3 2", "@ann @bob 3 2"):
            api.message(group, ann, f"/match {words}")
        wait_until(lambda: len(api.sent(group)) == 3, what="two matches and a question")
        first, second, question = api.sent(group)
        texts = [message["text"] for message in api.sent(group)]
        again, no = [button["callback_data"] for row in question["reply_markup"]["inline_keyboard"] for button in row]
        presses = [(stranger, first, no), (stranger, first, again), (stranger, first, "top:0"), (ann, second, "undo:1"), (ann, first, "set:k:40"),
                   (stranger, question, again), (stranger, question, no)]
        for number, (user, message, data) in enumerate(presses):
            api.callback(user, message, data, callback_id=f"p{number}")
        wait_until(lambda: len(api.answered) == len(presses), what="every press is answered")
        assert [message["text"] for message in api.sent(group)] == texts, api.sent(group)
        assert db.value("select count(*) from rating.match where undone_at is null") == "2"
        api.callback(ann, question, no)
        wait_until(lambda: api.sent(group)[2]["text"] == "Not registered.", what="who asked answers")
        api.callback(ann, question, again, callback_id="late")
        wait_until(lambda: "late" in api.answered, what="the late press is answered")
        assert db.value("select count(*) from rating.match") == "2"


main()
