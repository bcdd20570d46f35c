#!/usr/bin/env python3
"""rating - ratings on the command line, over HTTP and in SQL: what is shown, to whom, and that a wrong row is found."""
import concurrent.futures
import types

from checks import problem, refused
from pawl_test import Database, Pawl, main, test, wait_until
from rating_model import CHAT, Model
from servers import Session


def key(pawl, scopes):
    return pawl.run("key", "create", f"key-{scopes}", "--scopes", scopes, "--json").json["token"]


@test
def leaderboard_and_history_on_the_command_line():
    with Database() as db, Pawl(db) as pawl:
        model = Model(db, 3)
        model.play(0, 1, 3, 1)
        model.play(1, 2, 2, 2)
        board = pawl.run("rating", "leaderboard", str(CHAT), "--json").json
        assert [(row["place"], row["username"], row["rating"], row["games"]) for row in board] == [
            (1, "p0", 1516, 1), (2, "p2", 1499, 1), (3, "p1", 1485, 2)], board
        assert [row["change_week"] for row in board] == [16, -1, -15], board
        text = pawl.run("rating", "leaderboard", str(CHAT), "--limit", "1")
        assert text.code == 0 and "Player 0" in text.stdout and "Player 1" not in text.stdout, text
        for player in ["@P1", str(model.user(1))]:
            history = pawl.run("rating", "history", str(CHAT), player, "--json").json
            assert [(row["opponent_name"], row["score"], row["opponent_score"], row["outcome"], row["rating"]) for row in history] == [
                ("Player 2", 2, 2, "drawn", 1485), ("Player 0", 1, 3, "lost", 1484)], history
        assert "3:1" in pawl.run("rating", "history", str(CHAT), "@p0").stdout
        refused(pawl, "rating", "leaderboard", "12", code=1, words=["there is no group 12"])
        refused(pawl, "rating", "leaderboard", "chess", code=2, words=["CHAT"])
        refused(pawl, "rating", "history", str(CHAT), "@nobody", code=1, words=["@nobody"])
        refused(pawl, "rating", "history", str(CHAT), "bob", code=2, words=["@name or a number"])


@test
def verify_passes_and_names_a_wrong_row():
    with Database() as db, Pawl(db) as pawl:
        for chat in (CHAT, -5):
            model = Model(db, 3, chat)
            for i in range(10):
                model.play(i % 3, (i + 1) % 3, i % 4, 1)
        done = pawl.run("rating", "verify", "--json")
        assert done.code == 0 and (done.json["ok"], done.json["groups"], done.json["matches"], done.json["players"]) == (
            True, 2, 20, 6), done
        assert "are consistent: 10 matches of 3 players in 1 group" in pawl.run("rating", "verify", "--", "-5").stdout
        db.rows(f"update rating.member set rating = rating + 1 where group_id = {model.group} and player_id = {model.ids[2]}")
        done = pawl.run("rating", "verify")
        assert done.code == 1 and f"player {model.ids[2]}" in done.stdout and "a replay gives" in done.stdout, done
        assert pawl.run("rating", "verify", str(CHAT)).code == 0


@test
def ratings_over_http_are_private_until_published():
    with Database() as db, Pawl(db) as pawl:
        model = Model(db, 3)
        first = model.play(0, 1, 3, 1)
        model.play(1, 2, 2, 2)
        pawl.serve()
        path = f"/v1/groups/{CHAT}"
        rating, read, command = key(pawl, "rating"), key(pawl, "read"), key(pawl, "command")
        for sub in ["leaderboard", f"players/{model.user(1)}/history", "matches"]:
            assert pawl.http("GET", f"{path}/{sub}", token=None).status == 401
            problem(pawl.http("GET", f"{path}/{sub}", token=command), 403)
            problem(pawl.http("GET", f"{path}/{sub}", token=rating), 404, part="not published")
            assert pawl.http("GET", f"{path}/{sub}", token=read).status == 200
        db.rows(f"select rating.group_set({model.group}, 'is_published', 'true')")
        board = pawl.http("GET", f"{path}/leaderboard?limit=2", token=rating).json
        assert board["chat"] == CHAT and board["total"] == 3 and [row["name"] for row in board["items"]] == ["Player 0", "Player 2"], board
        assert [row["place"] for row in pawl.http("GET", f"{path}/leaderboard?offset=2", token=rating).json["items"]] == [3]
        history = pawl.http("GET", f"{path}/players/@p1/history?limit=1", token=rating).json
        assert history["items"][0]["outcome"] == "drawn" and history["next_cursor"], history
        older = pawl.http("GET", f"{path}/players/@p1/history?cursor={history['next_cursor']}", token=rating).json
        assert [row["match"] for row in older["items"]] == [first] and older["next_cursor"] is None, older
        matches = pawl.http("GET", f"{path}/matches", token=rating).json["items"]
        assert [(m["a"]["name"], m["a"]["score"], m["b"]["score"], m["b"]["rating"], m["undone"]) for m in matches] == [
            ("Player 1", 2, 2, 1499, False), ("Player 0", 3, 1, 1484, False)], matches
        problem(pawl.http("GET", "/v1/groups/chess/leaderboard", token=rating), 400, part="chat must be a number")
        problem(pawl.http("GET", f"{path}/leaderboard?limit=0", token=rating), 400, part="limit")
        problem(pawl.http("GET", f"{path}/players/@nobody/history", token=rating), 404)


@test
def players_who_left_or_have_too_few_games_have_no_place():
    """Mistake 11 of the bot that this one replaces. Equal ratings have an order that does not change."""
    with Database() as db, Pawl(db) as pawl:
        model = Model(db, 6)
        model.play(0, 1, 1, 1)
        model.play(2, 3, 1, 1)
        model.play(0, 1, 2, 2)

        def board():
            return [row["username"] for row in pawl.run("rating", "leaderboard", str(CHAT), "--json").json]
        for _ in range(3):
            assert board() == ["p0", "p1", "p2", "p3"], board()
        db.rows(f"select * from rating.players_seen({model.group}, now(), array[{model.user(0)}], array['Player 0'], array['p0'], "
                "array[false], array[false])")
        assert board() == ["p1", "p2", "p3"], board()
        db.rows(f"select rating.group_set({model.group}, 'min_games', '2')")
        assert board() == ["p1"], board()
        assert db.rows(f"select coalesce(place::text, '-') from rating.places(array{[model.group] * 3}, array{model.ids[:3]})") == ["-", "1", "-"]


@test
def guards_of_the_sql_functions_refuse_null_and_nonsense():
    with Database() as db:
        model = Model(db, 2)
        good = (f"array[{model.group}], array['k'], array[1], array[null]::bigint[], array[1], array[0], array{model.ids}, array[1, 1], "
                "array[1500, 1500], array[350, 350], array[0.06, 0.06], "
                "array[1516, 1484], array[350, 350], array[0.06, 0.06], array[null]::timestamptz[]")
        bad = [("array['k']", "array[null]"), ("array['k']", "null"), ("['k'], array[1]", "['k'], array[99]"),
               ("[1], array[0]", "[0], array[0]"), ("[1], array[0]", "[1001], array[0]"), ("[1], array[0]", "[null::integer], array[0]"),
               ("[1], array[0]", "[1, 1], array[0]"), (f"array[{model.group}]", "array[null]::bigint[]"), (f"array[{model.group}]", "'{}'"),
               (f"array{model.ids}", f"array[{model.ids[0]}, {model.ids[0]}]"),
               (f"array{model.ids}", f"array[{model.ids[0]}]"), ("array[1, 1]", "array[1, null]"), ("array[1, 1]", "'[2:3]={1,1}'"),
               ("array[1516, 1484]", "array[10001, 1484]"), ("array[1516, 1484]", "array[-1, 1484]"), ("array[1516, 1484]", "null"),
               ("array[1516, 1484]", "array[1516, null]"), ("array[1516, 1484]", "array['nan', 1484]::float8[]"),
               ("array[null]::timestamptz[]", "null"), ("array[null]::timestamptz[]", "array[now(), now()]")]
        for old, new in bad:
            assert old in good, old
            try:
                db.rows(f"select rating.matches_write({good.replace(old, new, 1)})")
            except AssertionError as error:
                assert "ERROR" in str(error), error
            else:
                raise AssertionError(f"{old} -> {new} was not refused")
        assert db.value("select count(*) from rating.match") == "0"
        assert db.value("select string_agg(distinct version::text || ' ' || games, ',') from rating.member") == "1 0"
        db.rows(f"select rating.matches_write({good})")
        for sql in [f"select rating.group_set({model.group}, 'k_factor', '0')", f"select rating.group_set({model.group}, 'k_factor', null)",
                    f"select rating.group_set({model.group}, 'language', 'xx')", f"select rating.group_set({model.group}, 'colour', 'red')",
                    f"select rating.group_set({model.group}, null, 'red')", "select rating.group_set(-1, 'draws', 'true')",
                    "select rating.group_open(0, 'x', 'en')", "select rating.group_open(null, 'x', 'en')",
                    "select rating.group_move(1, null)", "select rating.group_move(1, 1)", "select rating.usage_add(array[null]::bigint[], '{1}', '{null}', 30)",
                    "select rating.usage_add('{1}', null, '{null}', 30)", "select rating.usage_add('{1,2}', '{1}', '{null,null}', 30)",
                    "select rating.usage_add('{1}', '{1}', null, 30)", "select rating.usage_add('{1}', '{1}', '{null}', 0)",
                    "select rating.usage_add('{1}', '{1}', '{null}', null)", "select rating.places('{1,2}', '{1}')",
                    "select rating.matches_read('{1}', '{k}', '{1}', '{2}', '{1}', null, '{null}')",
                    "select rating.matches_read('{1}', '{k}', '{1}', '{2}', '{1}', '{1}', null)",
                    *(f"select rating.turns_open({opened}, 30)" for opened in (
                        # chats, titles, languages, times, authors, counted; seen: turns, users, names, usernames, bots, presents; asked: turns, ords, users, names
                        "'{0}', '{x}', '{en}', array[now()], '{1}', '{t}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'",
                        "'{null}', '{x}', '{en}', array[now()], '{1}', '{t}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'",
                        "'{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'",
                        "'{1}', '{x}', '{en}', array[now()], '{1}', '{null}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'",
                        "'{1}', '{x}', '{en}', array[now()], '{1}', '{t}', '{}', null, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'",
                        "'{1}', '{x,y}', '{en}', array[now()], '{1}', '{t}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'",
                        "'{1}', '{x}', '{en}', array[now()], '{1}', '{t}', '{1}', '{5}', '{a,b}', '{a}', '{f}', '{t}', '{}', '{}', '{}', '{}'",
                        "'{1}', '{x}', '{en}', array[now()], '{1}', '{t}', '{1}', '{0}', '{a}', '{a}', '{f}', '{t}', '{}', '{}', '{}', '{}'",
                        "'{1}', '{x}', '{en}', array[now()], '{1}', '{t}', '{2}', '{5}', '{a}', '{a}', '{f}', '{t}', '{}', '{}', '{}', '{}'",
                        "'{1}', '{x}', '{en}', array[now()], '{1}', '{t}', '{null}', '{5}', '{a}', '{a}', '{f}', '{t}', '{}', '{}', '{}', '{}'",
                        "'{1}', '{x}', '{en}', array[now()], '{1}', '{t}', '{}', '{}', '{}', '{}', '{}', '{}', '{0}', '{1}', '{5}', '{null}'",
                        "'{1}', '{x}', '{en}', array[now()], '{1}', '{t}', '{}', '{}', '{}', '{}', '{}', '{}', '{1}', '{1}', '{{1},{2}}', '{}'")),
                    "select rating.question_put(1, null, 1, 2, 3, 1, null)", "select rating.question_put(1, 'k', 1, null, 3, 1, null)",
                    "select rating.question_put(1, 'k', 1, 1, 3, 1, null)", "select rating.question_put(1, 'k', 1, 2, 3, 1001, null)",
                    f"select rating.players_seen({model.group}, null, array[1], array['a'], array['a'], array[false], array[true])",
                    f"select rating.players_seen({model.group}, now(), array[0], array['a'], array['a'], array[false], array[true])",
                    f"select rating.players_seen({model.group}, now(), array[1, 2], array['a'], array['a'], array[false], array[true])"]:
            try:
                db.rows(sql)
            except AssertionError as error:
                assert "ERROR" in str(error), error
            else:
                raise AssertionError(f"{sql} was not refused")


@test
def no_message_waits_for_a_name_that_another_transaction_writes():
    """A long undo may hold the rows of who was renamed; messages in other groups go on."""
    with Database() as db:
        model = Model(db, 2)
        one, two = model.user(0), model.user(1)

        def seen(sql_of, user, name, username):
            sql_of(f"select rating.players_seen({model.group}, now(), array[{user}], array['{name}'], array['{username}'], array[false], array[true])")

        with Session(db.url) as undo, Session(db.url) as other:
            undo.do("begin")
            seen(undo.do, one, "Renamed", "renamed")
            other.do("set lock_timeout = '10s'")
            seen(other.do, one, "Renamed", "renamed")
            seen(other.do, two, "Second", "second")
            assert other.do("select name from rating.player order by id") == ["Player 0", "Second"]
            assert other.do("select name from rating.username order by player_id") == ["p0", "second"]
            undo.do("commit")
            seen(other.do, one, "Renamed", "renamed")
            assert other.do("select p.name, n.name from rating.player p join rating.username n on n.player_id = p.id order by p.id") == [
                "Renamed|renamed", "Second|second"]


@test
def usernames_change_hands_by_the_date_of_the_message():
    with Database() as db:
        model = Model(db, 2)
        one, two = model.user(0), model.user(1)

        def seen(user, username, at):
            name = f"'{username}'" if username else "null"
            db.rows(f"select * from rating.players_seen({model.group}, now() + interval '{at} s', array[{user}], array['N'], "
                    f"array[{name}]::text[], array[false], array[true])")

        def owner(name):
            return db.rows(f"select user_id from rating.players_named({model.group}, array['{name}'])")
        assert owner("P0") == [str(one)]
        seen(one, "fresh", 10)
        assert owner("p0") == [] and owner("fresh") == [str(one)]
        seen(two, "Fresh", 20)
        assert owner("fresh") == [str(two)]
        seen(one, "fresh", 15)  # late: an older message
        assert owner("fresh") == [str(two)]
        seen(two, None, 30)
        assert owner("fresh") == []
        seen(one, "fresh", 40)
        assert owner("fresh") == [str(one)]
        assert db.value("select count(*) from rating.username") == "1"


@test
def a_group_that_moves_keeps_everything():
    with Database() as db, Pawl(db) as pawl:
        model = Model(db, 2)
        model.play(0, 1, 3, 1)
        db.rows("select rating.group_open(-100777, 'chess', 'en')")  # the supergroup was seen first
        assert db.value(f"select rating.group_move({CHAT}, -100777)") == "t"
        assert db.value(f"select rating.group_move({CHAT}, -100777)") == "f"
        assert len(pawl.run("rating", "leaderboard", "--json", "--", "-100777").json) == 2
        # What was sent to the old chat, or asks for it, belongs to the group.
        assert len(pawl.run("rating", "leaderboard", "--json", "--", str(CHAT)).json) == 2
        assert db.value(f"select id from rating.group_open({CHAT}, 'chess', 'en')") == str(model.group)
        assert db.value("select count(*) from rating.groups") == "1"
        assert pawl.run("rating", "verify").code == 0


@test
def a_match_in_the_new_chat_of_a_group_is_seen_by_its_move_or_begun_again():
    """A move that finds the new chat without matches deletes its members; a match there that is not committed yet holds them."""
    with Database() as db:
        model, new = Model(db, 2), Model(db, 2, chat=-100777)
        model.play(0, 1, 3, 1)
        with Session(db.url) as one, Session(db.url) as two, concurrent.futures.ThreadPoolExecutor(1) as pool:
            one.do("begin")
            new.db = types.SimpleNamespace(rows=one.do, value=lambda sql: one.do(sql)[0])
            new.play(0, 1, 2, 1)
            moved = pool.submit(two.do, f"select rating.group_move({CHAT}, -100777)")
            wait_until(lambda: db.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%group_move%'") == "1")
            one.do("commit")
            assert moved.result() == ["f"]
        assert db.value("select count(*) from rating.groups") == "2" and db.value("select count(*) from rating.match") == "2"


@test
def no_part_of_an_undo_can_be_done_alone_and_no_state_is_no_number():
    with Database() as db:
        model = Model(db, 2)
        match = model.play(0, 1, 3, 1)
        app = "set role pawl_app; "
        for sql, words in ((f"select rating.undo_begin({model.group}, {match})", "without rating.undo_end"),
                           *((f"select rating.history_rewrite(array[{match}], array[{model.ids[0]}], array[{a}]::float8[], array[350], array[0.06], "
                              f"array[1516], array[{b}]::float8[], array[{c}]::float8[])", "history_values")
                             for a, b, c in (("'NaN'", "350", "0.06"), ("10001", "350", "0.06"), ("1500", "-1", "0.06"), ("1500", "'Infinity'", "0.06"),
                                             ("1500", "350", "'NaN'"))),
                           (f"select rating.matches_write(array[{model.group}], array['k'], array[1], array[{model.ids[0]}], array[3], array[1], "
                            f"array{model.ids}, array[2, 2], array[1516, 1484], "
                            "array['NaN', 350]::float8[], array[0.06, 0.06], array[1516, 1484], array[350, 350], array[0.06, 0.06], array[null]::timestamptz[])", "RT002")):
            try:
                db.rows(app + sql)
            except AssertionError as error:
                assert words in str(error) or words == "RT002" and "a match needs" in str(error), error
            else:
                raise AssertionError(f"{sql} was not refused")
        assert db.value("select count(*) from rating.match where undone_at is null") == "1"


@test
def lists_of_a_group_do_not_read_the_matches_of_others():
    with Database() as db:
        model = Model(db, 2)
        for n in range(12):
            model.play(0, 1, n + 1, 0)
        db.rows("insert into rating.match (group_id, key, player_a, player_b, score_a, score_b, rules_id, played_at) "
                "select 99, 'x' || i, 1, 2, 1, 0, 1, now() from generate_series(1, 20000) i; analyze rating.match")
        for undone in ("true", "false"):
            read = int(db.rows(f"""
                begin;
                select count(*) from rating.matches({model.group}, null, 10, {undone});
                select sum(pg_stat_get_xact_tuples_returned(c.oid) + pg_stat_get_xact_tuples_fetched(c.oid))::bigint
                from pg_class c where c.oid in ('rating.match'::regclass, 'rating.match_pkey'::regclass, 'rating.match_group'::regclass,
                                                'rating.match_active'::regclass)""")[-1])
            assert 0 < read < 200, f"{read} rows and index entries were read for 10 matches"


@test
def a_leaderboard_over_http_has_its_total_on_every_page_and_ends_with_the_bot():
    with Database() as db, Pawl(db) as pawl:
        model = Model(db, 3)
        model.play(0, 1, 3, 1)
        model.play(0, 2, 3, 1)
        pawl.serve()
        for offset, count in ((0, 3), (1, 2), (1000, 0)):
            got = pawl.http("GET", f"/v1/groups/{CHAT}/leaderboard?offset={offset}")
            assert (got.status, len(got.json["items"]), got.json["total"]) == (200, count, 3), (offset, got.json)
        db.rows(f"select rating.group_set({model.group}, 'is_published', 'true')")
        rating = key(pawl, "rating")
        assert pawl.http("GET", f"/v1/groups/{CHAT}/leaderboard", token=rating).status == 200
        db.rows(f"select rating.group_set({model.group}, 'is_active', 'false')")
        problem(pawl.http("GET", f"/v1/groups/{CHAT}/leaderboard", token=rating), 404, part="not published")


main()
