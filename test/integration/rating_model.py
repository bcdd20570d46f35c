"""rating_model - ratings without a bot: a plain model of Elo, and matches that it writes by the SQL functions."""

CHAT = -1001234567890


def expected(a, b):
    return 1 / (1 + 10 ** ((b - a) / 400))


class Model:
    """A group, its players by number and what their ratings must be. Elo with K 32, rounded half away from zero."""

    def __init__(self, db, players, chat=CHAT):
        self.db, self.chat = db, chat
        self.group = int(db.value(f"select id from rating.group_open({chat}, 'chess', 'en')"))
        users = ",".join(str(self.user(i)) for i in range(players))
        names = ",".join(f"'Player {i}'" for i in range(players))
        usernames = ",".join(f"'p{i}'" for i in range(players))
        yes, no = ",".join(["true"] * players), ",".join(["false"] * players)
        self.ids = [int(row) for row in db.rows(
            f"select player_id from rating.players_seen({self.group}, now(), array[{users}], array[{names}], array[{usernames}], "
            f"array[{no}], array[{yes}]) order by ord")]
        self.ratings = [1500] * players
        self.played = 0

    def user(self, i):
        return abs(self.chat) % 1000000 * 100 + i

    def play(self, a, b, score_a, score_b, key=None):
        """Register a match; returns its id."""
        self.played += 1
        key = key or f"{self.chat}:{self.played}"
        score = 1 if score_a > score_b else 0 if score_a < score_b else 0.5
        exact = 32 * (score - expected(self.ratings[a], self.ratings[b]))
        change = int(abs(exact) + 0.5) * (1 if exact >= 0 else -1)
        before = [self.ratings[a], self.ratings[b]]
        after = [before[0] + change, before[1] - change]
        versions = self.db.rows(f"select version from rating.matches_read(array[{self.group}], array['{key}'], array[{self.ids[a]}], "
                                f"array[{self.ids[b]}], array[{score_a}], array[{score_b}], array[null]::timestamptz[])")
        same = "array[350, 350], array[0.06, 0.06]"
        match = self.db.value(
            f"select id from rating.matches_write(array[{self.group}], array['{key}'], array[1], array[{self.ids[a]}], array[{score_a}], "
            f"array[{score_b}], array[{self.ids[a]}, {self.ids[b]}], "
            f"array[{versions[0]}, {versions[1]}], array{before}, {same}, array{after}, {same}, array[null]::timestamptz[])")
        self.ratings[a], self.ratings[b] = after
        return int(match)
