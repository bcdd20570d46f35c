#!/usr/bin/env python3
"""library - what an installed libpawl gives to a C program: a header, a pkg-config file, and only the names it promises."""
import os
import shutil
import subprocess
import tempfile

from pawl_test import TIMEOUT_S, Database, Proxy, main, setting, test

SOURCE, BUILD = setting("PAWL_SOURCE"), setting("PAWL_BUILD")


class Installed:
    """The build, installed below a folder, and the example compiled against that."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="pawl-install.", dir="/tmp")
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", self.folder], check=True,
                       stdout=subprocess.DEVNULL, timeout=TIMEOUT_S * 2)
        self.library = self.find("libpawl.so")
        self.env = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(self.find("pawl.pc")),
                    "PKG_CONFIG_SYSROOT_DIR": self.folder, "LD_LIBRARY_PATH": os.path.dirname(self.library)}
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def find(self, name):
        for folder, _, files in os.walk(self.folder):
            if name in files:
                return os.path.join(folder, name)
        raise AssertionError(f"{name} was not installed")

    def compile(self):
        """The example's program."""
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "pawl"], env=self.env, check=True, capture_output=True,
                               text=True).stdout.split()
        sanitize = setting("PAWL_SANITIZE")
        program = os.path.join(self.folder, "transaction")
        subprocess.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Werror",
                        *([f"-fsanitize={sanitize}"] if sanitize != "none" else []),
                        os.path.join(SOURCE, "examples/c/transaction.c"), *flags, "-o", program], check=True,
                       timeout=TIMEOUT_S)
        return program

    def run(self, program, *arguments):
        return subprocess.run([program, *arguments], env=self.env, capture_output=True, text=True, timeout=TIMEOUT_S)


@test
def an_installed_library_serves_a_program():
    with Installed() as installed, Database(empty=True) as db:
        program = installed.compile()

        def book(key, amount, url=db.url):
            return installed.run(program, url, key, amount)

        first = book("order-1", "250")
        assert (first.returncode, first.stdout, first.stderr) == (0, "order-1 booked, total 250\n", "")
        assert book("order-1", "250").stdout == "order-1 was booked before, total 250\n"
        assert book("order-2", "50").stdout == "order-2 booked, total 300\n"
        bad = book("order-3", "-1")
        assert bad.returncode == 1 and bad.stderr.startswith("23514: "), bad
        assert db.value("select count(*) from orders") == "2"
        dead = book("order-4", "1", "postgresql://postgres@127.0.0.1:1/postgres")
        assert dead.returncode == 1 and "refused" in dead.stderr, dead
        wrong = book("order-4", "1", "postgresql://[::1/x")
        assert wrong.returncode == 1 and "malformed" in wrong.stderr, wrong
        with Proxy(db) as proxy:
            proxy.do("cut-on answered 1 insert into orders")
            again = book("order-5", "7", proxy.url)
            assert again.stdout == "order-5 booked, total 307\n", again
            proxy.do("cut-commit answered 2")  # the table's commit, and the order's
            again = book("order-6", "3", proxy.url)
            assert again.returncode == 0 and again.stdout.endswith("total 310\n"), again
        assert db.value("select sum(amount) from orders") == "310"


@test
def the_library_shows_its_promised_names_and_no_others():
    with Installed() as installed, open(os.path.join(SOURCE, "include/pawl/exports.txt"), encoding="utf-8") as file:
        names = subprocess.run(["nm", "-D", "--defined-only", installed.library], check=True, capture_output=True, text=True)
        shown = sorted(line.split()[-1].split("@")[0] for line in names.stdout.splitlines() if line.split()[-2] in "TDBR")
        assert shown == sorted(file.read().split()), shown
        header = installed.find("pawl.h")
        assert os.path.relpath(header, installed.folder).endswith("include/pawl/pawl.h"), header


main()
