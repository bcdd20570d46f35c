#!/usr/bin/env python3
"""Commands whose audit was stored event by event keep every event, each shown once, and go on."""
import os
import subprocess
from pathlib import Path

from pawl_test import Database, main, setting, test

SOURCE = Path(setting("PAWL_SOURCE"))
MIGRATIONS = sorted((SOURCE / "sql/migrations").glob("*.sql"))
VIEW = next(file for file in MIGRATIONS if file.name.endswith("_audit_view.sql"))

# Number 1 has ended after a retry, 2 runs in its second attempt, 3 is queued, 4 waits for an operator, 5 was canceled; of 6 only the
# audit is left; 7 runs, and nothing says since when.
COMMANDS = """
insert into pawl.domain_name (id, name) values (1, 'shop');
insert into pawl.command (id, domain_id, command_id, type, payload, priority, max_attempts, created_at)
  select n, 1, ('00000000-0000-4000-8000-00000000000' || n)::uuid, 'charge', '{}', 4, 3, now() - interval '1 hour'
  from unnest('{1,2,3,4,5,7}'::integer[]) n;
select setval('pawl.command_seq', 9), setval('pawl.lease_seq', 9);
insert into pawl.ready values (1, 4, 3, 3, 0, 3, false);
insert into pawl.lease (id, token, until, domain_id, priority, attempt, max_attempts, extras)
  values (2, 5, now() + interval '1 hour', 1, 4, 2, 3, false), (7, 6, now() + interval '1 hour', 1, 4, 1, 3, false);
insert into pawl.tsq values (4, now(), 1, 1, 'broken');
insert into pawl.outcome (id, domain_id, status, attempts, ended_at, token)
  values (1, 1, 'COMPLETED', 2, now(), 3), (5, 1, 'CANCELED', 0, now(), null);
insert into pawl.audit (id, at, domain_id, attempt, event, command_id, actor)
  select n, now() - case n when 6 then interval '81 days' else '1 hour' end, 1, 0, 'SENT', ('00000000-0000-4000-8000-00000000000' || n)::uuid, 'web' from generate_series(1, 6) n;
insert into pawl.audit (id, at, domain_id, attempt, event, actor, details) values
  (1, now() - interval '50 min', 1, 1, 'RECEIVED', 'w1', null), (2, now() - interval '50 min', 1, 1, 'RECEIVED', 'w1', null),
  (1, now() - interval '40 min', 1, 1, 'RETRY_SCHEDULED', null, '{"error": "busy"}'),
  (2, now() - interval '40 min', 1, 1, 'RETRY_SCHEDULED', null, '{"error": "busy"}'),
  (1, now() - interval '30 min', 1, 2, 'RECEIVED', 'w2', null), (2, now() - interval '30 min', 1, 2, 'RECEIVED', 'w2', null),
  (1, now() - interval '20 min', 1, 2, 'COMPLETED', null, null),
  (4, now() - interval '50 min', 1, 1, 'RECEIVED', 'w1', null),
  (4, now() - interval '40 min', 1, 1, 'MOVED_TO_TSQ', null, '{"error": "broken"}'),
  (5, now() - interval '40 min', 1, 0, 'CANCELED', 'ann', null),
  (6, now() - interval '80 days', 1, 1, 'RECEIVED', 'w1', null), (6, now() - interval '80 days', 1, 1, 'COMPLETED', null, null);
"""


def psql(db, *arguments, stdin=None):
    done = subprocess.run([os.path.join(setting("PAWL_TEST_BIN"), "psql"), "-Xq1", "-v", "ON_ERROR_STOP=1", "-d", db.url, *arguments],
                          capture_output=True, text=True, input=stdin)
    assert done.returncode == 0, done.stderr


def definition(name):
    """As the build embeds it."""
    return subprocess.run([str(SOURCE / "scripts/embed_sql.py"), "--print", str(SOURCE / "sql"), name], capture_output=True, text=True,
                          check=True).stdout


def audit(db, numbers):
    return db.rows("select id, extract(epoch from at), domain_id, attempt, event, actor, details from pawl.audit "
                   f"where id in ({numbers}) order by id, at, attempt, event")


def events(db, number):
    return db.rows(f"select event, attempt, actor from pawl.audit where id = {number} order by at, step, place")


@test
def every_event_is_carried_over_once_and_commands_go_on():
    with Database(empty=True) as db:
        db.rows("create schema pawl")
        at = MIGRATIONS.index(VIEW)
        for file in MIGRATIONS[:at]:
            psql(db, "-f", str(file))
        psql(db, "-c", COMMANDS)
        before = audit(db, "1, 2, 3, 4, 5, 6")
        assert len(before) == 18, before
        psql(db, *[word for file in MIGRATIONS[at:] for word in ("-f", str(file))])
        psql(db, "-f", str(SOURCE / "sql/pg/query/migration_bootstrap.sql"))
        lines = [line for line in (SOURCE / "sql/schema.txt").read_text().splitlines() if not line.startswith("#")]
        psql(db, "-f", "-", stdin="".join(definition(line.split()[0]) for line in lines))
        assert audit(db, "1, 2, 3, 4, 5, 6") == before
        assert db.value("select count(*) from pawl.audit where id <= 5 and command_id is null") == "0", "only SENT had it before"
        assert db.value("select count(*) from pawl.event where id = 2") == "3", "RECEIVED of the lease is in the lease"
        assert [row.split("|")[0] for row in events(db, 7)] == ["RECEIVED"]

        # What runs ends, what is queued runs, and what waits is decided: every event once.
        assert db.value("select status from pawl.settle('{2}', '{5}', '{complete}')") == "COMPLETED"
        assert [row.split("|")[0] for row in events(db, 2)] == ["SENT", "RECEIVED", "RETRY_SCHEDULED", "RECEIVED", "COMPLETED"]
        assert events(db, 2)[3:] == ["RECEIVED|2|w2", "COMPLETED|2|"], events(db, 2)
        db.rows("select s.status from pawl.claim(1, 1, 60000, array_fill(0::bigint, array[10]), null, 'w3') c, "
                "pawl.settle(array[c.id], array[c.token], '{reject}', p_errors => '{no}') s")
        assert events(db, 3) == ["SENT|0|web", "RECEIVED|1|w3", "FAILED|1|"], events(db, 3)
        db.rows("select pawl.tsq_decide('{00000000-0000-4000-8000-000000000004}', 'complete', 'ann')")
        assert [row.split("|")[0] for row in events(db, 4)] == ["SENT", "RECEIVED", "MOVED_TO_TSQ", "OPERATOR_COMPLETE"]

        # Retention deletes them, and the audit stays whole until it is old itself.
        ended = audit(db, "1, 2, 3, 4, 5, 6")
        db.rows("update pawl.outcome set ended_at = ended_at - interval '31 days', started_at = started_at - interval '31 days'")
        assert db.value("select pawl.prune(100, '30 days', '90 days')") == "5"
        assert len(audit(db, "1, 2, 3, 4, 5, 6")) == len(ended), audit(db, "1, 2, 3, 4, 5, 6")
        assert db.value("select pawl.prune(100, '30 days', '79 days')") == "3", "the oldest of what was carried over"


@test
def queued_commands_with_large_payloads_are_marked():
    with Database(empty=True) as db:
        db.rows("create schema pawl")
        at = MIGRATIONS.index(next(file for file in MIGRATIONS if file.name.endswith("_large_payload.sql")))
        for file in MIGRATIONS[:at]:
            psql(db, "-f", str(file))
        psql(db, "-c", """
            insert into pawl.command (id, domain_id, command_id, type, payload, payload_bytes, priority, max_attempts, created_at)
            select n, 1, gen_random_uuid(), 't', '1', case when n % 2 = 0 then 5000 end, 4, 3, now() from generate_series(1, 6) n;
            insert into pawl.ready (domain_id, priority, pos, id, attempt, max_attempts, extras)
            values (1, 4, 1, 1, 0, 3, false), (1, 4, 2, 2, 0, 3, false);
            insert into pawl.delayed (id, due, domain_id, priority, attempt, max_attempts, extras)
            values (3, now(), 1, 4, 0, 3, false), (4, now(), 1, 4, 0, 3, false);
            insert into pawl.lease (id, token, until, domain_id, priority, attempt, max_attempts, extras, started_at)
            values (5, 1, now(), 1, 4, 1, 3, false, now()), (6, 1, now(), 1, 4, 1, 3, false, now())""")
        psql(db, "-f", str(MIGRATIONS[at]))
        for table in ("ready", "delayed", "lease"):
            assert db.rows(f"select id % 2, extras from pawl.{table} order by id") == ["1|f", "0|t"], table


@test
def what_processes_had_sent_is_known_as_theirs():
    """Before it was kept; so that it is canceled with them. What has ended, and what has another target, is not."""
    with Database(empty=True) as db:
        db.rows("create schema pawl")
        at = MIGRATIONS.index(next(file for file in MIGRATIONS if file.name.endswith("_process_sent_before.sql")))
        for file in MIGRATIONS[:at]:
            psql(db, "-f", str(file))
        psql(db, "-c", """
            insert into pawl.command (id, domain_id, command_id, type, payload, priority, max_attempts, created_at, reply_to)
            select n, 1, gen_random_uuid(), 't', '1', 4, 3, now(),
                   (array[null, 'response:1/$reply.child', 'response:1/$reply.order[3]', 'response:1/$reply.done', 'response:1/$reply.known', 'queue'])[n]
            from generate_series(1, 6) n;
            insert into pawl.outcome (id, domain_id, status, attempts, ended_at) values (4, 1, 'COMPLETED', 1, now());
            insert into pawl.process_sent (id, sent_id) values (1, 5)""")
        psql(db, "-f", str(MIGRATIONS[at]))
        assert db.rows("select id, sent_id from pawl.process_sent order by 2") == ["1|2", "1|3", "1|5"]


main()
