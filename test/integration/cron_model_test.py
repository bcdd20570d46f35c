#!/usr/bin/env python3
"""cron_model - the times of random expressions in many zones, compared with those of a slow model that walks through the minutes.

PAWL_TEST_FULL=1 compares some thousands, PAWL_TEST_SEED=N repeats a run.
"""
import json
import os
import random
import time
from datetime import datetime, timedelta, timezone

from cron_model import changes, random_cron, times
from pawl_test import Database, main, test

COUNT = 5000 if os.environ.get("PAWL_TEST_FULL") else 120
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Pacific/Chatham", "Africa/Casablanca",
         "America/Havana", "America/St_Johns", "Asia/Kathmandu", "Africa/Cairo", "UTC")
SPAN = timedelta(hours=30)
SQL = """
set timezone = 'UTC';
create function pg_temp.times (p_cron text, p_zone text, p_at timestamptz, p_end timestamptz) returns text language plpgsql as $$
declare
  v_cron record;
  v_times text[] := '{}';
begin
  v_cron := pawl.cron_read(p_cron); -- here, because the block does not catch what its declarations raise
  loop
    p_at := pawl.cron_next(v_cron, p_zone, p_at);
    exit when p_at is null or p_at > p_end;
    v_times := v_times || to_char(p_at, 'YYYY-MM-DD HH24:MI:SS');
  end loop;
  return array_to_string(v_times, ',');
exception when sqlstate 'QS001' then
  return 'never';
end
$$;
"""


def cases(chance):
    """Most of them near a change of the clocks."""
    for _ in range(COUNT):
        zone, year = chance.choice(ZONES), chance.randint(2024, 2036)
        start = datetime(year, 1, 1, tzinfo=timezone.utc) + timedelta(minutes=chance.randrange(365 * 24 * 60))
        found = changes(zone, year)
        if found and chance.random() < 0.8:
            start = chance.choice(found) - timedelta(minutes=chance.randrange(27 * 60), seconds=chance.choice((0, 0, 17)))
        yield random_cron(chance), zone, start


@test
def times_are_those_of_a_walk_through_the_minutes():
    seed = int(os.environ.get("PAWL_TEST_SEED") or time.time_ns() % 10**9)
    chance = random.Random(seed)
    tried = list(cases(chance))
    calls = "".join(f"select pg_temp.times('{cron}', '{zone}', '{start.isoformat()}', '{(start + SPAN).isoformat()}');\n"
                    for cron, zone, start in tried)
    with Database() as db:
        got = db.rows(SQL + calls)
    assert len(got) == COUNT
    count = 0
    for (cron, zone, start), line in zip(tried, got):
        wanted = [at.strftime("%Y-%m-%d %H:%M:%S") for at in times(cron, zone, start, start + SPAN)]
        assert (line if line != "never" else "") == ",".join(wanted), json.dumps(
            {"seed": seed, "cron": cron, "zone": zone, "start": start.isoformat(), "sql": line, "model": wanted})
        count += len(wanted)
    assert count > COUNT  # most of them fire


main()
