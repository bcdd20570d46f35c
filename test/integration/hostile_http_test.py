#!/usr/bin/env python3
"""hostile_http - thousands of requests that are wrong: a clear 4xx or a closed connection, and nothing is written."""
import json
import random
import re
import resource
import secrets
import socket
import threading
import time

from checks import dead_letters_put, measured, memory_mib, metric, problem, stop_clean
from pawl_test import TIMEOUT_S, Database, Pawl, main, test, wait_until
from servers import in_threads

AUTH = f"Authorization: Bearer {Pawl.TOKEN}\r\n".encode()
SEED = 20261115
ENV = {"PAWL_READ_TIMEOUT": "60s", "PAWL_HTTP_BODY_BYTES": "65536"}
SHORT = {**ENV, "PAWL_READ_TIMEOUT": "2s"}


def talk(server, data, pieces=1, pause=0):
    """Send bytes as they are and read until the server closes or falls silent; what came back."""
    with socket.create_connection((server.host, server.port), timeout=TIMEOUT_S) as sock:
        answer = b""
        size = max(1, len(data) // pieces)
        try:
            for begin in range(0, len(data), size):
                sock.sendall(data[begin:begin + size])
                time.sleep(pause)
            sock.shutdown(socket.SHUT_WR)
            while chunk := sock.recv(65536):
                answer += chunk
        except (ConnectionResetError, BrokenPipeError):
            pass
        return answer


def answers_of(raw):
    """The answers in a stream: (status, type, body) each."""
    found = []
    while raw:
        match = re.match(rb"HTTP/1\.[01] (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n", raw)
        assert match, f"not HTTP: {raw[:80]!r}"
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in match.group(2).decode().splitlines())}
        size = int(headers.get("content-length", 0))
        body = raw[match.end():match.end() + size]
        found.append((int(match.group(1)), headers.get("content-type", ""), body))
        raw = raw[match.end() + len(body):]
    return found


def refused(server, data, silence=True, **how):
    """One 4xx with a problem document, or (if HTTP allows no answer) a closed connection."""
    raw = talk(server, data, **how)
    found = answers_of(raw)
    assert len(found) == 1 or (silence and not found), f"{data[:100]!r}: {len(found)} answers: {raw[:300]!r}"
    for status, kind, body in found:
        assert 400 <= status < 500, f"{data[:100]!r}: {status} {body!r}"
        if not data.startswith(b"HEAD"):
            assert kind == "application/problem+json", f"{data[:100]!r}: {kind}"
            assert json.loads(body)["status"] == status
    return found[0][0] if found else 0


def request(line, headers=b"", body=b"", auth=AUTH):
    return line + b" HTTP/1.1\r\nHost: x\r\n" + auth + headers + b"\r\n" + body


def with_body(line, body, kind=b"application/json"):
    return request(line, b"Content-Type: " + kind + b"\r\nContent-Length: %d\r\n" % len(body), body)


# --- what is wrong, by kind: each yields whole requests ---

def wrong_tokens(rng):
    for _ in range(150):
        junk = bytes(rng.choice(range(0x21, 0x7F)) for _ in range(rng.randrange(1, 60)))
        yield request(b"GET /v1/dead-letters", auth=b"Authorization: Bearer " + junk + b"\r\n")
        yield request(b"POST /v1/dead-letters/1/retry", auth=b"Authorization: " + junk + b"\r\n")
        yield request(b"DELETE /v1/dead-letters/1", auth=b"")
    for value in (b"Bearer", b"Bearer ", b"bearer\t", b"Basic YTpi", b"Bearer a b", b"Bearer " + b"a" * 5000,
                  b"Bearer pawl_" + b"A" * 43, b"Bearer \xff\xfe"):
        yield request(b"GET /v1/alerts", auth=b"Authorization: " + value + b"\r\n")


def wrong_methods(_):
    for path in (b"/v1/alerts", b"/health/live", b"/v1/dead-letters", b"/v1/dead-letters/1/retry", b"/metrics"):
        for method in (b"PUT", b"PATCH", b"TRACE", b"CONNECT", b"get", b"FOO", b"G\x00T", b"PROPFIND", b"A" * 300):
            yield request(method + b" " + path)
    yield request(b"GET /v1/dead-letters/1/retry")
    yield request(b"POST /v1/dead-letters/1")
    yield request(b"DELETE /v1/dead-letters")


def wrong_paths(rng):
    for path in (b"/", b"//", b"/v1", b"/v1/", b"/v1/nothing", b"/v1/dead-letters/", b"/v1/dead-letters/1/retry/",
                 b"/../etc/passwd", b"/v1/../../metrics", b"/v1/dead-letters/%", b"/v1/dead-letters/%zz/retry",
                 b"/v1/dead-letters/%00", b"/v1/dead-letters/%ff", b"/v1/dead-letters?limit=%zz",
                 b"/v1/dead-letters?x=1", b"/v1/dead-letters?limit=1&limit=1", b"nothing", b"", b"http://", b"*",
                 b"/" + b"a" * 3000, b"/v1/dead-letters?type=" + b"%80" * 10, b"/v1/alerts?" + b"a=1&" * 200):
        yield request(b"GET " + path)
    for _ in range(300):
        word = bytes(rng.randrange(0x21, 0x100) for _ in range(rng.randrange(1, 40)))
        yield request(b"DELETE /v1/dead-letters/x" + word.replace(b"/", b"."))
    for _ in range(200):
        yield request(b"POST /v1/dead-letters/%d/retry" % rng.randrange(10**6, 10**19))


def wrong_bodies(rng):
    """The route takes none; the letter that it names is there."""
    line = b"POST /v1/dead-letters/1/retry"
    texts = [b"{", b"}", b"nul", b"[1,", b'{"a":1,}', b"\xff\xfe", b'"\xc3\x28"', b'{"a":"\x00"}', b"[" * 60000,
             b'{"a":' * 10000, b"1e999999", b"-", b"{}{}", b'{"a":1,"a":2}', b'"\\ud800"', b"\x00" * 100, b"x" * 60000]
    for text in texts:
        yield with_body(line, text)
        yield with_body(line, text, b"text/plain")
        yield with_body(line, text, b"application/json; charset=latin-1")
    for _ in range(300):
        yield with_body(line, bytes(rng.randrange(256) for _ in range(rng.randrange(1, 200))))
    for size in (65537, 10**6, 10**9, 2**31, 2**63 - 1):
        yield request(line, b"Content-Length: %d\r\n" % size)


def wrong_framing(rng):
    line = b"POST /v1/dead-letters/1/retry"
    hidden = b"GET /v1/alerts HTTP/1.1\r\nHost: x\r\n" + AUTH + b"\r\n"
    for size in (b"-1", b"+5", b"0x10", b"5 5", b"5,6", b"", b" ", b"abc", b"99999999999999999999", b"1e3", b"5\x00"):
        yield request(line, b"Content-Length: " + size + b"\r\n", hidden)
    yield request(line, b"Content-Length: 5\r\nContent-Length: 6\r\n", hidden)
    for coding in (b"chunked, identity", b"identity", b"gzip, chunked", b"xchunked", b"chunked\x0b", b"chunked, chunked",
                   b"\x00chunked"):
        yield request(line, b"Transfer-Encoding: " + coding + b"\r\n", b"0\r\n\r\n" + hidden)
    yield request(line, b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + hidden)
    yield request(line, b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", b"0\r\n\r\n" + hidden)
    yield request(line, b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"0\r\n\r\n" + hidden)
    for chunk in (b"zz\r\n", b"-1\r\nx\r\n", b"5\r\nab", b"1\r\nabc\r\n0\r\n\r\n", b"ffffffffffffffff\r\n",
                  b"100000000000000000\r\n", b"1 \r\nx\r\n", b"1;" + b"x" * 20000, b"0x1\r\na\r\n", b"\r\n\r\n", b"1\nx\n0\n\n"):
        yield request(line, b"Transfer-Encoding: chunked\r\n", chunk)
    for _ in range(200):
        yield request(line, b"Transfer-Encoding: chunked\r\n", b"z" + bytes(rng.randrange(256) for _ in range(40)))


def wrong_headers(rng):
    line = b"GET /v1/alerts"
    for header in (b"A : b\r\n", b" folded: x\r\n", b"A: b\r\n folded\r\n", b": empty\r\n", b"no colon\r\n", b"A\x00: b\r\n",
                   b"A: b\x00c\r\n", b"A: b\nB: c\r\n", b"A(: b\r\n", b"\xff: b\r\n", b"A: b\rc\r\n", b"Host: y\r\n",
                   b"A: " + b"b" * 20000 + b"\r\n", b"A: b\r\n" * 5000, b"Expect: 200-maybe\r\n"):
        yield request(line, header)
    yield b"GET /v1/alerts HTTP/1.1\r\n" + AUTH + b"\r\n"  # no Host
    for version in (b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1.10", b"http/1.1", b"HTTP/1.", b"HTTP/11", b"HTTPS/1.1", b"\x00"):
        yield b"GET /v1/alerts " + version + b"\r\nHost: x\r\n" + AUTH + b"\r\n"
    for _ in range(200):
        name = bytes(rng.choice(b"()<>@,;\\\"/[]?={} \x01\x7f") for _ in range(rng.randrange(1, 10)))
        yield request(line, name + b": x\r\n")


def pure_noise(rng):
    for _ in range(400):
        yield b"\x01" + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 300))) + b"\r\n\r\n"
    yield b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)  # TLS hello
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield b"\r\n" * 20000
    yield b"G" * 100000


KINDS = (wrong_tokens, wrong_methods, wrong_paths, wrong_bodies, wrong_framing, wrong_headers, pure_noise)


def rows(db):
    return db.rows("select f::text from pawl.failed_operations f order by id") + \
        db.rows("select k::text from pawl.api_key k order by id")


@test
def thousands_of_wrong_requests_change_nothing():
    rng = random.Random(SEED)
    requests = [data for kind in KINDS for data in kind(rng)]
    assert len(requests) > 2000, len(requests)
    with Database() as db, Pawl(db, env=ENV) as pawl:
        server = pawl.serve()
        assert dead_letters_put(db, ["one", "two"]) == [1, 2], "the letter that the requests name"
        before = rows(db)

        def share(number):
            return [refused(server, data) for data in requests[number::8]]

        statuses = []
        for result in in_threads(8, share)():
            if isinstance(result, Exception):
                raise result
            statuses += result
        assert {400, 401, 404, 405, 413, 431} <= set(statuses), set(statuses)
        assert statuses.count(0) < len(statuses) / 10, "most can be answered"
        assert rows(db) == before
        assert pawl.http("GET", "/health/ready").status == 200
        stop_clean(server)


@test
def a_slow_request_is_given_up():
    with Database() as db, Pawl(db, env=ENV) as pawl:
        server = pawl.serve()
        whole = request(b"GET /v1/alerts")
        found = answers_of(talk(server, whole[:-2] + b"Connection: close\r\n\r\n", pieces=20, pause=0.01))
        assert found[0][0] == 200, "slow, but in time"
        stop_clean(server)
        server = pawl.serve(env=SHORT)
        with socket.create_connection((server.host, server.port), timeout=TIMEOUT_S) as sock:
            sock.sendall(whole[:20])
            begin = time.monotonic()
            raw = b""
            while chunk := sock.recv(65536):  # ends when the server closes
                raw += chunk
            assert 1 < time.monotonic() - begin < 30  # 60 with the other limit
            assert [status for status, *_ in answers_of(raw)] == [408], raw
        stop_clean(server)


@test
def many_idle_connections_do_not_keep_others_out():
    with Database() as db, Pawl(db, env=SHORT) as pawl:
        server = pawl.serve()
        idle = [socket.create_connection((server.host, server.port), timeout=TIMEOUT_S) for _ in range(200)]
        try:
            assert pawl.http("GET", "/v1/alerts").status == 200
            wait_until(lambda: not any_open(idle), what="idle connections are closed")
        finally:
            for sock in idle:
                sock.close()
        stop_clean(server)


@test
def a_thousand_idle_unauthenticated_connections_leave_descriptors_to_clients_and_database():
    """Started under a soft limit of 512: the server raises it, and strangers give way when all places are taken."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= 2048, "this needs a hard limit of 2048 open files"
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        with Database() as db, Pawl(db, env={"PAWL_HTTP_CONNECTIONS": "800"}) as pawl:
            server = pawl.serve()
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            idle = [socket.create_connection((server.host, server.port), timeout=TIMEOUT_S) for _ in range(1000)]
            for name in "abcdefgh":
                assert pawl.http("POST", "/v1/wallets", {"owner": name}).status == 201
            db.rows(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{db.name}' and pid <> pg_backend_pid()")
            wait_until(lambda: pawl.http("POST", "/v1/wallets", {"owner": "x"}).status == 201, what="new database connections")
            for sock in idle:
                sock.close()
            stop_clean(server)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@test
def unauthenticated_requests_cost_few_statements():
    def transactions():
        return metric(pawl, "pawl_transactions_total", 'outcome="ok"')

    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for ask, per_s in ((lambda: pawl.http("GET", "/health/ready", token=None).status, 1),
                           (lambda: pawl.http("GET", "/v1/alerts", token="pawl_" + secrets.token_urlsafe(32)).status, 50)):
            before, start = transactions(), time.monotonic()
            found = in_threads(40, lambda _, ask=ask: {ask() for _ in range(15)})()
            seconds = time.monotonic() - start
            assert found in ([{200}] * 40, [{401}] * 40), found
            # 600 requests. Beside them the monitor has some work of its own.
            assert transactions() - before < seconds * (per_s + 20) + 20, (transactions() - before, seconds)
        stop_clean(pawl.server)


@test
def responses_that_are_not_read_take_a_bounded_part_of_the_memory():
    """Of 256 MiB, of which one key leaves a part to others. A claim that is refused so is undone."""
    many, size = 120, 4000000
    with Database() as db, Pawl(db) as pawl:
        measured(pawl)
        server = pawl.serve()
        other = pawl.run("key", "create", "other", "--scopes", "read").stdout.strip()
        large = {"domain": "web", "type": "print", "payload": {"text": "x" * size}}
        sent = pawl.http("POST", "/v1/commands", large).json["command_id"]
        before = memory_mib(server.pid)
        slow, done = [], threading.Event()
        threading.Thread(target=sip, args=(slow, done), daemon=True).start()
        for number in range(1, many + 1):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect((server.host, server.port))
            sock.sendall(request(f"GET /v1/commands/{sent}".encode()))
            slow.append(sock)
            if number % 8 == 0:  # so few wait at a time that none does until its deadline
                wait_until(lambda: metric(pawl, "pawl_http_unsent_bytes") // size + metric(pawl, "pawl_http_unsent_shed_total") == len(slow),
                           what="all have their responses")
        most = memory_mib(server.pid)
        assert most < before + 320, f"{before} MiB, then {most} MiB"
        assert metric(pawl, "pawl_http_unsent_bytes") <= 192 << 20
        problem(pawl.http("GET", f"/v1/commands/{sent}"), 503, "try-again", "read slowly")
        problem(pawl.http("POST", "/v1/domains/web/claim", {}), 503, "try-again", "read slowly")
        assert pawl.http("GET", f"/v1/commands/{sent}", token=other).json["payload"] == large["payload"]
        assert pawl.http("GET", "/v1/commands").status == 200
        done.set()
        for sock in slow:
            sock.close()
        wait_until(lambda: metric(pawl, "pawl_http_unsent_bytes") == 0, what="the responses are given up")
        claimed, = pawl.http("POST", "/v1/domains/web/claim", {"wait_s": 20}, timeout=TIMEOUT_S).json["items"]
        assert claimed["command_id"] == sent and claimed["attempt"] == 1, claimed["attempt"]
        stop_clean(server)


def sip(sockets, done):
    """Read so fast that no connection is closed as too slow, however long the server takes to answer all."""
    while not done.wait(0.5):
        for sock in list(sockets):
            try:
                sock.recv(16384, socket.MSG_DONTWAIT)
            except OSError:  # nothing is there, or the test has closed it
                pass


def any_open(sockets):
    """Is one of them still open? A closed one is readable and gives nothing but what was said before the end."""
    for sock in sockets:
        sock.setblocking(False)
        try:
            while sock.recv(65536):
                pass
        except BlockingIOError:
            return True
        except OSError:
            pass
    return False


def post_begin(server, path, token, size):
    """A client that says how large its body is, and has sent none of it."""
    sock = socket.create_connection((server.host, server.port), timeout=TIMEOUT_S)
    sock.sendall(f"POST {path} HTTP/1.1\r\nHost: pawl\r\nAuthorization: Bearer {token}\r\nContent-Length: {size}\r\n\r\n".encode())
    return sock


@test
def bodies_take_a_bounded_part_of_the_memory():
    """Of 256 MiB, of which one key leaves a part to others, whatever the requests are and however long they take."""
    size = 8 << 20
    with Database() as db, Pawl(db, env={"PAWL_READ_TIMEOUT": "60s"}) as pawl:
        server = pawl.serve()
        greedy = pawl.run("key", "create", "greedy", "--scopes", "command").stdout.strip()
        pawl.http("GET", "/v1/commands", token=greedy)
        clients = [post_begin(server, "/v1/commands/batch", greedy, size) for _ in range(40)]
        wait_until(lambda: metric(pawl, "pawl_http_body_shed_total") == 16, what="those without a place are refused")
        assert metric(pawl, "pawl_http_body_bytes") == 192 << 20
        problem(pawl.http("POST", "/v1/commands", {"domain": "web", "type": "t", "payload": "x" * 100000}, token=greedy), 503, "try-again", "bodies")
        assert pawl.http("POST", "/v1/commands", {"domain": "web", "type": "t", "payload": "x" * 60000}, token=greedy).status == 201
        assert pawl.http("POST", "/v1/commands", {"domain": "web", "type": "t", "payload": "x" * 4000000}).status == 201
        for sock in clients:
            sock.close()
        wait_until(lambda: metric(pawl, "pawl_http_body_bytes") == 0, what="the memory is given back")
        assert pawl.http("POST", "/v1/commands", {"domain": "web", "type": "t", "payload": "x" * 100000}, token=greedy).status == 201
        stop_clean(server)


@test
def claims_and_extensions_have_small_bodies():
    """The largest valid ones fit, with each character escaped; what is padded beyond that is refused by its length."""
    def escaped(length, number=0):
        return '"' + "".join(f"\\u{ord(c):04x}" for c in f"{number:0{length}}") + '"'

    types = ",".join(escaped(100, i) for i in range(100))
    claim = f'{{"limit":1000,"lease_s":86400,"wait_s":0.125,"types":[{types}],"worker":{escaped(200)}}}'
    lease = '{"command_id":"3d6f0a52-6a0e-4c3c-9d53-8a3f2c5b7e10","lease":9007199254740991}'
    extend = '{"lease_s":86399.123,"items":[' + ",  ".join([lease] * 8000) + "]}"
    activation = '{"lease_s":60,"items":[' + ",  ".join([lease.replace("command_id", "process_id")] * 1000) + "]}"
    with Database() as db, Pawl(db) as pawl:
        server = pawl.serve()
        for path, body, large in (("/v1/domains/web/claim", claim, 65537), ("/v1/process-domains/web/claim", claim.replace("1000", "100", 1), 65537),
                                  ("/v1/domains/web/extend", extend, (2 << 20) + 1),
                                  ("/v1/process-domains/web/extend", activation, (256 << 10) + 1),
                                  ("/v1/process-domains/web/progress", None, (4 << 20) + 1)):
            if body:
                assert len(body) < large
                answer = pawl.http("POST", path, body.encode(), timeout=TIMEOUT_S)
                assert answer.status == 200, (path, answer.status, answer.body[:300])
            with post_begin(server, path, Pawl.TOKEN, large) as sock:
                assert sock.recv(12) == b"HTTP/1.1 413", path
        assert metric(pawl, "pawl_http_body_bytes") == 0
        stop_clean(server)


main()
