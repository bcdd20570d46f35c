"""Charts as SVG: lines with their names at their ends, and bars of percentiles. Both follow the reader's light or dark theme.

All axes of amounts begin at zero. Text is text, so that it can be searched and read aloud.
"""
import math
from html import escape

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 13px } .axis { fill: #57606a; font-size: 11px }
  .grid { stroke: #d0d7de; stroke-width: 1 } .line { fill: none; stroke-width: 2 }
  .a { stroke: #0a58ca } .b { stroke: #b35900 } .c { stroke: #1a7f37 } .d { stroke: #8250df } .e { stroke: #6e7781 }
  .name-a { fill: #0a58ca } .name-b { fill: #b35900 } .name-c { fill: #1a7f37 } .name-d { fill: #8250df } .name-e { fill: #6e7781 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .axis { fill: #9da7b3 } .grid { stroke: #3d444d }
    .a { stroke: #6cb0ff } .b { stroke: #f0a35e } .c { stroke: #56d364 } .d { stroke: #d2a8ff } .e { stroke: #9da7b3 }
    .name-a { fill: #6cb0ff } .name-b { fill: #f0a35e } .name-c { fill: #56d364 } .name-d { fill: #d2a8ff } .name-e { fill: #9da7b3 }
  }"""
COLOURS = "abcde"
LABEL_HEIGHT = 14


def amount(value):
    """12,000 as 12k."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def ticks(most, count=4):
    """Round numbers from 0 to at least the largest."""
    raw = max(most, 1e-9) / count
    step = next(m * 10 ** math.floor(math.log10(raw)) for m in (1, 2, 2.5, 5, 10) if m * 10 ** math.floor(math.log10(raw)) >= raw * 0.999)
    return [step * i for i in range(math.ceil(most / step - 1e-9) + 1)]


def text(x, y, content, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(content)}</text>'


def labels_apart(wanted, low, high):
    """Heights near those that are wanted, LABEL_HEIGHT apart."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places, last = [0.0] * len(wanted), low - LABEL_HEIGHT
    for i in order:
        last = places[i] = max(wanted[i], last + LABEL_HEIGHT)
    limit = high
    for i in reversed(order):
        places[i] = min(places[i], limit)
        limit = places[i] - LABEL_HEIGHT
    return places


class Panel:
    """A chart of lines with its axes, at a place in the picture."""

    def __init__(self, x, y, width, height, label_width):
        self.left, self.right = x + 44, x + width - label_width
        self.top, self.bottom = y + 30, y + height - 34
        self.x, self.y = x, y

    def lines(self, title, x_text, series, is_log=True):
        """series: [(name, [(x, y)])]."""
        xs = sorted({x for _, points in series for x, _ in points})
        marks = ticks(max(y for _, points in series for _, y in points))
        place = (lambda x: math.log2(x)) if is_log else float
        span = place(xs[-1]) - place(xs[0]) or 1

        def at(x, y):
            return (self.left + (place(x) - place(xs[0])) / span * (self.right - self.left),
                    self.bottom - y / marks[-1] * (self.bottom - self.top))

        parts = [text(self.x, self.y + 14, title, "title")]
        for mark in marks:
            y = at(xs[0], mark)[1]
            parts += [f'<line x1="{self.left}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>',
                      text(self.left - 6, y + 4, amount(mark), "axis", "end")]
        parts += [text(at(x, 0)[0], self.bottom + 16, amount(x), "axis", "middle") for x in xs]
        parts.append(text((self.left + self.right) / 2, self.bottom + 31, x_text, "axis", "middle"))
        heights = labels_apart([at(*points[-1])[1] + 4 for _, points in series], self.top + 4, self.bottom + 4)
        for (name, points), colour, height in zip(series, COLOURS, heights):
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in points))
            parts += [f'<polyline class="line {colour}" points="{line}"/>', text(self.right + 8, height, name, "name-" + colour)]
        return parts


def picture(width, height, parts, description):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
            f"<title>{escape(description)}</title>\n<style>{STYLE}\n</style>\n" + "\n".join(parts) + "\n</svg>\n")


def lines(panels, description, columns=2, is_log=True):
    """panels: [(title, x_text, series)]."""
    longest = max(len(name) for _, _, series in panels for name, _ in series)
    width, height = 960 // columns if columns > 1 else 720, 260
    parts = []
    for i, (title, x_text, series) in enumerate(panels):
        parts += Panel(i % columns * width + 8, i // columns * height + 8, width - 16, height - 16, 7 * longest + 16).lines(title, x_text, series, is_log)
    return picture(width * columns, height * math.ceil(len(panels) / columns), parts, description)


def percentiles(bars, description, unit="ms"):
    """bars: [(name, {"p50": ms, "p90": ms, "p99": ms})]: a line from the median to p99, with a mark for each."""
    left, right, row = 330, 660, 30
    marks = ticks(max(values["p99"] for _, values in bars))
    bottom = 30 + row * len(bars)

    def at(value):
        return left + value / marks[-1] * (right - left)

    parts = []
    for mark in marks:
        parts += [f'<line x1="{at(mark):.1f}" x2="{at(mark):.1f}" y1="14" y2="{bottom}" class="grid"/>', text(at(mark), bottom + 16, amount(mark), "axis", "middle")]
    parts.append(text((left + right) / 2, bottom + 32, f"{unit}: median, 90th and 99th percentile", "axis", "middle"))
    for i, (name, values) in enumerate(bars):
        y = 30 + row * i
        parts += [text(left - 10, y + 4, name, anchor="end"),
                  f'<line x1="{at(values["p50"]):.1f}" x2="{at(values["p99"]):.1f}" y1="{y}" y2="{y}" class="line a"/>']
        parts += [f'<line x1="{at(values[p]):.1f}" x2="{at(values[p]):.1f}" y1="{y - 6}" y2="{y + 6}" class="line {colour}"/>'
                  for p, colour in (("p50", "a"), ("p90", "a"), ("p99", "b"))]
        parts.append(text(at(values["p99"]) + 8, y + 4, f"{values['p50']:.1f}, {values['p90']:.1f}, {values['p99']:.1f}", "axis"))
    return picture(800, bottom + 44, parts, description)
