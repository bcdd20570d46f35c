#!/usr/bin/env python3
"""bot_batch - matches of several chats that share a transaction, and one of them that must not stop the others."""
from bot_api import BotApi
from pawl_test import Database, Pawl, main, test, wait_until
from servers import Session

CHATS = 12
# Two batches run at a time: a quarter of the pool.
SETTINGS = {"PAWL_TELEGRAM_CHAT_INTERVAL": "0ms", "PAWL_TELEGRAM_GROUP_PER_MINUTE": "1000", "PAWL_TELEGRAM_PER_SECOND": "1000",
            "PAWL_TELEGRAM_CONCURRENCY": "32", "PAWL_POOL_MAX": "8"}


class Chats:
    """Groups with two players each, whom the bot has seen."""

    def __init__(self, db, api, pawl):
        self.db, self.api, self.pawl = db, api, pawl
        self.ann, self.bob = api.user(100, "Ann", username="ann"), api.user(101, "Bob", username="bob")
        self.groups = [api.group(-1001 - n) for n in range(CHATS)]
        for group in self.groups:
            for user in (self.ann, self.bob):
                api.message(group, user, "hello")

    def ready(self):
        wait_until(lambda: self.db.value("select count(*) from rating.member") == str(2 * CHATS), what="all players are known")
        wait_until(lambda: self.db.value("select count(*) from pawl.lease") == "0")

    def play(self, n, **options):
        return self.api.message(self.groups[n], self.ann, "/match @ann @bob 3 1", **options)

    def waiting(self):
        return int(self.db.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%turns_open%'"))

    def together(self, last):
        """Two matches wait for the test's lock, each in a transaction of its own. Those that come meanwhile share the next one. last() sends
        one more update."""
        with Session(self.db.url) as session:
            session.do("begin")
            session.do("lock table rating.usage in access exclusive mode")
            for n in range(2):
                self.play(n)
                wait_until(lambda n=n: self.waiting() == n + 1, what=f"{n + 1} wait for the lock")
            for n in range(2, CHATS - 1):
                self.play(n)
            last()
            wait_until(lambda: self.db.value("select count(*) from pawl.lease") == str(CHATS), what="all updates are claimed")
            session.do("commit")

    def all_done(self):
        wait_until(lambda: self.db.value("select count(*) from pawl.command c where not exists (select from pawl.outcome o where o.id = c.id)") == "0",
                   what="all updates and messages are done")

    def transactions(self):
        return int(self.db.value("select count(distinct xmin::text) from rating.match"))

    def check(self, but=()):
        """Each match once, with one answer."""
        for n, group in enumerate(self.groups):
            if n in but:
                continue
            assert self.db.value(f"select count(*) from rating.match m join rating.groups g on g.id = m.group_id where g.chat_id = {group['id']}") == "1", n
            text, = self.api.texts(group)
            assert text.startswith("🏆 Ann 3:1 Bob\nAnn: 1516 (+16), place 1\nBob: 1484 (−16), place 2"), (n, text)
        assert self.pawl.run("rating", "verify").code == 0


@test
def matches_of_many_chats_share_a_transaction():
    with Database() as db, BotApi() as api, Pawl(db, env={**api.env(), **SETTINGS}) as pawl:
        pawl.serve("--role", "bot,api")
        chats = Chats(db, api, pawl)
        chats.ready()
        chats.together(lambda: chats.play(CHATS - 1))
        chats.all_done()
        chats.check()
        assert chats.transactions() <= CHATS // 2, chats.transactions()


@test
def an_update_that_fails_conflicts_or_is_repeated_stops_no_other_of_its_batch():
    with Database() as db, BotApi() as api, Pawl(db, env={**api.env(), **SETTINGS}) as pawl:
        server = pawl.serve("--role", "bot,api")
        chats = Chats(db, api, pawl)
        chats.ready()
        bad, conflict = chats.groups[3]["id"], chats.groups[4]["id"]
        first = chats.play(CHATS - 1)
        wait_until(lambda: api.texts(chats.groups[-1]), what="the first answer")
        db.rows("create sequence public.tries; create function public.disturb() returns trigger language plpgsql security definer as $$ begin "
                f"if new.group_id = (select id from rating.groups where chat_id = {bad}) then raise exception 'poison'; end if; "
                f"if new.group_id = (select id from rating.groups where chat_id = {conflict}) and nextval('public.tries') <= 2 then "
                "raise exception 'changed' using errcode = 'RT001'; end if; return new; end $$;"
                "create trigger disturb before insert on rating.match for each row execute function public.disturb()")
        # The same message under the id of another update.
        chats.together(lambda: chats.play(CHATS - 1, message_id=first["message"]["message_id"]))
        chats.all_done()
        chats.check(but=(3, CHATS - 1))
        assert db.value("select count(*) from rating.match") == str(CHATS - 1)
        text, = api.texts(chats.groups[3])
        assert "1516" not in text, text
        assert len(set(api.texts(chats.groups[-1]))) == 1 and len(api.texts(chats.groups[-1])) == 2, api.texts(chats.groups[-1])
        # In the batch, alone, and then with success.
        assert int(db.value("select last_value from public.tries")) >= 3
        assert any("RT001" in line and "running again" in line for line in server.stderr), server.stderr[-20:]


@test
def a_pod_that_is_killed_in_a_batch_leaves_all_of_it_to_another():
    with Database() as db, BotApi() as api, Pawl(db, env={**api.env(), **SETTINGS}) as pawl:
        first = pawl.serve("--role", "bot,api")
        chats = Chats(db, api, pawl)
        chats.ready()
        first.stop()
        # In the third transaction: the first two have one match each.
        killed = pawl.serve("--role", "bot", wait=False, env={"PAWL_FAULT": "bot.update.game:kill:1:2"})
        chats.together(lambda: chats.play(CHATS - 1))
        wait_until(lambda: not killed.is_running(), what="the pod is killed")
        assert int(db.value("select count(*) from rating.match")) <= 2
        db.rows("update pawl.lease set until = now() - interval '1 s'")  # as if its time were over
        pawl.serve("--role", "bot,api")
        chats.all_done()
        # The answers of the first two may have been on their way when it was killed: then they are sent again.
        chats.check(but=(0, 1))
        assert db.value("select count(*) from rating.match") == str(CHATS)
        for group in chats.groups[:2]:
            assert len(set(api.texts(group))) == 1 and len(api.texts(group)) <= 2, api.texts(group)


main()
