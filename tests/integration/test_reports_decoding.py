#!/usr/bin/env python3
"""What users of neighbouring tools reported of decoding (docs/reports.md, part C): names, paths and strings that a
parser by blanks and colons gets wrong, and output that no JSON parser takes."""
import os
import pathlib
import platform
import shutil

import harness

EXEC = "sched:sched_process_exec"

# At most fifteen bytes are a thread's name.
NAMES = [b"a b-1 [0]", b"x-123", b"a:b", b"(x)", "ü".encode(), b"\n", b"exactly 15 byte", b"dd_worker thr", b"\x01\xff\"",
         b"x-1     [000]", b"\\", b"<...>x", b" lead", b"x\n y-1 [0", b"CPU:1 [LOST 5"]

PATHS = [b"c:/Program Files/x", b"two  blanks", b'qu"ote\'s', b"a=1 b=2", b"back\\slash\\n", b"new\nline", b"end\\",
         bytes(range(0x80, 0x100)), bytes(range(1, 0x20)), "ü€\U0001f600".encode(), b"{\"kind\":\"event\"}", b"\xef\xbe\x80", b""]


def setUpModule():
    harness.require_file("uprobe_events", "uprobes")
    harness.require_event("sched", "sched_process_exec")


class Strings(harness.TestCase):
    def strings(self, source, texts, *options):
        """Each text by a process of its own: the text source has the name that a thread had last."""
        workload = harness.program("workload_strings")
        command = ["sh", "-c", 'o=$1; shift; w=$1; shift; for t; do "$w" $o "$t"; done', "sh", " ".join(options), workload]
        result = harness.trace("-s", source, "-o", "json", "-e",
                               f"h=uprobe:{workload}:workload_string n={harness.argument(1)}:u64 "
                               f"s=+0({harness.argument(2)}):string", "--", *command, *map(os.fsdecode, texts))
        self.check_ended(result)
        self.check_balance(result)
        self.check_no_loss(result)
        self.assertEqual([set(e["args"]) - {"__probe_ip", "text"} for e in result.of("h")], [{"n", "s"}] * len(texts))
        self.assertEqual([harness.as_bytes(e["args"]["s"]) for e in result.of("h")], texts)
        self.assertEqual([e for e in result.events if e.get("suspect")], [])
        return result.of("h")

    def test_thread_names_raw(self):
        events = self.strings("raw", NAMES, "-m")
        self.assertEqual([harness.as_bytes(e["comm"]) for e in events], NAMES)
        self.assertEqual(len({e["pid"] for e in events}), len(NAMES))

    def test_thread_names_text(self):
        """The kernel prints them to the right of a column, so that blanks at the head are nobody's. It also forgets
        names, or did not note the last one; then there is none, or an earlier one of the same thread."""
        got = [harness.as_bytes(e["comm"]) for e in self.strings("text", NAMES, "-m")]
        expected = [name.lstrip(b" ") for name in NAMES]
        earlier = {b"", b"tracefan", b"sh", b"workload_string"}
        self.assertEqual([(g, e) for g, e in zip(got, expected) if g != e and g not in earlier], [])
        self.assertGreater(sum(g == e for g, e in zip(got, expected)), 0)

    def test_strings_raw(self):
        self.strings("raw", PATHS)

    def test_strings_text(self):
        self.strings("text", PATHS)


class Files(harness.TestCase):
    """The name of an executed file is a dynamic string (__data_loc) of a static event, which has no canary."""

    def executed(self, source, name):
        program = os.path.join(os.fsencode(self.folder), name)
        if not os.path.exists(program):
            shutil.copy2(harness.program("workload_strings"), program)
        events = pathlib.Path(self.folder, "events")
        result = harness.trace("-s", source, "-o", "json", "-w", events, "-e", f"tracepoint:{EXEC}", "--",
                               "sh", "-c", '"$1" x', "sh", os.fsdecode(program))
        self.check_ended(result)
        result.out = events.read_text()
        self.check_balance(result)
        return program, [e for e in result.of(EXEC)
                         if harness.as_bytes(e["args"].get("filename", "")).startswith(program[:-1])]

    def test_names_of_files(self):
        for source in ("raw", "text"):
            for name in (b"Program Files", b'qu"ote\'s', b"a=1 pid=7 old_pid=8", b"back\\slash\\n", b"\x01\xff\"", "ü".encode()):
                with self.subTest(source=source, name=name):
                    program, events = self.executed(source, name)
                    self.assertEqual([harness.as_bytes(e["args"]["filename"]) for e in events], [program])
                    self.assertEqual(events[0]["args"]["pid"], events[0]["pid"])


class Large(harness.TestCase):
    """Three strings of 4095 bytes in an event: more than a page. The kernel cuts what it takes or drops the event;
    the trace goes on, and what came is told as it is."""

    def check(self, source):
        # By its release, because trying it is what must not be done.
        if tuple(map(int, platform.release().split("-")[0].split(".")[:2])) < (6, 0):
            self.skipTest("such kernels may write behind their buffer for such an event and stop (CVE-2024-50067)")
        workload = harness.program("workload_long")
        three = " ".join(f"{n}=+0({harness.argument(1)}):string" for n in "abc")
        result = harness.trace("-s", source, "-o", "json", "-e", f"h=uprobe:{workload}:workload_long_call {three}", "--",
                               "sh", "-c", f"'{workload}' 4095; '{workload}' 10")
        self.check_ended(result)
        self.check_balance(result)
        events = result.of("h")
        whole = ("abcdefghijklmnopqrstuvwxyz" * 158)[:4095]
        self.assertEqual([events[-1]["args"][n] for n in "abc"], ["abcdefghij"] * 3)
        for event in events[:-1]:
            for name in "abc":
                text = event["args"].get(name, "")
                self.assertTrue(whole.startswith(text) or text == "(fault)", text)
        # Either it came, or the kernel never committed it; nothing in between.
        self.assertIn(len(events), (1, 2))
        self.assertEqual(result.summary["session"]["undecodable"], 0)

    def test_raw(self):
        self.check("raw")

    def test_text(self):
        self.check("text")


class Sizes(harness.TestCase):
    def test_the_effective_size_is_told(self):
        """The kernel rounds what it is asked for; status has what it took."""
        session = harness.Session(self.folder, "--buffer-size", "301K")
        read = int((session.instance / "buffer_size_kb").read_text().split()[0]) * 1024
        result = harness.run([session.tracefan, "status", "--session", session.name, "-o", "json"])
        self.check_ended(result)
        told = result.records[0]
        self.assertEqual(told["buffer_size"], read, told)
        self.assertEqual(session.stop(), (0, 0))


class Fields(harness.TestCase):
    def test_a_dynamic_string_of_an_interrupt(self):
        """irq_handler_entry's name is a __data_loc string. The timer's and the disk's interrupts name drivers that
        /proc/interrupts has, so a wrong reading shows."""
        harness.require_event("irq", "irq_handler_entry")
        # A guest has no disk; but its first serial port interrupts when it is written to.
        port = "/dev/ttyS0" if harness.in_guest() else "/dev/null"
        with open(port, "wb", buffering=0):
            names = pathlib.Path("/proc/interrupts").read_text()
            result = harness.trace("-o", "json", "-e", "tracepoint:irq:irq_handler_entry", "--", "sh", "-c",
                                   f"sync; cat /proc/interrupts > /dev/null; echo interrupt > {port}")
        self.check_ended(result)
        if not result.events:
            self.skipTest("no interrupt came meanwhile")
        for event in result.of("irq:irq_handler_entry"):
            self.assertIsInstance(event["args"]["irq"], int)
            self.assertIn(event["args"]["name"], names)


if __name__ == "__main__":
    harness.main()
