"""cron_model - when a cron expression fires, by walking through the minutes: slow, and independent of the SQL.

    times("30 2 * * *", "Europe/Berlin", start, end)  -> [datetime in UTC] after start, up to end

The expression is read here again, and the zone is Python's. Random expressions and zones are for comparisons with pawl.cron_times().
"""
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
NAMES = {"month": "jan feb mar apr may jun jul aug sep oct nov dec".split(), "weekday": "sun mon tue wed thu fri sat".split()}
FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
ALIASES = {"@yearly": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@hourly": "0 * * * *"}


def value(field, text, low):
    return NAMES[field].index(text.lower()) + low if text.isalpha() else int(text)


def field_read(field, low, high, text):
    found = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        if span == "*":
            first, last = low, high
        else:
            begin, _, end = span.partition("-")
            first = value(field, begin, low)
            last = 7 if end.lower() == "sun" else value(field, end or begin, low)
        found |= set(range(first, last + 1, int(step or 1)))
    return found


class Cron:
    def __init__(self, text):
        fields = ALIASES.get(text, text).split()
        sets = [field_read(*field, part) for field, part in zip(FIELDS, fields)]
        self.minutes, self.hours, self.days, self.months = sets[:4]
        self.weekdays = {day % 7 for day in sets[4]}
        self.either = not fields[2].startswith("*") and not fields[4].startswith("*")

    def matches(self, at):
        day, weekday = at.day in self.days, at.isoweekday() % 7 in self.weekdays
        return (at.minute in self.minutes and at.hour in self.hours and at.month in self.months
                and (day or weekday if self.either else day and weekday))


def times(text, zone, start, end):
    """Walks real minutes. An expression of every hour fires whenever the clock shows a time of it; any other when the clock shows that time for the
    first time, or has just skipped it."""
    cron, zone = Cron(text), ZoneInfo(zone)
    every_hour = len(cron.hours) == 24
    at = (start - timedelta(days=2)).replace(second=0, microsecond=0)
    shown = at.astimezone(zone).replace(tzinfo=None)
    newest, found = shown, []
    while at < end:
        at += MINUTE
        shown = at.astimezone(zone).replace(tzinfo=None)
        if every_hour:
            fires = cron.matches(shown)
        else:
            fires = False
            while newest < shown: # each time that the clock shows or skips for the first time
                newest += MINUTE
                fires = fires or cron.matches(newest)
        if fires and start < at <= end:
            found.append(at)
    return found


# --- random expressions ---

def random_field(chance, field, low, high):
    def one():
        number = chance.randint(low, high)
        if field in NAMES and chance.random() < 0.3:
            names = NAMES[field]
            return names[(number - low) % len(names)]
        return str(number)

    def item():
        kind = chance.random()
        if kind < 0.15:
            return "*" + (f"/{chance.randint(1, max(2, high // 2))}" if chance.random() < 0.6 else "")
        if kind < 0.6:
            return one()
        first = chance.randint(low, high)
        last = chance.randint(first, high)
        return f"{first}-{last}" + (f"/{chance.randint(1, 7)}" if chance.random() < 0.4 else "")

    return ",".join(item() for _ in range(chance.choice((1, 1, 1, 2, 3))))


def random_cron(chance):
    """Often with the hours in which clocks are set, and often any day."""
    parts = []
    for field, low, high in FIELDS:
        if field == "hour" and chance.random() < 0.4:
            parts.append(chance.choice(("*", "0-23", "*/2", "1", "2", "1-3", "0,1,2", "2-3", "23", "0")))
        elif field == "minute" and chance.random() < 0.4:
            parts.append(chance.choice(("*", "*/15", "*/30", "0", "30", "59", "10-50/20")))
        elif field in ("day", "month", "weekday") and chance.random() < 0.65:
            parts.append("*")
        else:
            parts.append(random_field(chance, field, low, high))
    return " ".join(parts)


def changes(zone, year):
    """The first minutes of UTC with another offset in this year."""
    zone, at, found = ZoneInfo(zone), datetime(year, 1, 1, tzinfo=timezone.utc), []
    offset = at.astimezone(zone).utcoffset()
    while at.year == year:
        at += timedelta(hours=6)
        if at.astimezone(zone).utcoffset() != offset:
            low = at - timedelta(hours=6)
            while at - low > MINUTE:
                middle = low + (at - low) // 120 * 60 if at - low > 2 * MINUTE else low + MINUTE
                middle = middle.replace(second=0, microsecond=0)
                low, at = (middle, at) if middle.astimezone(zone).utcoffset() == offset else (low, middle)
            found.append(at)
            offset = at.astimezone(zone).utcoffset()
            at = at.replace(minute=0)
    return found
