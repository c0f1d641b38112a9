#!/usr/bin/env python3
"""Decodes every binary item of the corpus and compares it, event by event, with what its source states, with
the kernel's own text of the same events, and with trace-cmd's report. Prints a table: how many events agree,
differ, or have nothing stated of them.
"""
import json
import sys
import unittest

from dumped import CORPUS, Pages, field, fields, page_dump, read_kernel, read_report, same_moment, same_value, split_raw

ITEMS = CORPUS / "binary"
TEXT = "trace-cmd-3.1.6.report-N-t.txt"
RAW = "trace-cmd-3.1.6.report-N-R-t.txt"
COLUMNS = ("source", "kernel", "trace-cmd fields", "trace-cmd text")


class Tally:
    """How the events of one item compare with one statement of them."""

    def __init__(self):
        self.agree = 0
        self.differ = []

    def note(self, good, what):
        if good:
            self.agree += 1
        else:
            self.differ.append(what)

    def __str__(self):
        if not self.agree and not self.differ:
            return "not stated"
        return f"{self.agree} agree" + (f", {len(self.differ)} differ" if self.differ else "")


def near(event, second, microsecond):
    return abs(event["time"] - (second * 10**9 + microsecond * 1000)) <= 1000


def of_type(pages, name):
    return [e for e in pages.events if e.get("event") == name]


def schedviz(pages, tally):
    """The repository's own golden output: every event, every number and name."""
    lines = (ITEMS / "x86_64-schedviz-cpu0/expected/schedviz.jsonl").read_text().splitlines()
    tally.note(len(lines) == len(pages.events), f"{len(lines)} events stated, {len(pages.events)} decoded")
    for said, event in zip(map(json.loads, lines), pages.events):
        decoded = dict(event["fields"])
        good = (said["event"], said["id"], said["ts"]) == (event["event"], event["type"], event["time"])
        good &= all(decoded[name] == value for name, value in said["num"].items())
        # common_flags and common_preempt_count are numbers that this source gives as characters.
        good &= all(decoded[name] == value for name, value in said["text"].items() if not name.startswith("common_"))
        good &= all(decoded[name] == ord((value or "\0")[0]) for name, value in said["text"].items()
                    if name == "common_flags" and value)
        tally.note(good, f"{said} is not {decoded}")


def single_print(buf):
    def check(pages, tally):
        tally.note(len(pages.events) == 1, "one event")
        event = pages.events[0]
        tally.note(near(event, 608934, 535199) and field(event, "common_pid") == 28712 and field(event, "buf") == buf, event)
        tally.note(not pages.pages[0]["missed"], "no lost events")
    return check


def three_prints(pages, tally):
    said = [(615436, 216806, "Hello, world!\n"), (615486, 377232, "Good afternoon, world!\n"), (615495, 632679, "Goodbye, world!\n")]
    tally.note(len(pages.events) == 3, "three events")
    for (second, microsecond, buf), event in zip(said, pages.events):
        tally.note(near(event, second, microsecond) and field(event, "buf") == buf and field(event, "common_pid") == 30693, event)


def really_long_event(pages, tally):
    first, second = (field(e, "buf") for e in pages.events)
    tally.note(first.startswith("qwerty") and first.endswith("ppp\n"), first)
    tally.note(second == "\n", second)


def sched_page(pages, tally):
    tally.note(len(of_type(pages, "sched_switch")) == 2 and len(of_type(pages, "sched_waking")) == 5, "2 + 5 events")
    waking = of_type(pages, "sched_waking")[0]
    said = {"pid": 203967, "target_cpu": 6, "prio": 120, "common_flags": 1, "comm": "kworker/u16:17"}
    tally.note(waking["time"] == 701500115221756 and all(field(waking, n) == v for n, v in said.items()), waking)


def zero_data_loc(pages, tally):
    event, = pages.events
    said = {"common_pid": 317, "type": ord("E"), "pid": 0, "value": 0, "name": ""}
    tally.note(event["type"] == 1551 and all(field(event, n) == v for n, v in said.items()), event)


def f2fs(pages, tally):
    event, = pages.events
    # The source gives the device in the old encoding, major * 256 + minor.
    dev = field(event, "dev")
    tally.note((dev >> 20) * 256 + (dev & 0xff) == 65081, dev)
    tally.note((field(event, "ino"), field(event, "depth"), field(event, "err")) == (26033, 4, 0), event)
    tally.note(field(event, "nid")["elements"] == [1, 2, 3], event)


def ext4(pages, tally):
    page, = pages.pages
    tally.note(len(pages.events) == 92 and not page["error"], page)
    tally.note(page["missed"] and page["missed_count"] == 17141, page)


def invalid_page(pages, tally):
    page, = pages.pages
    tally.note(not pages.events and page["error"] == "event passes the committed data", page)


def events_named(count, name):
    def check(pages, tally):
        tally.note(len(of_type(pages, name)) == len(pages.events) == count, f"{count} {name}")
        tally.note(not any(p["error"] or p["missed"] for p in pages.pages), pages.pages)
    return check


def last_ts(pages, tally):
    tally.note([field(e, "buf") for e in pages.events] == ["first_print\n"], pages.events)


SOURCE = {
    "perfetto-f2fs-truncate-partial-nodes-new": f2fs,
    "perfetto-full-page-ext4": ext4,
    "perfetto-full-page-print": events_named(127, "print"),
    "perfetto-full-page-sched-switch": events_named(59, "sched_switch"),
    "perfetto-invalid-page": invalid_page,
    "perfetto-last-ts-test-page-0": last_ts,
    "perfetto-really-long-event": really_long_event,
    "perfetto-sched-page": sched_page,
    "perfetto-single-print": single_print("Hello, world!\n"),
    "perfetto-single-print-zero-size": single_print(""),
    "perfetto-switch-page": events_named(1, "sched_switch"),
    "perfetto-three-prints": three_prints,
    "perfetto-zero-data-loc": zero_data_loc,
    "x86_64-schedviz-cpu0": schedviz,
}


def compare_kernel(item, pages, tally):
    path = item / "expected/kernel-text.txt"
    if not path.exists():
        return
    said = read_kernel(path)
    tally.note(len(said) == len(pages.events), f"{len(said)} events stated, {len(pages.events)} decoded")
    for line, event in zip(said, pages.events):
        good = same_moment(event, line)
        name, _, rest = line["body"].strip().partition(":")
        rest = rest.removeprefix(" ")
        if event.get("event") == "print":
            shown = field(event, "buf").strip()
            good &= shown == rest or (rest.endswith("[...]") and shown.startswith(rest[:-5]))
        elif "text" in event:
            good &= (event["event"], event["text"].strip()) == (name, rest)
        tally.note(good, f"{line} is not {event}")


def same_place(event, line):
    return (event["time"], event["cpu"], event["event"], field(event, "common_pid")) == \
        (line["time"], line["cpu"], line["event"], line["pid"])


def unshown(item, name, value):
    """What trace-cmd's raw report can't be compared in: it shows an array up to the event's end as 0, and reads a
    location word of 0 as an offset, where the source states an empty string."""
    return isinstance(value, dict) and name == "buf" or item.name == "perfetto-zero-data-loc" and name == "name"


def compare_fields(item, pages, tally):
    path = item / "expected" / RAW
    if not path.exists():
        return
    said = read_report(path)
    tally.note(len(said) == len(pages.events), f"{len(said)} events stated, {len(pages.events)} decoded")
    for line, event in zip(said, pages.events):
        decoded = fields(event)
        values = split_raw(line["rest"].rstrip("\n"), [name for name, _ in decoded])
        good = same_place(event, line) and values is not None and \
            all(same_value(value, shown) or unshown(item, name, value) for (name, value), shown in zip(decoded, values))
        tally.note(good, f"{line} is not {event}")


def compare_text(item, pages, tally):
    path = item / "expected" / TEXT
    if not path.exists():
        return
    said = read_report(path)
    tally.note(len(said) == len(pages.events), f"{len(said)} events stated, {len(pages.events)} decoded")
    for line, event in zip(said, pages.events):
        tally.note(same_place(event, line) and event["text"].strip() == line["rest"].strip(), f"{line} is not {event}")


class CorpusBinary(unittest.TestCase):
    maxDiff = None
    table = []

    @classmethod
    def tearDownClass(cls):
        print(f"\n{'item':42} {'events':>6}  " + "  ".join(f"{c:18}" for c in COLUMNS))
        for name, events, tallies in cls.table:
            print(f"{name:42} {events:6}  " + "  ".join(f"{t!s:18}" for t in tallies))

    def add(self, name, events, tallies):
        self.table.append((name, events, tallies))
        for column, tally in zip(COLUMNS, tallies):
            self.assertEqual(tally.differ[:3], [], f"{name}: {column}")

    def test_pages(self):
        items = sorted(p for p in ITEMS.iterdir() if (p / "per_cpu").is_dir())
        self.assertEqual(set(SOURCE) - {p.name for p in items}, set(), "items that are gone")
        for item in items:
            with self.subTest(item=item.name):
                pages = Pages(item)
                tallies = [Tally() for _ in COLUMNS]
                if item.name in SOURCE:
                    SOURCE[item.name](pages, tallies[0])
                compare_kernel(item, pages, tallies[1])
                compare_fields(item, pages, tallies[2])
                compare_text(item, pages, tallies[3])
                self.add(item.name, len(pages.events), tallies)
                self.assertEqual(sum(p["events"] for p in pages.pages), len(pages.events), "page_count")

    def test_the_numbers_of_each_event(self):
        """meta.json counts the records by their number, which needs no format file."""
        for item in sorted(p for p in ITEMS.iterdir() if (p / "per_cpu").is_dir()):
            if item.name == "perfetto-invalid-page":
                continue
            with self.subTest(item=item.name):
                said = json.loads((item / "meta.json").read_text())["records_by_id"]
                decoded = {}
                for event in Pages(item).events:
                    decoded[event["type"]] = decoded.get(event["type"], 0) + 1
                self.assertEqual(decoded, {int(k.split()[0]): v for k, v in said.items()})

    def test_records_in_both_byte_orders(self):
        lines = (ITEMS / "libtraceevent-records/records.jsonl").read_text().splitlines()
        tally = Tally()
        for said in map(json.loads, lines):
            for key, order in (("le", "little"), ("be", "big")):
                event, = page_dump("--record", order, said.get("long_size", 8), said[key], text=said["format"])
                good = event["text"] == said["expect_text"]
                good &= all(field(event, n) == v for n, v in said.get("expect_field", {}).items())
                tally.note(good, f"{said} is not {event}")
        self.add("libtraceevent-records", 2 * len(lines), [tally, Tally(), Tally(), Tally()])


if __name__ == "__main__":
    if not ITEMS.is_dir():
        print(f"skipped: no corpus at {CORPUS} (TRACEFAN_CORPUS)")
        sys.exit(77)
    unittest.main(verbosity=2)
