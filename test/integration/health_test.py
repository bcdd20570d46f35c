#!/usr/bin/env python3
"""health - `pawl health` asks a daemon what its readiness is, for scripts and for the health checks of containers."""
import http.server
import json
import threading

from pawl_test import FACT_S, Database, Pawl, Proxy, main, test, wait_until


def asked(pawl, *arguments, env=None):
    done = pawl.run("health", *arguments, env=env)
    return done.code, done.stdout, done.stderr


@test
def health_says_ready_and_why_not():
    with Database() as db, Proxy(db) as proxy, Pawl(proxy.url) as pawl:
        server = pawl.serve()
        url = f"http://{server.host}:{server.port}"
        assert asked(pawl, url) == (0, "ready\n", "")
        assert asked(pawl, url + "/") == (0, "ready\n", "")
        assert asked(pawl, env={"PAWL_URL": url}) == (0, "ready\n", "")
        assert pawl.run("health", url, "--json").json == {"status": "ready"}
        # What listens on every address is asked on this machine's.
        assert asked(pawl, env={"PAWL_LISTEN": f"0.0.0.0:{server.port}"}) == (0, "ready\n", "")
        proxy.do("mode refuse")
        proxy.do("cut")
        wait_until(lambda: asked(pawl, url)[0] == 69, FACT_S, "health says that the database is away")
        code, out, err = asked(pawl, url)
        assert code == 69 and out == "" and "database" in err.lower(), err
        assert json.loads(pawl.run("health", url, "--json").stderr)["type"] == "/problems/database-unavailable"
        pawl.stop()
        code, out, err = asked(pawl, url)
        assert (code, out) == (69, "") and err.startswith(f"pawl: cannot reach the daemon at {url}: "), err


class Stranger(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(self.path.split("/")[1]))
        self.end_headers()
        self.wfile.write(b'{"type": "about:blank"}')

    def log_message(self, *_):
        pass


@test
def what_is_not_a_daemon_is_refused():
    stranger = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=stranger.serve_forever, daemon=True).start()
    with Pawl() as pawl:
        for path in ("200", "404", "500"):
            code, out, err = asked(pawl, f"http://127.0.0.1:{stranger.server_port}/{path}")
            assert (code, out) == (2, "") and "must be that of pawl serve" in err, (path, err)
        code, out, err = asked(pawl, "127.0.0.1:8080")
        assert (code, out) == (2, "") and 'URL must be like http://127.0.0.1:8080, got "127.0.0.1:8080"' in err, err
        code, out, err = asked(pawl, env={"PAWL_URL": "postgresql://host/db"})
        assert (code, out) == (2, "") and "PAWL_URL in the environment" in err, err
        code, out, err = asked(pawl, env={"PAWL_LISTEN": "127.0.0.1:0"})
        assert (code, out) == (2, "") and "PAWL_LISTEN leaves the port to the daemon" in err, err
    stranger.shutdown()


if __name__ == "__main__":
    main()
