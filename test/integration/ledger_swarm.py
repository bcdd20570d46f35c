"""ledger_swarm - many HTTP clients in one process, each a generator, on sockets that stay open.

A client yields what it wants and is sent what came of it:

    answer = yield Request(server, "/v1/transfers", {...})     an Answer, or None: nobody knows
    yield 0.05                                                 a pause

run() drives them all with one selector, so 64 clients cost no threads and leave the machine to the servers. swarm_start() does
it in a process of its own, for tests that kill it meanwhile.
"""
import heapq
import itertools
import json
import multiprocessing
import selectors
import socket
import time
from typing import NamedTuple, Optional

from ledger_checker import Attempt, Operation, decided
from pawl_test import Pawl

ANSWER_S = 15  # longer than a server takes for any answer
RETRY_S = 0.05


class Request(NamedTuple):
    server: int
    path: str
    body: object            # bytes as they are, anything else as JSON
    hang_up: bool = False   # send it, and do not wait for the answer
    headers: str = ""


class Answer(NamedTuple):
    status: int
    head: bytes  # lower case
    body: bytes

    @property
    def replayed(self):
        return b"\r\nidempotency-replayed: true\r\n" in self.head


def request_bytes(request):
    body = request.body if isinstance(request.body, bytes) else json.dumps(request.body).encode()
    return (f"POST {request.path} HTTP/1.1\r\nHost: pawl\r\nAuthorization: Bearer {Pawl.TOKEN}\r\n{request.headers}"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def answer_parse(data):
    """An Answer once all of it is there."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = bytes(data[:end + 2]).lower()
    at = head.index(b"\r\ncontent-length:") + 17
    length = int(head[at:head.index(b"\r\n", at)])
    if len(data) < end + 4 + length:
        return None
    return Answer(int(head[9:12]), head, bytes(data[end + 4:end + 4 + length]))


class Client:
    """A generator, its connections and what it waits for."""

    def __init__(self, generator):
        self.generator = generator
        self.sockets = {}  # port: socket
        self.port = None   # of the request under way
        self.data = bytearray()
        self.deadline = 0.0


class Swarm:
    def __init__(self, ports):
        self.ports = ports  # of each server, now; may change while the swarm runs
        self.selector = selectors.DefaultSelector()
        self.pauses = []
        self.waiting = {}  # client: None, in the order of their deadlines
        self.order = itertools.count()

    def run(self, generators):
        for generator in generators:
            self.step(Client(generator), None)
        while self.waiting or self.pauses:
            for key, _ in self.selector.select(self.patience()):
                self.read(key.data)
            self.look_at_clock()
        self.selector.close()

    def patience(self):
        now = time.monotonic()
        ends = [self.pauses[0][0]] if self.pauses else []
        if self.waiting:
            ends.append(next(iter(self.waiting)).deadline)
        return max(0, min(ends) - now)

    def look_at_clock(self):
        now = time.monotonic()
        while self.pauses and self.pauses[0][0] <= now:
            self.step(heapq.heappop(self.pauses)[2], None)
        while self.waiting and (client := next(iter(self.waiting))).deadline <= now:
            self.drop(client)
            self.step(client, None)

    def step(self, client, answer):
        """Tell a client what came of it and do what it wants next; nothing that fails at once is left waiting."""
        while True:
            try:
                wish = client.generator.send(answer)
            except StopIteration:
                for port in list(client.sockets):
                    self.close(client, port)
                return
            if not isinstance(wish, Request):
                heapq.heappush(self.pauses, (time.monotonic() + wish, next(self.order), client))
                return
            if self.ask(client, wish):
                return
            answer = None

    def ask(self, client, request):
        """False: there will be no answer."""
        port = self.ports[request.server]
        client.port = port
        client.data.clear()
        try:
            if port not in client.sockets:
                connection = socket.create_connection(("127.0.0.1", port), ANSWER_S)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client.sockets[port] = connection
                self.selector.register(connection, selectors.EVENT_READ, client)
            client.sockets[port].sendall(request_bytes(request))
        except OSError:
            self.close(client, port)
            return False
        if request.hang_up:
            self.close(client, port)
            return False
        client.deadline = time.monotonic() + ANSWER_S
        self.waiting[client] = None
        return True

    def read(self, client):
        connection = client.sockets.get(client.port)
        if client not in self.waiting or connection is None:
            for port in list(client.sockets):  # one that was idle has been closed by its server
                self.close(client, port)
            return
        try:
            data = connection.recv(65536)
        except OSError:
            data = b""
        client.data += data
        answer = answer_parse(client.data) if data else None
        if answer or not data:
            del self.waiting[client]
            if not answer or b"\r\nconnection: close\r\n" in answer.head:
                self.close(client, client.port)
            self.step(client, answer)

    def drop(self, client):
        del self.waiting[client]
        self.close(client, client.port)

    def close(self, client, port):
        connection = client.sockets.pop(port, None)
        if connection:
            try:
                self.selector.unregister(connection)
            except KeyError:
                pass
            connection.close()


# --- what clients do ---

class Move(NamedTuple):
    """An operation as the interface takes it."""
    kind: str
    owner: str
    other: Optional[str]
    amount: Optional[int]
    path: str
    body: dict


def transfer(key, payer, payee, amount):
    return Move("transfer", payer, payee, amount, "/v1/transfers",
                {"txn_id": key, "from": payer, "to": payee, "amount": amount})


def topup(key, owner, amount):
    return Move("topup", owner, None, amount, f"/v1/wallets/{owner}/topup", {"txn_id": key, "amount": amount})


def spend(key, owner, amount):
    return Move("spend", owner, None, amount, f"/v1/wallets/{owner}/spend", {"txn_id": key, "amount": amount})


def try_once(move, server, attempts, hang_up=False):
    """One attempt, as it went; the answer."""
    invoked = time.monotonic()
    answer = yield Request(server, move.path, move.body, hang_up)
    attempts.append(Attempt(move.body["txn_id"], invoked, time.monotonic(), answer and answer.status,
                            answer.body if answer else b"", bool(answer and answer.replayed)))
    return answer


def resolve(move, servers, chance, history, hang_up=False):
    """Try the same key, on one server after the other, until it is decided; then remember how it went.
    An answer like 500 ends it as well: the checker will have something to say about it."""
    attempts = []
    server = chance.randrange(servers)
    answer = yield from try_once(move, server, attempts, hang_up)
    while answer is None or answer.status == 503 or answer.status < 500 and not decided(answer.status):
        yield RETRY_S
        server = (server + 1) % servers
        answer = yield from try_once(move, server, attempts)
    history.append(Operation(move.kind, move.owner, move.other, move.amount, attempts))
    return answer


# --- a process of its own ---

class SwarmProcess:
    def __init__(self, ports, make):
        """make(history, done): the generators; done: a counter that the others may look at."""
        context = multiprocessing.get_context("fork")
        self.ports = context.Array("i", ports, lock=False)
        self.done = context.Value("q", 0, lock=False)
        self.receiver, sender = context.Pipe(duplex=False)
        self.process = context.Process(target=self.work, args=(sender, make), daemon=True)
        self.process.start()
        sender.close()

    def work(self, sender, make):
        history = []
        Swarm(self.ports).run(make(history, self.done))
        sender.send(history)

    def is_running(self):
        return self.process.is_alive() and not self.receiver.poll()

    def result(self, timeout):
        """The history; waits for the end."""
        assert self.receiver.poll(timeout), f"the clients did not end within {timeout} s: {self.done.value} are done"
        history = self.receiver.recv()
        self.process.join(timeout)
        return history

    def stop(self):
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
