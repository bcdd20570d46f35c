#!/usr/bin/env python3
"""ledger_input - thousands of requests that cannot be meant: each is refused with 4xx by the name of its field, and nothing is
written. Names that are only odd work."""
import itertools
import json
import random
import re
import urllib.parse
from typing import NamedTuple

from ledger_servers import new_key, ports_of, rows_of, servers_start, servers_stop, wallets_open
from ledger_swarm import Request, Swarm
from pawl_test import Database, Pawl, main, test

SEED = 8
CASES_MIN = 5000
CLIENTS = 16
BIG = 2 ** 53
# Tables of the schema that what is refused must leave alone; seals are written in the background.
TABLES = ("asset", "wallet", "state", "txn", "entry", "hold")


class Raw(NamedTuple):
    """A value as it stands in the JSON text."""
    text: str


def raws(*texts):
    return [Raw(text) for text in texts]


NOT_TEXT = [7, 1.5, True, [], {}, ["x"], {"a": "x"}]
NOT_NUMBER = ["5", "", "x", True, False, [], {}, [5], {"a": 5}, 1.5, 0.1, *raws(
    "1e400", "-1e400", "1e3", "1.0", "5.", "05", "+5", "NaN", "Infinity", "0x10", "--5", "9" * 400, "1" + "0" * 30)]
BAD = {
    "amount": [0, -1, -BIG, BIG, BIG + 1, 2 ** 63 - 1, 2 ** 63, 2 ** 64, -2 ** 63 - 1, *NOT_NUMBER],
    "txn_id": ["", "7", "x" * 36, "00000000-0000-0000-0000-00000000000", "00000000-0000-0000-0000-0000000000001",
               "00000000_0000_0000_0000_000000000001", "0" * 10000, "\0", "é" * 18, *NOT_TEXT],
    "owner": ["", "@system", "@", "@ann", "a\nb", "\n", "a\tb", "a\rb", "\x7f", "\x01x", "a\0b", "x" * 256, "x" * 10000,
              "é" * 128, "\U0001F600" * 64, *NOT_TEXT, *raws('"\\ud800"', '"\\udc00x"', '"\\u12"', '"\\x41"', '"a', "'ann'")],
    "asset": ["", "eur", "Eur", "E R", "É", "1EUR", "E" * 33, "EUR\n", "EUR;", "$", "E" * 10000, *NOT_TEXT],
    "metadata": [7, "x", True, [], [1], *raws('{"a":1,"a":2}', '{"a":{"b":1,"b":2}}', '{"a":"\\u0000"}', '{"\\u0000":1}',
                                            '{"a":"\\ud800"}', "{", '{"a"}', "{" + '"a":{' * 3000 + "}" * 3001)],
    "floor": [1, -BIG, 2 ** 63, -2 ** 63 - 1, *NOT_NUMBER],
    "expires_in_s": [0, -1, 315360001, 2 ** 63, *NOT_NUMBER],
    "atomic": [1, 0, "true", [], {}, *raws("True", "yes")],
    "legs": [7, "x", True, {}, [], [{"owner": "ann", "amount": 1}], [7, 8], [[], []], [None, None],
             [{"owner": "ann", "amount": 1}, {"owner": "bob", "amount": 1}],
             [{"owner": "ann", "amount": 1}, {"owner": "ann", "amount": -1}],
             [{"owner": "ann", "amount": 1}, {"owner": "bob", "amount": -1, "asset": "EUR"}],
             [{"owner": "ann", "amount": 0}, {"owner": "bob", "amount": 0}],
             [{"owner": "ann", "amount": 1, "more": 1}, {"owner": "bob", "amount": -1}],
             [{"owner": "@other", "amount": 1}, {"owner": "bob", "amount": -1}],
             [{"owner": "ann", "amount": "1"}, {"owner": "bob", "amount": -1}],
             [{"amount": 1}, {"owner": "bob", "amount": -1}], [{"owner": "ann"}, {"owner": "bob", "amount": -1}],
             [{"owner": f"w{n}", "amount": 1} for n in range(101)],
             *raws('[{"owner":"ann","amount":1.0},{"owner":"bob","amount":-1.0}]',
                   '[{"owner":"ann","amount":1,"amount":1},{"owner":"bob","amount":-1}]')],
    "items": [7, "x", True, {}, [], [7], [[]], [{}]],
}
BAD["to"] = BAD["from"] = BAD["owner"]
WHOLE = [b"", b"[]", b"null", b"7", b'"x"', b"true", b"{", b"}", b"\0", b"\xff\xfe", b"{}x", b"{,}", b"{'a':1}", b"[" * 100000,
         b'{"a":' * 5000, b'{"amount":', b"{\"\xed\xa0\x80\":1}"]


class Route(NamedTuple):
    path: str
    body: dict  # a good one
    required: tuple


class Case(NamedTuple):
    path: str
    body: bytes
    statuses: tuple
    words: tuple  # of which one must be in what is said, if there are any
    headers: str = ""


def routes(hold, payment):
    more = {"asset": "CREDIT", "metadata": {"why": "test"}}
    key = {"txn_id": new_key()}
    one = {"from": "ann", "to": "bob", "amount": 1, **more}
    return [
        Route("/v1/wallets", {"owner": "cid", "floor": -5, **more, **key}, ("owner",)),
        Route("/v1/wallets/ann/topup", {"amount": 1, **more, **key}, ("txn_id", "amount")),
        Route("/v1/wallets/ann/spend", {"amount": 1, **more, **key}, ("txn_id", "amount")),
        Route("/v1/wallets/ann/freeze", {**more, **key}, ("txn_id",)),
        Route("/v1/wallets/ann/unfreeze", {**more, **key}, ("txn_id",)),
        Route("/v1/wallets/ann/floor", {"floor": -5, **more, **key}, ("txn_id", "floor")),
        Route("/v1/transfers", {**one, **key}, ("txn_id", "from", "to", "amount")),
        Route("/v1/transfers/batch", {"atomic": True, "items": [{**one, **key}]}, ("items",)),
        Route("/v1/transactions", {"legs": [{"owner": "ann", "amount": -1}, {"owner": "bob", "amount": 1}], **key,
                                   "metadata": {}}, ("txn_id", "legs")),
        Route(f"/v1/transactions/{payment}/refund", {"amount": 1, "metadata": {}, **key}, ("txn_id",)),
        Route("/v1/holds", {"owner": "ann", "amount": 1, "expires_in_s": 60, **more, **key}, ("txn_id", "owner", "amount")),
        Route(f"/v1/holds/{hold}/capture", {"amount": 1, "to": "bob", "metadata": {}, **key}, ("txn_id",)),
        Route(f"/v1/holds/{hold}/void", {"metadata": {}, **key}, ("txn_id",)),
    ]


def text_of(body):
    """JSON with the raw values as they are, and lone surrogates left to those."""
    def value(item):
        if isinstance(item, Raw):
            return item.text
        return json.dumps(item)

    return ("{" + ",".join(f"{json.dumps(name)}:{value(item)}" for name, item in body.items()) + "}").encode()


BAD_REQUEST = (400, 413)
UNREADABLE = ("JSON", "\\u0000", "duplicate", "nested")  # what is said when no field can be


def pairs_single(pairs):
    """For json.loads: no name twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name twice")
    return dict(pairs)


def constant_refuse(name):
    raise ValueError(name)


def words_of(field, body):
    """The field must be named wherever the body can be read at all."""
    if b"\\u0000" in body or b"\\ud" in body:
        return (field, *UNREADABLE)
    try:
        json.loads(body, object_pairs_hook=pairs_single, parse_constant=constant_refuse)
    except (ValueError, RecursionError):
        return (field, *UNREADABLE)
    return (field,)


def cases_of_fields(route):
    """Each field with each value that it cannot have."""
    for field in route.body:
        for value in BAD[field]:
            body = text_of({**route.body, field: value})
            yield Case(route.path, body, BAD_REQUEST, words_of(field, body))
    for field in route.required:
        rest = {name: value for name, value in route.body.items() if name != field}
        yield Case(route.path, text_of(rest), BAD_REQUEST, (field,))
        yield Case(route.path, text_of({**rest, field: None}), BAD_REQUEST, (field,))


def cases_of_shape(route):
    """What is no such object at all: cut off, with strangers in it, with a field twice."""
    good = text_of(route.body)
    for length in range(1, len(good)):
        yield Case(route.path, good[:length], BAD_REQUEST, ())
    for body in WHOLE:
        if body or route.path != "/v1/wallets":
            yield Case(route.path, body, BAD_REQUEST, ())
    for name in ("amuont", "Amount", "", "txn-id", "__proto__", "owner ", "kind", "balance"):
        yield Case(route.path, text_of({**route.body, name: 1}), BAD_REQUEST, (name,))
    for field, value in route.body.items():
        twice = good[:-1] + b"," + text_of({field: value})[1:]
        yield Case(route.path, twice, BAD_REQUEST, (field, "duplicate"))


def cases_of_items(route):
    """The fields of an item of a batch."""
    item = route.body["items"][0]
    for field in item:
        for value in BAD[field]:
            body = b'{"items":[' + text_of(item) + b"," + text_of({**item, field: value}) + b"]}"
            yield Case(route.path, body, BAD_REQUEST, words_of(f"items[1].{field}", body))
    yield Case(route.path, json.dumps({"items": [{**item, "to": "ann"}]}).encode(), BAD_REQUEST, ("items[0].from",))
    yield Case(route.path, json.dumps({"items": [item] * 8001}).encode(), BAD_REQUEST, ("items",))


def cases_of_names(hold):
    """Who is not there, who pays himself, and paths that name nobody."""
    key = {"txn_id": new_key()}
    for odd in ("nobody", "no\"body", "o'; drop table wallet.entry; --", "\U0001F984", "x" * 255, "%s%n", "\\", "a b"):
        named = urllib.parse.quote(odd, safe="")
        shown = f'"{odd}"'
        for verb in ("topup", "spend"):
            yield Case(f"/v1/wallets/{named}/{verb}", text_of({**key, "amount": 1}), (404,), (shown,))
        yield Case(f"/v1/wallets/{named}/floor", text_of({**key, "floor": 0}), (404,), (shown,))
        yield Case(f"/v1/wallets/{named}/freeze", text_of(key), (404,), (shown,))
        for payer, payee in ((odd, "ann"), ("ann", odd)):
            yield Case("/v1/transfers", text_of({**key, "from": payer, "to": payee, "amount": 1}), (404,), (shown,))
        yield Case("/v1/transfers", text_of({**key, "from": odd, "to": odd, "amount": 1}), (400,), ("from",))
        yield Case("/v1/holds", text_of({**key, "owner": odd, "amount": 1}), (404,), (shown,))
        yield Case(f"/v1/holds/{hold}/capture", text_of({**key, "to": odd}), (404,), (shown,))
        yield Case("/v1/transactions", text_of({**key, "legs": [{"owner": "ann", "amount": -1}, {"owner": odd, "amount": 1}]}),
                   (404,), (shown,))
    for path in ("%00", "%0A", "a%0Ab", "@system", "@", "x" * 256, "%F0%9F", "%ff", "%01"):
        for verb, body in (("topup", {"amount": 1}), ("spend", {"amount": 1}), ("freeze", {}), ("unfreeze", {}),
                           ("floor", {"floor": 0})):
            yield Case(f"/v1/wallets/{path}/{verb}", text_of({**key, **body}), (400, 404), ())
    for path in ("7", "x" * 36, "%00", "00000000-0000-0000-0000-00000000000g", "@"):
        for rest in ("holds/{}/capture", "holds/{}/void", "transactions/{}/refund"):
            yield Case("/v1/" + rest.format(path), text_of(key), (400,), ("txn_id", "%", "path"))
    for rest in ("holds/{}/capture", "holds/{}/void", "transactions/{}/refund"):
        yield Case("/v1/" + rest.format(new_key()), text_of(key), (404,), ("no such",))
    yield Case(f"/v1/holds/{hold}/capture", text_of({**key, "to": "ann"}), (400,), ("to",))
    for asset in ("EUR", "YEN"):
        for path, body in (("/v1/wallets/ann/topup", {"amount": 1}), ("/v1/wallets/ann/spend", {"amount": 1}),
                           ("/v1/transfers", {"from": "ann", "to": "bob", "amount": 1}),
                           ("/v1/holds", {"owner": "ann", "amount": 1})):
            yield Case(path, text_of({**key, **body, "asset": asset}), (404,), (asset,))


def cases_of_keys(route):
    """The key in the header."""
    rest = {name: value for name, value in route.body.items() if name != "txn_id"}
    for value in ('"', '""', '"7', '"7" 8', '"a\\b"', "x" * 201, "x" * 1000, f'"{new_key()}'):
        yield Case(route.path, text_of(rest), (400,), ("Idempotency-Key",), f"Idempotency-Key: {value}\r\n")
    if "txn_id" in route.body:
        yield Case(route.path, text_of(route.body), (400,), ("Idempotency-Key",), f"Idempotency-Key: {new_key()}\r\n")


def cases_of_two(every, chance, count):
    """Two fields wrong at once: either may be named."""
    for _ in range(count):
        route = chance.choice([route for route in every if len(route.body) > 1])
        fields = chance.sample(list(route.body), 2)
        body = {**route.body, **{field: chance.choice(BAD[field]) for field in fields}}
        names = list(body.items())
        chance.shuffle(names)
        yield Case(route.path, text_of(dict(names)), BAD_REQUEST, (*fields, *UNREADABLE))


def cases(hold, payment):
    every = routes(hold, payment)
    found = [case for route in every for case in itertools.chain(cases_of_fields(route), cases_of_shape(route))]
    found += cases_of_items(every[7])
    found += cases_of_names(hold)
    for route in every:
        if route.path != "/v1/transfers/batch":
            found += cases_of_keys(route)
    found += cases_of_two(every, random.Random(SEED), max(1000, CASES_MIN - len(found)))
    return found


def trouble(case, answer):
    """What is wrong with an answer; None: nothing."""
    if answer is None:
        return "no answer"
    if answer.status not in case.statuses:
        return f"{answer.status}, not {case.statuses}: {answer.body[:300]!r}"
    if b"\r\ncontent-type: application/problem+json\r\n" not in answer.head:
        return f"no problem document: {answer.head!r}"
    text = answer.body.decode()
    document = json.loads(text)
    if document.get("status") != answer.status or not document.get("type") or not document.get("title"):
        return f"no problem document: {text}"
    detail = document.get("detail", "")
    if case.words and not any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", detail) for word in case.words):
        return f"none of {case.words} is named: {text}"
    return None


def wallets_hash(rows):
    """Every byte of the ledger."""
    return [rows(f"select count(*), md5(string_agg(t::text, ' ' order by t::text)) from wallet.{table} t")[0] for table in TABLES]


@test
def what_cannot_be_meant_is_refused_by_name_and_leaves_no_trace():
    with Database() as db, Pawl(db) as pawl:
        rows = rows_of(db.url)
        wallets_open(rows, ["ann", "bob"], 1000)
        hold, payment = new_key(), new_key()
        rows(f"select * from wallet.post(array['hold', 'spend'], array['{hold}', '{payment}']::uuid[], array['ann', 'ann'], "
             "array[50, 50])")
        servers = servers_start(pawl, 2)
        before = wallets_hash(rows)
        every = cases(hold, payment)
        assert len(every) >= CASES_MIN, len(every)
        found, queue = [], iter(every)

        def client(place):
            for case in queue:
                answer = yield Request(place % 2, case.path, case.body, headers=case.headers)
                wrong = trouble(case, answer)
                if wrong:
                    found.append(f"{case.path} {case.headers.strip()} {case.body[:200]!r}: {wrong}")

        Swarm(ports_of(servers)).run([client(place) for place in range(CLIENTS)])
        assert not found, f"{len(found)} of {len(every)}:\n" + "\n".join(found[:40])
        assert wallets_hash(rows) == before
        servers_stop(servers)
        print(f"# {len(every)} cases")


ODD = ['say "hi"', "o'neill", "a b", "{brace}", "back\\slash", "percent%20", "slash/in", "ümläut", "\U0001F984\U0001F680",
       "מזל", "x" * 255, "null", "0", "-", "$1", "'; drop table wallet.entry; --", "comma,semi;", "<b>&amp;", "?q=1#f"]


@test
def odd_names_work_from_end_to_end():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for name in ODD:
            path = "/v1/wallets/" + urllib.parse.quote(name, safe="")
            for owner in (name, "ann"):
                answer = pawl.http("POST", "/v1/wallets", {"owner": owner})
                assert answer.status == 201 and answer.json["owner"] == owner, (owner, answer)
            answer = pawl.http("POST", path + "/topup", {"txn_id": new_key(), "amount": 10, "metadata": {name: name}})
            assert answer.status == 201 and answer.json["owner"] == name and answer.json["balance"] == 10, (name, answer)
            answer = pawl.http("POST", "/v1/transfers", {"txn_id": new_key(), "from": name, "to": "ann", "amount": 4})
            assert answer.status == 201 and (answer.json["from"], answer.json["balance"]) == (name, 6), (name, answer)
            hold = new_key()
            answer = pawl.http("POST", "/v1/holds", {"txn_id": hold, "owner": name, "amount": 6})
            assert answer.status == 201 and answer.json["available"] == 0, (name, answer)
            answer = pawl.http("POST", f"/v1/holds/{hold}/capture", {"txn_id": new_key(), "to": "ann"})
            assert answer.status == 201 and answer.json["owner"] == name, (name, answer)
            answer = pawl.http("POST", path + "/spend", {"txn_id": new_key(), "amount": 1})
            assert answer.status == 409 and name[:100] in answer.json["detail"], (name, answer)
            answer = pawl.http("GET", path)
            assert answer.status == 200 and (answer.json["owner"], answer.json["version"]) == (name, 4), (name, answer)
            entries = pawl.http("GET", path + "/entries").json["items"]
            assert [entry["kind"] for entry in entries] == ["capture", "hold", "transfer", "topup"], (name, entries)
            assert entries[3]["metadata"] == {name: name}, (name, entries)
        assert db.rows("select * from wallet.verify()") == []


main()
