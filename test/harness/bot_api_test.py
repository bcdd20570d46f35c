#!/usr/bin/env python3
"""The Bot API server of the harness keeps offsets, ends older polls, limits and moves chats as the real one does."""
import json
import threading
import urllib.error
import urllib.request

from bot_api import BotApi, find_entities, units
from pawl_test import main, test, wait_until


def call(api, method, **parameters):
    request = urllib.request.Request(f"{api.root}/bot{api.token}/{method}", json.dumps(parameters).encode(),
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@test
def updates_stay_until_they_are_confirmed():
    with BotApi() as api:
        group, ann = api.group(-1), api.user(1, "Ann")
        first, second = api.message(group, ann, "one"), api.message(group, ann, "two")
        assert call(api, "getUpdates")[1]["result"] == [first, second]
        assert call(api, "getUpdates", limit=1)[1]["result"] == [first]
        assert call(api, "getUpdates", offset=first["update_id"] + 1)[1]["result"] == [second]
        assert call(api, "getUpdates")[1]["result"] == [second]
        assert call(api, "getUpdates", offset=second["update_id"] + 1)[1]["result"] == []


@test
def the_older_of_two_polls_gets_409():
    with BotApi() as api:
        results = []
        older = threading.Thread(target=lambda: results.append(call(api, "getUpdates", timeout=20)))
        older.start()
        wait_until(lambda: api.poll)
        newer = threading.Thread(target=lambda: results.append(call(api, "getUpdates", timeout=20)))
        newer.start()
        older.join(20)
        assert results[0][0] == 409 and "terminated by other getUpdates" in results[0][1]["description"], results
        update = api.message(api.group(-1), api.user(1), "x")
        newer.join(20)
        assert results[1] == (200, {"ok": True, "result": [update]}), results
        call(api, "setWebhook", url="http://127.0.0.1:9/")
        assert "webhook is active" in call(api, "getUpdates")[1]["description"]


@test
def a_chat_has_a_rate_and_may_move():
    with BotApi() as api:
        group = api.group(-1, kind="group")
        api.rate(chat_s=60)
        assert call(api, "sendMessage", chat_id=-1, text="a")[0] == 200
        status, answer = call(api, "sendMessage", chat_id=-1, text="b")
        assert status == 429 and 50 < answer["parameters"]["retry_after"] <= 60, answer
        api.rate(chat_s=None)
        api.migrate(group, -1005)
        status, answer = call(api, "sendMessage", chat_id=-1, text="b")
        assert (status, answer["parameters"]) == (400, {"migrate_to_chat_id": -1005}), answer
        assert call(api, "sendMessage", chat_id=-1005, text="b")[0] == 200


@test
def texts_are_parsed_and_limited():
    with BotApi() as api:
        api.group(-1)
        assert call(api, "sendMessage", chat_id=-1, text="<b>a &lt; b</b>", parse_mode="HTML")[1]["result"]["text"] == "a < b"
        assert "can't parse" in call(api, "sendMessage", chat_id=-1, text="<b>a", parse_mode="HTML")[1]["description"]
        assert call(api, "sendMessage", chat_id=-1, text="😀" * 2048)[0] == 200
        assert "too long" in call(api, "sendMessage", chat_id=-1, text="😀" * 2048 + "a")[1]["description"]
        assert units("а😀") == 3
        assert find_entities("😀 /match@bot @ann 1") == [{"type": "bot_command", "offset": 3, "length": 10},
                                                         {"type": "mention", "offset": 14, "length": 4}]


main()
