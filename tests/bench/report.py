"""What the rounds brought: medians, ratios and their spread, as a table and as JSON."""
import dataclasses
import json
import os
import platform
import statistics


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table: a figure of one contender, by itself or over that of another.

    `best` says which way is good: "most" or "least"; the target is a bound that way, or None where the row is
    there to be read only."""
    work: str
    figure: str
    ours: tuple  # (contender, key)
    over: tuple = None
    best: str = "least"
    target: float = None
    unit: str = ""


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Results:
    """{work: {contender: [{key: value} of each round]}}, and who was absent."""

    def __init__(self):
        self.runs, self.absent, self.failed = {}, {}, False

    def add(self, work, contender, figures):
        self.runs.setdefault(work, {}).setdefault(contender, []).append(figures)

    def miss(self, work, contender, why):
        self.absent.setdefault(work, {})[contender] = why

    def fail(self, work, contender, why):
        self.failed = True
        self.miss(work, contender, "failed: " + why)

    def series(self, work, source):
        contender, key = source
        return [run[key] for run in self.runs.get(work, {}).get(contender, [])]

    def judge(self, row):
        """The row's numbers, or None where one of its sides was absent. Ratios are taken round by round: what
        disturbed one contender of a round likely disturbed the other."""
        ours = self.series(row.work, row.ours)
        over = self.series(row.work, row.over) if row.over else [1] * len(ours)
        pairs = [a / b for a, b in zip(ours, over) if b]
        if not pairs:
            return None
        value = statistics.median(pairs)
        met = None
        if row.target is not None:
            met = value >= row.target if row.best == "most" else value <= row.target
        return {"work": row.work, "figure": row.figure, "value": value, "least": min(pairs), "most": max(pairs),
                "ours": statistics.median(ours), "over": statistics.median(over) if row.over else None,
                "unit": row.unit, "best": row.best, "target": row.target, "met": met, "rounds": len(pairs)}


def number(value):
    if value == 0:
        return "0"
    if abs(value) >= 1e5:
        return f"{value / 1e6:.3g}M" if abs(value) >= 1e6 else f"{value / 1e3:.3g}k"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(judged):
    head = ("work", "figure", "value", "spread", "target", "", "ours", "over")
    lines = [head]
    for row in judged:
        target = "" if row["target"] is None else ("≥ " if row["best"] == "most" else "≤ ") + number(row["target"])
        verdict = {None: "", True: "met", False: "MISSED"}[row["met"]]
        lines.append((row["work"], row["figure"], number(row["value"]),
                      f"{number(row['least'])} .. {number(row['most'])}", target, verdict,
                      f"{number(row['ours'])} {row['unit']}".strip(),
                      "" if row["over"] is None else f"{number(row['over'])} {row['unit']}".strip()))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def machine():
    model = ""
    try:
        with open("/proc/cpuinfo") as info:
            model = next((line.partition(":")[2].strip() for line in info if line.startswith("model name")), "")
    except OSError:
        pass
    return {"kernel": platform.release(), "cpus": len(os.sched_getaffinity(0)), "model": model,
            "load": os.getloadavg()[0]}


def as_json(judged, results, settings):
    return json.dumps({"machine": machine(), "settings": settings, "rows": judged, "absent": results.absent,
                       "runs": results.runs}, indent=1)
