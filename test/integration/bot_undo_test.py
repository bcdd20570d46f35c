#!/usr/bin/env python3
"""bot_undo - undo of an old match with thousands after it: one message shows how far it is, and becomes the answer."""
from bot_api import BotApi
from pawl_test import Database, Pawl, main, test, wait_until
from rating_model import expected
from servers import Session

FAST = {"PAWL_TELEGRAM_CHAT_INTERVAL": "0ms", "PAWL_TELEGRAM_GROUP_PER_MINUTE": "1000", "PAWL_TELEGRAM_PER_SECOND": "1000"}
BEGIN, END = 101, 102  # locks that an undo waits for: before its first change, and before its last one


def bot(db, api):
    return Pawl(db, env={**api.env(), **FAST})


def play(db, group, first, count):
    """Matches of Ann and Bob behind the one that the bot registered, as the bot would have written them."""
    ratings, rows = [1516, 1484], []
    for n in range(count):
        exact = 32 * ((n % 3 != 0) - expected(*ratings))
        change = int(abs(exact) + 0.5) * (1 if exact >= 0 else -1)
        after = [ratings[0] + change, ratings[1] - change]
        rows.append(f"({n},{int(n % 3 != 0)},{int(n % 3 == 0)},{ratings[0]},{ratings[1]},{after[0]},{after[1]})")
        ratings = after
    db.rows(f"""
        create table public.played (n integer, score_a integer, score_b integer, a double precision, b double precision, ra double precision, rb double precision);
        insert into public.played values {",".join(rows)};
        insert into rating.match (group_id, key, player_a, player_b, score_a, score_b, rules_id, played_at)
        select m.group_id, 'played:' || p.n, m.player_a, m.player_b, p.score_a, p.score_b, m.rules_id, m.played_at
        from public.played p, rating.match m where m.id = {first} order by p.n;
        insert into rating.history (match_id, player_id, group_id, opponent_id, outcome, rating_before, deviation_before, volatility_before,
                                    rating_after, deviation_after, volatility_after, played_at)
        select m.id, s.player, m.group_id, s.opponent, s.outcome, s.before, h.deviation_after, h.volatility_after, s.after, h.deviation_after, h.volatility_after, m.played_at
        from rating.match m join public.played p on m.key = 'played:' || p.n,
        lateral (values (m.player_a, m.player_b, sign(p.score_a - p.score_b), p.a, p.ra), (m.player_b, m.player_a, sign(p.score_b - p.score_a), p.b, p.rb))
          s (player, opponent, outcome, before, after)
        join rating.history h on h.match_id = {first} and h.player_id = s.player;
        update rating.member m set rating = h.rating_after, games = {count + 1}, last_match_id = h.match_id, version = m.version + {count}
        from rating.history h where h.player_id = m.player_id and h.match_id = (select max(id) from rating.match)""")


def gate(db):
    """An undo waits for the two locks."""
    db.rows(f"""
        create function public.gate() returns trigger language plpgsql as $$
        begin
          perform pg_advisory_xact_lock_shared(tg_argv[0]::integer);
          return null;
        end $$;
        create trigger gate before update on rating.match execute function public.gate({BEGIN});
        create trigger gate before insert on rating.undo execute function public.gate({END})""")


def edits(api):
    return [call.parameters["text"] for call in api.calls_of("editMessageText")]


class Old:
    """A group whose first match is old; entered as a context with a pod that runs."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.db, self.api = Database().__enter__(), BotApi().__enter__()
        self.pawl = bot(self.db, self.api).__enter__()
        self.group = self.api.group(-1001)
        self.ann, bob = [self.api.user(100 + n, name, username=name.lower()) for n, name in enumerate(("Ann", "Bob"))]
        self.server = self.pawl.serve("--role", "bot,api")
        self.api.message(self.group, bob, "/me")
        wait_until(lambda: len(self.api.sent(self.group)) == 1)  # confirmations of matches are sent before other answers
        self.api.message(self.group, self.ann, "/match @ann @bob 3 1")
        wait_until(lambda: len(self.api.sent(self.group)) == 2)
        self.answer = self.api.sent(self.group)[1]
        play(self.db, self.group, int(self.db.value("select id from rating.match")), self.count)
        verified = self.pawl.run("rating", "verify")
        assert verified.code == 0, verified
        return self

    def __exit__(self, *failure):
        self.pawl.__exit__(*failure)
        self.api.__exit__()
        self.db.__exit__(*failure)

    def undo(self):
        return self.api.message(self.group, self.ann, "/undo", reply_to=self.answer)["message"]["message_id"]

    def press(self):
        self.api.callback(self.ann, self.answer, self.answer["reply_markup"]["inline_keyboard"][0][0]["callback_data"])

    def shown(self, text):
        wait_until(lambda: any(text in sent for sent in self.api.texts(self.group) + edits(self.api)), what=text)

    def is_undone(self):
        assert self.db.value("select count(*) from rating.match where undone_at is not null") == "1"
        verified = self.pawl.run("rating", "verify")
        assert verified.code == 0, verified


def locks(session, *numbers):
    for number in numbers:
        session.do(f"select pg_advisory_lock({number})")


def unlock(session, number):
    session.do(f"select pg_advisory_unlock({number})")


@test
def a_long_undo_shows_its_progress_in_one_message():
    with Old(4500) as old, Session(old.db.url) as session:
        gate(old.db)
        locks(session, BEGIN, END)
        key = old.undo()
        old.shown("0 of 4500 later matches")
        assert old.db.value("select count(*) from rating.match where undone_at is not null") == "0", "it is said before anything is changed"
        unlock(session, BEGIN)
        old.shown("2000 of 4500 later matches")
        unlock(session, END)
        wait_until(lambda: "↩️ Undone: Ann 3:1 Bob" in old.api.texts(old.group)[-1], what="the result")
        sent = [m for m in old.api.sent(old.group) if m.get("reply_to_message", {}).get("message_id") == key]
        assert len(sent) == 1 and len(old.api.sent(old.group)) == 3, "one message, which was edited"
        assert "Later matches recalculated: " in sent[0]["text"], sent
        old.is_undone()


@test
def a_short_undo_is_one_message_without_progress():
    with Old(2000) as old:
        old.undo()
        wait_until(lambda: len(old.api.sent(old.group)) == 3)
        wait_until(lambda: old.api.calls_of("editMessageText"), what="the edit of the message about the match")
        assert "Undone" in old.api.texts(old.group)[2]
        assert old.db.value("select count(*) from pawl.command c join pawl.domain d on d.id = c.domain_id where d.name like '%:outbox'") == "4"
        old.is_undone()


@test
def a_long_undo_by_its_button_and_a_pod_that_dies_end_in_one_message():
    with Old(4500) as old, Session(old.db.url) as session:
        gate(old.db)
        locks(session, END)
        old.press()
        old.shown("0 of 4500 later matches")
        wait_until(lambda: old.db.value("select count(*) from pg_locks where locktype = 'advisory' and not granted") == "1", what="it waits at its end")
        old.server.kill()
        unlock(session, END)
        wait_until(lambda: old.db.value("select count(*) from pg_stat_activity where application_name = 'pawl' and datname = current_database()") == "0")
        old.db.rows("update pawl.lease set until = now() - interval '1 s'")  # as if its time were over
        old.pawl.serve("--role", "bot,api")
        wait_until(lambda: [("Undone" in text) for text in old.api.texts(old.group)] == [False, True, True], what="both messages")
        wait_until(lambda: old.api.answered, what="the press is answered")
        old.is_undone()


@test
def a_long_undo_that_fails_says_so_where_its_progress_was():
    with Old(4500) as old:
        old.db.rows("""
            create function public.fail() returns trigger language plpgsql as $$ begin raise exception 'broken' using errcode = 'XX000'; end $$;
            create trigger fail before insert on rating.undo execute function public.fail()""")
        old.undo()
        wait_until(lambda: "Something went wrong" in old.api.texts(old.group)[-1])
        assert len(old.api.sent(old.group)) == 3 and any("0 of 4500" in call.parameters["text"] for call in old.api.calls_of("sendMessage"))
        assert old.db.value("select count(*) from rating.match where undone_at is not null") == "0"


@test
def the_answer_of_a_long_undo_is_sent_though_its_progress_was_deleted():
    with Old(2001) as old, Session(old.db.url) as session:
        gate(old.db)
        locks(session, BEGIN)
        old.undo()
        old.shown("0 of 2001 later matches")
        with old.api.lock:
            old.api.messages[-1001].popitem()  # a member deletes it
        unlock(session, BEGIN)
        wait_until(lambda: "Undone" in old.api.texts(old.group)[-1])
        assert len(old.api.sent(old.group)) == 3
        old.is_undone()


@test
def an_undo_by_command_edits_the_message_about_the_match():
    with Database() as db, BotApi() as api, bot(db, api) as pawl:
        group = api.group(-1001)
        ann, bob = [api.user(100 + n, name, username=name.lower()) for n, name in enumerate(("Ann", "Bob"))]
        pawl.serve("--role", "bot,api")
        api.member_change(group, api.me(), "left", "member", by=ann, of_bot=True)
        api.message(group, bob, "hello")
        wait_until(lambda: len(api.sent(group)) == 1, what="the greeting")
        assert "I keep the ratings of this group" in api.texts(group)[0]
        api.member_change(group, api.me(), "member", "administrator", by=ann, of_bot=True)
        for score in ("3 1", "3 2"):
            api.message(group, ann, f"/match @ann @bob {score}")
        wait_until(lambda: db.value("select count(*) from pawl.telegram_sent") == "2", what="both matches are said")
        api.message(group, ann, "/undo")
        wait_until(lambda: len(api.sent(group)) == 4 and api.calls_of("editMessageText"), what="the answer, and the edit")
        wait_until(lambda: api.texts(group)[2] == "↩️ Undone: Ann 3:2 Bob", what="the edit is done")
        assert "reply_markup" not in api.sent(group)[2] and "reply_markup" in api.sent(group)[1]
        assert api.texts(group)[1].startswith("🏆 Ann 3:1 Bob") and api.texts(group)[3].startswith("↩️ Undone: Ann 3:2 Bob\n")


main()
