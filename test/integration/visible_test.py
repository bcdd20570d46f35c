#!/usr/bin/env python3
"""visible - what users have stored cannot command the terminal of the operator who reads it: escape sequences, C1 controls and characters that turn text
round are printed as text, in all tables and views; JSON stays JSON, and files stay as they are.
"""
import json

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import define
from servers import on_terminal

# Clears the screen; CSI as one character; BEL; the rest of the line from right to left; returns to the first column; DEL.
EVIL = "a\x1b[2Jb\x9b31mc\x07d\u202ee\u2066f\rg\x7fh"
SHOWN = "a\\x1b[2Jb\\x9b31mc\\x07d\\u202ee\\u2066f\\x0dg\\x7fh"


def obeyed(text):
    return sorted({c for c in text if c not in "\n\t" and (ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0 or c in "\u061c\u200e\u200f" or 0x2028 <= ord(c) <= 0x202e
                                                          or 0x2066 <= ord(c) <= 0x2069)})


def literal(text):
    return "'" + text.replace("'", "''") + "'"


@test
def what_users_have_stored_does_not_command_the_terminal():
    with Database() as db, Pawl(db) as pawl:
        define(pawl, {"type": "order", "domain": "shop", "steps": [{"name": "w", "wait": {"response": "go"}}]})
        payload = json.dumps({"text": EVIL}, ensure_ascii=False).replace("\x7f", "\\u007f")
        command = db.value(f"select command_id from pawl.send('shop', '{{mail}}', array[{literal(payload)}::jsonb])")
        db.rows(f"""select 1 from pawl.claim(pawl.domain_find('shop'), 1, 60000, array_fill(0::bigint, array[10]), null, {literal(EVIL)}) c,
                    pawl.settle(array[c.id], array[c.token], '{{fail}}', p_errors => array[{literal(EVIL)}]) s""")
        process = db.value(f"select pawl.start('order', {literal(payload)}::jsonb, p_domain => 'shop')")
        db.rows(f"select pawl.signal('{process}', 'go', {literal(payload)}::jsonb, {literal(EVIL)}, p_actor => {literal(EVIL)})")
        db.rows(f"""select w.verdict from pawl.claim(pawl.domain_find('process:shop'), 1, 60000, array_fill(0::bigint, array[10]), null, {literal(EVIL)}) c,
                    pawl.process_write(array[c.id], array[c.token], '{{"{{\\"step\\": \\"w\\"}}"}}', null, array[{literal(EVIL)}], null, null, null, null, null, null,
                                       null, null, '{{fail}}', null, array[{literal(EVIL)}]) w""")
        assert pawl.run("wallet", "create", "ann").code == 0
        topup = json.loads(pawl.run("wallet", "topup", "ann", "5", "--metadata", payload, "--json").stdout)["txn_id"]
        views = [(("command", "show", command), True), (("command", "list"), False), (("tsq", "list"), True), (("process", "show", process), True),
                 (("process", "list"), True), (("wallet", "show", topup), True), (("wallet", "entries", "ann"), False), (("wallet", "statement", "ann"), False)]
        for arguments, has_it in views:
            text = pawl.run(*arguments)
            assert text.code == 0 and obeyed(text.stdout + text.stderr) == [], (arguments, obeyed(text.stdout), text)
            assert not has_it or "\\x9b31m" in text.stdout, (arguments, text.stdout)
            terminal = on_terminal(pawl, *arguments)
            assert obeyed(terminal) == [], (arguments, obeyed(terminal), terminal)
            # JSON has the same value in both, and to a terminal nothing that it obeys.
            piped, shown = pawl.run(*arguments, "--json").stdout, on_terminal(pawl, *arguments, "--json")
            assert json.loads(piped) == json.loads(shown) and obeyed(shown) == [], (arguments, shown)
            assert not has_it or EVIL in json.dumps(json.loads(piped), ensure_ascii=False).encode().decode("unicode_escape", "ignore") or "\x9b31m" in piped, piped
        assert SHOWN in pawl.run("command", "show", command).stdout.replace("\n", " ")
        # In a table a column is as wide as what is printed.
        head, row = pawl.run("tsq", "list").stdout.splitlines()[:2]
        assert row.index("a\\x1b") == head.index("ERROR" if "ERROR" in head else "error"), (head, row)
        # So are sentences about errors, and what the user has typed.
        refused = pawl.run("command", "show", EVIL)
        assert refused.code != 0 and obeyed(refused.stderr) == [] and "\\x9b31m" in refused.stderr, refused
        # Text of other languages stays.
        db.rows("select pawl.send('shop', '{mail}', array['\"Grüße, 你好, שלום 🙂\"'::jsonb])")
        last = db.value("select command_id from pawl.command order by id desc limit 1")
        assert "Grüße, 你好, שלום 🙂" in pawl.run("command", "show", last).stdout


@test
def files_and_csv_are_as_they_were_stored_unless_a_terminal_shows_them():
    with Database() as db, Pawl(db) as pawl:
        source = '{"type": "order", "domain": "shop", "steps": [{"name": "w", "set": {"a": "\u202eevil\u009b"}}]}'
        assert pawl.run("process", "define", "-", stdin=source).code == 0
        printed = pawl.run("process", "definitions", "order", "--version", "1")
        assert printed.stdout.rstrip("\n") == source, printed
        shown = on_terminal(pawl, "process", "definitions", "order", "--version", "1")
        assert obeyed(shown) == [] and "\\u202eevil\\x9b" in shown, shown


if __name__ == "__main__":
    main()
