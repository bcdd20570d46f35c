#!/usr/bin/env python3
"""arguments - every function that a role may call, with every argument null, extreme or malformed in turn.

A call succeeds, or it is refused by pawl itself: with an SQLSTATE of one of its modules, or with 42501 in its own words. An error of a
table, a cast or a limit says that a guard is missing. No list of names: pawl.grant_functions() says which functions there are, and pg_proc their arguments.
"""
import random
import re

from pawl_test import Database, main, test

# The SQLSTATEs that are pawl's own, and 42501 in its own words: the caller may not do this with these arguments.
OWN = re.compile(r"^(QU|QW|QP|QS|PW|RT|TG)... |^42501 (?!permission denied)")
# These cast: one form of pawl.send its texts, pawl.micros its time. PostgreSQL names what cannot be cast.
CASTS, CAST = {"pawl.send", "pawl.micros"}, re.compile(r"^(22P02|22007|22003|22008|0A000) ")
# It calls a function of an application, which may be missing and may raise what it likes.
CALLS_OTHERS, OTHERS = {"pawl.handler_call"}, re.compile(r"^(3F000|42883|22004) ")

UUID = "00000000-0000-4000-8000-000000000001"
LONG = "repeat('x', 100000)"
# Of each type: first a value that is probably right, then those that are not.
VALUES = {
    "text": ["'shop'", "null", "''", LONG, "e'a\\nb'", "'%s \\ '' \" $1'", "'11111'"],
    "bigint": ["1", "null", "0", "-1", "9223372036854775807", "-9223372036854775808", "9007199254740993"],
    "integer": ["1", "null", "0", "-1", "2147483647", "-2147483648"],
    "smallint": ["1", "null", "0", "-1", "32767", "-32768"],
    "boolean": ["true", "null", "false"],
    "uuid": [f"'{UUID}'", "null"],
    "jsonb": ["'{}'", "null", "'null'", "'[]'", "'[null]'", "'1e400'", "'\"x\"'", "'{\"a\": null}'", "'{\"a\": \"x\"}'", "'{\"a\": -1}'",
              "'{\"queue\": null, \"message\": null, \"domain\": 1}'", "'{\"domain\": \"shop\", \"type\": \"t\", \"queue\": \"q\", \"message\": {}}'"],
    "interval": ["'1 day'", "null", "'0'", "'-1 day'", "'178000000 years'", "'-178000000 years'", "'300000 years'", "'2 days -48 hours'"],
    "timestamp with time zone": ["now()", "null", "'infinity'", "'-infinity'", "'294276-12-31'", "'4713-01-01 BC'"],
    "bytea": ["sha256('shop')", "null", "''", "'\\x01'"],
    "double precision": ["1", "null", "0", "-1", "'NaN'", "'infinity'", "'-infinity'", "1e308"],
    "numeric": ["1", "null", "-1", "'NaN'", "1e1000"],
    "name": ["'shop'", "null", "''"],
    "oid": ["'pg_catalog.now()'::regprocedure::oid", "null", "0", "4294967295"],
    "regclass": ["'pawl.command'::regclass", "null"],
    "character": ["'x'", "null", "''"],
    "pawl.command_filter": ["null", "row(null, null, null, null, null, null)", "row('t', 'c', 'k', now(), now(), '{1}')",
                            "row('', '', '', '-infinity', 'infinity', '{null}')"],
}


def values(kind):
    """What an argument of this type is called with."""
    if not kind.endswith("[]"):
        return [f"({value})::{kind}" for value in VALUES[kind]]
    inner = VALUES[kind[:-2]]
    lists = [f"array[{inner[0]}]", "null", "'{}'", "array[null]", f"array[{inner[0]}, null]", f"array[{inner[0]}, {inner[0]}]"]
    lists += [f"array[{value}]" for value in inner[1:]]
    lists += [f"array[array[{inner[0]}, {inner[0]}]]"]
    lists += [f"array_fill(({inner[0]})::{kind[:-2]}, array[1], array[0])", f"array_fill(({inner[0]})::{kind[:-2]}, array[1], array[-2147483648])"]
    return [f"({value})::{kind}" for value in lists]


# What is right for arguments whose first value above is not: without it what is behind their guards is never reached.
TEN, PAIR = "array_fill(0::bigint, array[10])", "array[1, 2]"
RIGHT = {
    "pawl.answer_keep": {"p_status": "200"},
    "pawl.batch_new": {"p_on_complete": "'{\"domain\": \"shop\", \"type\": \"t\"}'"},
    "pawl.bot_letter_keep": {"p_type": "'match_undo'"},
    "pawl.claim": {"p_after": TEN, "p_lease_ms": "1000"},
    "pawl.claimers_ready": {"p_floors": TEN},
    "pawl.command_decide": {"p_decision": "'complete'"},
    "pawl.decided_position": {"p_floors": TEN},
    "pawl.extend": {"p_lease_ms": "1000"},
    "pawl.key_create": {"p_scopes": "array['read']", "p_ttl_ms": "1000"},
    "pawl.least_age_set": {"p_what": "'keys'"},
    "pawl.process_counted": {"p_records": "array['{\"step\": \"a\", \"attempt\": 0}']"},
    "pawl.process_define": {"p_deadline_action": "'fail'", "p_steps": "'[{\"name\": \"a\", \"kind\": \"set\"}]'"},
    "pawl.process_write": {"p_records": "array['{\"step\": \"a\", \"attempt\": 0}']"},
    "pawl.retry_policy_set": {"p_order_key": "'hold'"},
    "pawl.send": {"p_command_id": "null", "p_payload": "'{}'", "p_delay": "'1 s'", "p_priority": "'1'", "p_max_attempts": "'1'", "p_batch": "null"},
    "pawl.send_items": {"p_attached": "null"},
    "pawl.settle": {"p_outcomes": "array['complete']"},
    "pawl.settle_items": {"p_outcomes": "array['complete']"},
    "pawl.signal": {"p_domain": "'process'"},
    "pawl.signal_one": {"p_domain": "'process'"},
    "pawl.start": {"p_process_id": "null", "p_on_deadline": "'fail'", "p_deadline_at": "null"},
    "pawl.tally_add": {"p_names": "array['handlers']"},
    "pawl.telegram_moved": {"p_to": "2"},
    "pawl.tsq_decide": {"p_action": "'complete'"},
    "rating.group_move": {"p_to": "2"},
    "rating.matches_write": {name: PAIR for name in (
        "p_players", "p_versions", "p_ratings_before", "p_deviations_before", "p_volatilities_before", "p_ratings", "p_deviations", "p_volatilities")},
    "rating.question_put": {"p_player_b": "2"},
    "wallet.emit_to": {"p_asset": "'CREDIT'"},
    "wallet.open": {"p_assets": "array['CREDIT']", "p_floors": "array[0]"},
    "wallet.post": {"p_kinds": "array['transfer']", "p_others": "array['other']", "p_assets": "array['CREDIT']", "p_refs": "null", "p_requests": "null"},
    "wallet.post_transfer": {"p_other": "'other'", "p_asset": "'CREDIT'"},
    "wallet.verify_step": {"p_step": "'assets'"},
}


def calls(name, arguments, chance):
    """Lists of values: each argument with each value while the others are right, all null, and some in which nothing is."""
    own = RIGHT.get(name, {})
    choices = [([f"({own[argument]})::{kind}"] if argument in own else []) + values(kind) for argument, kind in arguments]
    right = [choice[0] for choice in choices]
    yield right
    yield [f"null::{kind}" for _, kind in arguments]
    for at, choice in enumerate(choices):
        for value in choice[1:]:
            yield right[:at] + [value] + right[at + 1:]
    for _ in range(10 * len(choices)):
        yield [chance.choice(choice) for choice in choices]


# Runs one call and undoes it. Returns what it raised.
TRY = """
create function pg_temp.try(p_call text) returns text language plpgsql as $$
begin
  execute p_call;
  raise exception using errcode = 'ZZ001';
exception when others then
  return nullif(sqlstate, 'ZZ001') || '|' || translate(left(sqlerrm, 300), e'\\n|', ' /');
end $$;
"""
GRANTED = """
select p.oid::regproc || '|' || (select coalesce(string_agg(coalesce(p.proargnames[n], '') || ':' || replace(format_type(t, null), 'anyarray', 'text[]'), ';' order by n), '')
                                 from unnest(p.proargtypes) with ordinality a (t, n))
from pg_proc p
where p.pronamespace in ('pawl'::regnamespace, 'wallet'::regnamespace, 'rating'::regnamespace) and p.prokind = 'f'
  and exists (select from pawl.grant_functions() g where g.name = p.oid::regproc::text)
order by 1
"""
# What the calls meet: a command, or a process, with the number 1 and a lease with the token 1; a batch, a wallet, a dead letter, a key.
WORLD = f"""
select pawl.batch_new('{UUID}');
select wallet.open(array['shop']);
select pawl.dead_letter_put(array['shop'], array['shop'], array['{{}}'::jsonb], array['shop'], array['shop'], 0);
select pawl.key_create('shop', sha256('shop'), array['read'], null);
"""
COMMAND = f"""
select pawl.send('shop', 'shop', '{{}}'::jsonb, p_command_id => '{UUID}', p_reply_to => 'replies', p_batch => '{UUID}');
select from pawl.claim(pawl.domain_find('shop'), 1, 60000, array_fill(0::bigint, array[10]), null, 'worker');
update pawl.lease set token = 1;
"""
PROCESS = f"""
select pawl.start('shop', '{{}}', p_process_id => '{UUID}');
select from pawl.claim(pawl.domain_find('process:process'), 1, 60000, array_fill(0::bigint, array[10]), null, 'worker');
update pawl.lease set token = 1;
"""


def raw_errors(db, seed=1):
    """The calls that were answered with an error that is not pawl's own."""
    chance = random.Random(seed)
    script = []
    for line in db.rows(GRANTED):
        name, arguments = line.split("|")
        for made in calls(name, [argument.split(":") for argument in arguments.split(";") if argument], chance):
            script.append(f"('{name}', $call$select * from {name}({', '.join(made)})$call$)")
    assert len(script) > 5000, len(script)
    rows = []
    for first in range(0, len(script), 2000):
        rows += db.rows(f"{TRY} set lock_timeout = '2s'; set role pawl_admin; "
                        f"select c.name, r.raised, c.call from (values {', '.join(script[first:first + 2000])}) c (name, call), "
                        "lateral (select pg_temp.try(c.call) as raised offset 0) r where r.raised is not null")
    for row in rows:
        name, state, message, call = row.split("|", 3)
        raised = f"{state} {message}"
        if not (OWN.match(raised) or name in CASTS and CAST.match(raised) or name in CALLS_OTHERS and OTHERS.match(raised)):
            yield f"{name}: {raised}: {call[:300]}"


@test
def every_argument_is_checked_by_pawl_itself():
    for work in (COMMAND, PROCESS):
        check(work)


def check(work):
    with Database() as db:
        db.rows(WORLD + work)
        assert db.value("select id || ' ' || token from pawl.lease") == "1 1"
        raw = list(raw_errors(db))
        names = sorted({line.split(":")[0] for line in raw})
        assert not raw, f"{len(raw)} calls of {len(names)} functions ({', '.join(names)}), one of each:\n" + "\n".join(
            next(line for line in raw if line.startswith(f"{name}: ")) for name in names)


main()
