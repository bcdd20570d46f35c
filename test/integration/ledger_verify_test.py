#!/usr/bin/env python3
"""ledger_verify - a byte that was changed past the ledger's triggers is found, and its row is named."""
import random

from checks import problem
from pawl_test import Database, Pawl, main, test
from servers import Session

SEED = 20261115
TRIES = 100
# How a finding names a row of this table, made from the row's own columns.
NAMES = {
    "txn": "format('txn %s', t.id)",
    "entry": "format('entry of wallet %s, version %s, txn %s', t.wallet_id, t.version, t.txn)",
    "wallet": "format('wallet %s', t.id)",
    "hold": "format('hold %s', t.id)",
    "seal": "format('seal %s', t.id)",
}
# Another value of the same type, one byte away.
OTHER = {
    "bigint": "{c} # (1::bigint << {bit})",
    "smallint": "({c} # (1 << {small}))::smallint",
    "integer": "{c} # (1 << {small})",
    "boolean": "not coalesce({c}, false)",
    "text": "overlay({c} placing chr(ascii(substr({c}, {at} + 1, 1)) # 1) from {at} + 1 for 1)",
    "uuid": "overlay({c}::text placing case when substr({c}::text, 1, 1) = '0' then '1' else '0' end from 1 for 1)::uuid",
    "timestamp with time zone": "{c} + (1 << {small}) * interval '1 us'",
    "jsonb": "{c} || '{{\"metadata\": \"other\"}}'",
    "bytea": "set_byte({c}, {at} % length({c}), get_byte({c}, {at} % length({c})) # (1 << {small}))",
}

LEDGER = """
select count(*) from wallet.open(array(select 'w' || n from generate_series(1, 20) n),
                                 p_floors => array(select -n from generate_series(1, 20) n));
select count(*) from wallet.post(array_fill('topup'::text, array[20]), array(select gen_random_uuid() from generate_series(1, 20)),
  array(select 'w' || n from generate_series(1, 20) n), array_fill(100000::bigint, array[20]));
select count(*) from wallet.post(array_fill('transfer'::text, array[500]), array(select gen_random_uuid() from generate_series(1, 500)),
  array(select 'w' || 1 + n % 20 from generate_series(1, 500) n), array(select n::bigint from generate_series(1, 500) n),
  array(select 'w' || 1 + (n + 7) % 20 from generate_series(1, 500) n));
select count(*) from wallet.post(array_fill('hold'::text, array[20]), array(select md5('h' || n)::uuid from generate_series(1, 20) n),
  array(select 'w' || n from generate_series(1, 20) n), array_fill(50::bigint, array[20]),
  p_requests => array(select case when n % 2 = 0 then '{"expires_in_s": 3600}'::jsonb end from generate_series(1, 20) n));
select count(*) from wallet.post(array_fill('capture'::text, array[8]), array(select gen_random_uuid() from generate_series(1, 8)), null,
  array_fill(20::bigint, array[8]), p_refs => array(select md5('h' || n)::uuid from generate_series(1, 8) n));
select count(*) from wallet.post(array_fill('void'::text, array[8]), array(select gen_random_uuid() from generate_series(1, 8)), null,
  null, p_refs => array(select md5('h' || n)::uuid from generate_series(5, 12) n));
select count(*) from wallet.post(array['spend', 'freeze'], array[gen_random_uuid(), gen_random_uuid()], array['w1', 'w2'],
  array[900000000, null]);
select wallet.seal(100), wallet.seal(100), wallet.seal(100);
"""


def ledger_rows(db):
    db.rows(LEDGER)
    while db.value("select wallet.seal(100)") != "0":
        pass
    assert db.rows("select * from wallet.verify()") == [], "the ledger is consistent at first"
    db.rows("select wallet.verify_record(max(id)) from wallet.seal")


def columns(db, table):
    rows = db.rows(f"select a.attname || '|' || format_type(a.atttypid, null) from pg_attribute a "
                   f"where a.attrelid = 'wallet.{table}'::regclass and a.attnum > 0 and not a.attisdropped")
    return [(row[0] if isinstance(row, (list, tuple)) else row).split("|") for row in rows]


# What the database itself refuses (a key that exists, a check) is no try.
TAMPER = """
create function pg_temp.tamper (p_sql text) returns text language plpgsql as $$
declare
  v_name text;
begin
  execute p_sql into v_name;
  return v_name;
exception when integrity_constraint_violation or data_exception or generated_always then
  return null;
end
$$
"""


def tamper(session, dice, table, column, kind):
    """Changes one byte of one row; its names as a finding would say them (a key may have changed), or nothing."""
    change = OTHER[kind].format(c="t." + column, bit=dice.randrange(52), small=dice.randrange(7), at=dice.randrange(8))
    name = NAMES[table]
    sql = (f"with picked as (select t.ctid as place, {name} as name from wallet.{table} t "
           f"where t.{column} is not null and ({change})::text <> t.{column}::text "
           f"order by md5(t.ctid::text || {dice.randrange(1 << 30)}) limit 1) "
           f"update wallet.{table} t set {column} = {change} from picked p where t.ctid = p.place "
           f"returning p.name || '|' || {name}")
    names = session.do(f"select pg_temp.tamper($sql${sql}$sql$)")
    return names[0].split("|") if names and names[0] else []


@test
def any_changed_byte_is_found_and_its_row_is_named():
    dice = random.Random(SEED)
    with Database() as db:
        ledger_rows(db)
        places = [(table, *column) for table in NAMES for column in columns(db, table)]
        with Session(db.url) as session:
            session.do("set session_replication_role = replica")
            session.do(TAMPER)
            tried = 0
            while tried < TRIES:
                table, column, kind = dice.choice(places)
                session.do("begin")
                names = tamper(session, dice, table, column, kind)
                if names:
                    found = session.do("select which || ': ' || sentence from wallet.verify()")
                    assert any(name in line for name in names for line in found), f"{table}.{column} of {names} (seed {SEED}, try {tried}): {found}"
                    tried += 1
                session.do("rollback")


@test
def a_removed_row_is_found():
    with Database() as db:
        ledger_rows(db)
        with Session(db.url) as session:
            session.do("set session_replication_role = replica")
            for table in ("txn", "entry", "wallet", "hold", "seal"):
                session.do("begin")
                session.do(f"delete from wallet.{table} where ctid = (select ctid from wallet.{table} order by ctid desc limit 1)")
                assert session.do("select 1 from wallet.verify()"), f"a row of {table} is gone and nobody saw it"
                session.do("rollback")


@test
def findings_are_reported_on_the_command_line_and_over_http():
    with Database() as db, Pawl(db) as pawl:
        ledger_rows(db)
        pawl.serve("--role", "api")
        done = pawl.run("wallet", "verify")
        assert done.code == 0 and done.stdout.startswith("the ledger is consistent: "), done
        done = pawl.run("wallet", "verify", "--new", "--json")
        assert done.code == 0 and done.json["ok"] and done.json["seals"] == 0, "nothing is new"
        wallet = db.value("insert into wallet.hold (id, wallet_id, amount) select 999999999, max(id), 1 from wallet.wallet returning wallet_id")
        for flags in ([], ["--new"]):
            done = pawl.run("wallet", "verify", *flags)
            assert done.code == 1 and f"wallet {wallet} " in done.stdout and "rows are inconsistent" in done.stderr, done
        for query in ("", "?new=true", "?new=false"):
            answer = pawl.http("GET", "/v1/ledger/verify" + query)
            assert answer.status == 200 and not answer.json["ok"], answer
            assert f"wallet {wallet}" in [finding["which"] for finding in answer.json["findings"]], answer.json
        problem(pawl.http("GET", "/v1/ledger/verify?new=perhaps"), 400, part="new")
        db.rows("delete from wallet.hold where id = 999999999")
        assert pawl.http("GET", "/v1/ledger/verify").json["findings"] == []


@test
def a_position_that_is_locked_keeps_no_verification_waiting():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as session:
        ledger_rows(db)
        pawl.serve("--role", "api")
        db.rows("delete from wallet.verified; select wallet.verify_record(1)")
        assert db.value("select max(id) > 1 from wallet.seal") == "t", "something is new"
        session.do("begin; select from wallet.verified for update")
        for query in ("?new=true", ""):
            answer = pawl.http("GET", "/v1/ledger/verify" + query)
            assert "wallet.verified" in problem(answer, 503)["detail"], answer
            assert int(answer.headers["retry-after"]) >= 1
        done = pawl.run("wallet", "verify", "--new")
        assert done.code == 75 and "the ledger is consistent, but" in done.stderr, done
        session.do("rollback")
        assert pawl.http("GET", "/v1/ledger/verify?new=true").json["ok"]


if __name__ == "__main__":
    main()
