"""servers - what stands beside pawl in a test: a session that holds a lock, a PostgreSQL, a full disk, a receiver of webhooks."""
import contextlib
import fcntl
import http.server
import json
import os
import pty
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading

from pawl_test import TIMEOUT_S, Pawl, psql, setting

IS_ROOT = os.geteuid() == 0


class Session:
    """A psql that stays: what it locks stays locked until it commits, rolls back or ends."""

    def __init__(self, url):
        program = os.path.join(setting("PAWL_TEST_BIN"), "psql")
        self.process = subprocess.Popen([program, "-XAtq", "-v", "ON_ERROR_STOP=1", url], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(TIMEOUT_S)
        self.process.stdout.close()

    def do(self, sql):
        """Run it and return its rows."""
        self.process.stdin.write(sql + ";\n\\echo --done--\n")
        self.process.stdin.flush()
        rows = []
        for line in self.process.stdout:
            if line == "--done--\n":
                return rows
            rows.append(line.rstrip("\n"))
        raise AssertionError(f"{sql}: " + " / ".join(rows))


def on_terminal(pawl, *arguments, columns=None):
    """What a command prints to a terminal, of this width."""
    outer, inner = pty.openpty()
    if columns:
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    printed = bytearray()

    def read():
        try:
            while chunk := os.read(outer, 65536):
                printed.extend(chunk)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run(pawl._command(arguments), env=pawl.env, stdin=subprocess.DEVNULL, stdout=inner, stderr=subprocess.PIPE, check=False)
    os.close(inner)
    reader.join()
    os.close(outer)
    assert done.returncode == 0, done
    return printed.decode().replace("\r\n", "\n")


def in_threads(count, function):
    """Call function(i) count times at once; a function that waits for all and returns what they returned."""
    results = [None] * count

    def call(i):
        try:
            results[i] = function(i)
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=call, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()

    def join(timeout=TIMEOUT_S):
        for thread in threads:
            thread.join(timeout)
        assert not any(thread.is_alive() for thread in threads), "a call did not end"
        return results

    return join


class Gate:
    """Where programs of steps wait until the test opens it. They wait for a lock: a hundred that poll take all CPU time."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="ascii")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        self.wait = f"flock --shared {path} true"

    def open(self):
        self.file.close()


def as_postgres(command):
    """PostgreSQL and PgBouncer refuse to run as root."""
    if not IS_ROOT:
        return command
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def backends(db, where="application_name = 'pawl'"):
    """How many connections this database has."""
    return int(psql(setting("PAWL_TEST_URL"),
                    f"select count(*) from pg_stat_activity where datname = '{db.name}' and {where}")[0])


class Cluster:
    """A PostgreSQL of one's own on 127.0.0.1, copied from the run's template. cluster.sh stops what a killed test leaves."""

    count = 0

    def __init__(self, hba="", conf=""):
        Cluster.count += 1
        self.folder = os.path.join(setting("PAWL_TEST_RUN"), f"cluster-{os.getpid()}-{Cluster.count}")
        self.port = free_port()
        self.hba = hba
        self.conf = conf

    def _ctl(self, *arguments):
        subprocess.run(as_postgres([os.path.join(setting("PAWL_TEST_BIN"), "pg_ctl"), "-D", self.folder, "-s", "-w",
                                    "-l", self.folder + "/log", *arguments]), check=True, timeout=TIMEOUT_S)

    def __enter__(self):
        subprocess.run(["cp", "-a", os.path.join(setting("PAWL_TEST_RUN"), "datadir-template"), self.folder], check=True)
        with open(self.folder + "/postgresql.conf", "a", encoding="utf-8") as conf:
            conf.write(f"listen_addresses = '127.0.0.1'\nport = {self.port}\n"
                       f"unix_socket_directories = '{self.folder}'\n" + self.conf)
        with open(self.folder + "/pg_hba.conf", "w", encoding="utf-8") as hba:
            hba.write("local all all trust\n" + self.hba + "host all all 127.0.0.1/32 trust\n")
        self._ctl("start")
        return self

    def __exit__(self, *_):
        self._ctl("-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self, mode):
        self._ctl("-m", mode, "stop")

    def start(self):
        self._ctl("start")

    def restart(self, mode):
        """fast: sessions are ended; immediate: as after a crash."""
        self._ctl("-m", mode, "restart")

    def url(self, database="postgres", user="postgres", password=None):
        """Over TCP."""
        who = user + (":" + password if password else "")
        return f"postgresql://{who}@127.0.0.1:{self.port}/{database}"

    def rows(self, sql, database="postgres"):
        """As the superuser, over the unix socket."""
        return psql(f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}", sql)


class UserPawl(Pawl):
    """pawl as a user without rights: as root nobody, with a copy of the program that nobody may run."""

    def __init__(self, db=None, env=None):
        self.folder = tempfile.mkdtemp(prefix="pawl-user.", dir="/tmp")
        os.chmod(self.folder, 0o755)
        home = os.path.join(self.folder, "home")
        os.mkdir(home)
        self.program = shutil.copy(setting("PAWL_BIN"), self.folder)
        if IS_ROOT:
            user = pwd.getpwnam("nobody")
            os.chown(home, user.pw_uid, user.pw_gid)
        super().__init__(db, env, home)
        self.env["HOME"] = home

    def __exit__(self, *rest):
        super().__exit__(*rest)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _command(self, arguments):
        user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if IS_ROOT else []
        return [*user, self.program, *arguments]


def postmaster_pid(home):
    """Of the private PostgreSQL below home; 0: there is none."""
    try:
        with open(os.path.join(home, "pg/data/postmaster.pid"), encoding="utf-8") as file:
            pid = int(file.readline())
    except FileNotFoundError:
        return 0
    return pid if os.path.exists(f"/proc/{pid}") else 0


def kill_postmaster(home):
    """SIGKILL to the private PostgreSQL below home, which this test started."""
    pid = postmaster_pid(home)
    assert os.readlink(f"/proc/{pid}/cwd") == os.path.join(home, "pg/data"), "not the server of this home"
    os.kill(pid, signal.SIGKILL)
    return pid


@contextlib.contextmanager
def small_disk(size):
    """A file system of this size that every user may write to."""
    folder = tempfile.mkdtemp(prefix="pawl-disk.", dir="/tmp")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
        os.rmdir(folder)


def disk_fill(folder, free=0):
    """Write a file `ballast` until this many bytes are free."""
    with open(os.path.join(folder, "ballast"), "ab", buffering=0) as ballast, contextlib.suppress(OSError):
        while os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize > free:
            ballast.write(bytes(4096))


class Receiver:
    """A small HTTP server that takes webhooks. status: what it answers; 0: it closes the connection."""

    def __init__(self, status=204, headers=None):
        self.status = status
        self.headers = headers or {}
        self.posts = []  # (idempotency key, body)
        self.taken = []  # idempotency keys of those that were answered with 2xx
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = owner.status
                owner.posts.append((self.headers["Idempotency-Key"], json.loads(body)))
                if 200 <= status < 300:
                    owner.taken.append(self.headers["Idempotency-Key"])
                if status:
                    self.send_response(status)
                    for name, value in owner.headers.items():
                        self.send_header(name, value)
                    self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?secret=s3cr3t"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def states(self, name):
        """The states of one alert that were sent, in order."""
        return [body["state"] for _, body in self.posts if body["alert"] == name]
