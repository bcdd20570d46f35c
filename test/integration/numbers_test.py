#!/usr/bin/env python3
"""numbers - what pods count, stored as numbers over time, and read back."""
import json

from bus_commands import send, work
from checks import metric, problem, refused, stop_clean
from pawl_test import Database, Pawl, main, test, wait_until


def stored(db, measure, label="shop"):
    """How many were stored by any process."""
    return int(db.value(f"select coalesce(sum(count), 0) from pawl.stat where measure = '{measure}' and label = '{label}'"))


def total(points):
    return sum(point["count"] for point in points["items"])


@test
def each_process_stores_what_passed_through_it_at_the_latest_when_it_ends():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        for number in range(6):
            body = {"domain": "shop", "type": "charge" if number > 1 else "other"}
            assert pawl.http("POST", "/v1/commands", body).status == 201
        pawl.http("GET", "/v1/commands/nonsense")
        # A worker of its own process, and one over HTTP.
        assert work(pawl, "shop", "--exec", "true", "--type", "charge")["completed"] == 4
        item, _ = pawl.http("POST", "/v1/domains/shop/claim", {"limit": 2}).json["items"]
        ends = {"items": [{"command_id": item["command_id"], "lease": item["lease"], "outcome": "fail"}]}
        assert pawl.http("POST", "/v1/domains/shop/settle", ends).json["items"][0]["settled"]
        assert stored(db, "completed") == 4 and stored(db, "run") == 4 and stored(db, "wait") == 4
        assert metric(pawl, "pawl_http_route_requests_total", 'route="POST /v1/commands",code="2xx"') == 6
        assert metric(pawl, "pawl_domain_commands_total", 'domain="shop",event="sent"') == 6
        assert metric(pawl, "pawl_domain_commands_total", 'domain="shop",event="failed"') == 1
        stop_clean(pawl.server)
        got = {name: stored(db, name) for name in ("sent", "completed", "failed", "retried")}
        assert got == {"sent": 6, "completed": 4, "failed": 1, "retried": 0}, got
        assert stored(db, "http_2xx", "POST /v1/commands") == 6 and stored(db, "http_4xx", "GET /v1/commands/{id}") == 1
        assert stored(db, "wait") == 5, "and the one that a worker has over HTTP"
        assert int(db.value("select count(*) from pawl.stat where measure = 'sent'")) == 1, "one row per process and minute"


@test
def numbers_are_the_same_over_http_and_on_the_command_line():
    with Database() as db, Pawl(db) as pawl:
        db.rows("insert into pawl.stat (at, measure, label, source, flush, count, buckets)"
                " select date_trunc('minute', pawl.now()) - n * interval '1 minute', m, 'shop', gen_random_uuid(), 1, 60,"
                " case when m = 'wait' then '{0,0,60}'::bigint[] end"
                " from generate_series(1, 30) n, unnest('{sent,completed,wait}'::text[]) m")
        db.rows("insert into pawl.stat_hour (at, measure, label, count) select date_trunc('hour', pawl.now()) - n * interval '1 hour',"
                " 'sent', 'shop', 100 from generate_series(30, 39) n")
        db.rows("update pawl.stat_clock set summed_until = date_trunc('hour', pawl.now()) - interval '1 hour'")
        pawl.serve("--role", "api")
        send(pawl, "shop", "charge")
        points = pawl.http("GET", "/v1/stats?measure=sent&domain=shop").json
        assert total(points) == 1800 and len(points["items"]) == 30 and points["step_s"] == 60, points
        assert points["items"][0]["p50_ms"] is None, points
        assert total(pawl.http("GET", "/v1/stats?measure=sent").json) == 1800, "of all domains"
        wait = pawl.http("GET", "/v1/stats?measure=wait&domain=shop").json["items"][0]
        assert wait["p50_ms"] == 7 and wait["p95_ms"] == 9, wait
        since = json.loads(db.value("select to_jsonb(pawl.now() - interval '40 hours')"))
        long = pawl.http("GET", f"/v1/stats?measure=sent&domain=shop&step=3600&since={since}".replace("+", "%2B")).json
        assert total(long) == 1800 + 1000, long
        rows = {row["measure"]: row for row in pawl.run("stats", "shop", "--json").json}
        assert total(rows["sent"]) == 1800 and rows["retried"]["items"] == [], rows
        table = pawl.run("stats", "shop").stdout.splitlines()
        assert table[0].split()[:2] == ["measure", "total"] and table[1].split()[:2] == ["sent", "1800"] and "█" in table[1], table
        # The last five whole minutes stand in the list of domains.
        row = pawl.http("GET", "/v1/domains/shop").json
        assert row["recent"]["sent_per_s"] in (0.8, 1) and row["recent"]["wait_p95_ms"] == 9, row
        assert "per second; wait p50 7ms" in " ".join(pawl.run("domain", "show", "shop").stdout.split())
        stop_clean(pawl.server)


@test
def the_buckets_of_the_database_are_those_of_the_metrics():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        send(pawl, "shop", "charge")
        pawl.http("POST", "/v1/domains/shop/claim", {})
        text = pawl.http("GET", "/metrics").body.decode()
        wait_until(lambda: "pawl_domain_wait_seconds_bucket" in pawl.http("GET", "/metrics").body.decode(), what="a claim")
        text = pawl.http("GET", "/metrics").body.decode()
        bounds = [float(line.split('le="')[1].split('"')[0]) for line in text.splitlines()
                  if line.startswith('pawl_domain_wait_seconds_bucket{domain="shop"') and "+Inf" not in line]
        wanted = [int(value) / 1e6 for value in db.value("select array_to_string(pawl.stat_bounds(), ',')").split(",")]
        assert bounds == wanted, (bounds, wanted)
        stop_clean(pawl.server)


@test
def what_is_wrong_is_refused_in_words():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        for query, part in [("", "measure is required"), ("?measure=speed", "measure must be one of sent, completed"),
                            ("?measure=sent&since=yesterday", "since must be a moment"), ("?measure=sent&step=61", "whole minutes"),
                            ("?measure=sent&step=0", "step"), ("?measure=sent&domain=a&route=b", "only one of domain and route"),
                            ("?measure=sent&since=2001-01-01T00:00:00Z", "within the last 370 days"),
                            ("?measure=sent&since=2999-01-01T00:00:00Z", "within the last 370 days")]:
            problem(pawl.http("GET", "/v1/stats" + query), 400, part=part)
        refused(pawl, "stats", "shop", "--step", "90s", code=2, words=["--step must be in whole minutes"])
        refused(pawl, "stats", "shop", "--since", "soon", code=2, words=["--since must be"])
        refused(pawl, "stats", "--measure", "speed", code=2, words=["measure must be one of"])
        stop_clean(pawl.server)


main()
