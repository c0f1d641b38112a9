#!/usr/bin/env python3
"""Processors that are offline when a session starts, come while it runs, and go with events in their buffers. Only in
guests: a machine that others use keeps its processors."""
import pathlib
import subprocess
import unittest

import harness

NAME = "syscalls:sys_enter_getpgid"
SWITCH = pathlib.Path("/sys/devices/system/cpu/cpu1/online")


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")
    if not harness.in_guest():
        raise unittest.SkipTest("takes processors away: runs in guests only")
    if not SWITCH.exists():
        raise unittest.SkipTest("this machine has no second processor that can go offline")


class Hotplug(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(SWITCH.write_text, "1")

    def begin(self, source):
        """A trace that starts without the second processor."""
        SWITCH.write_text("0")
        gate = harness.Gate(self.folder, source)
        self.addCleanup(gate.close)
        process = harness.Process([harness.program("tracefan"), "trace", "-s", source, "-e", f"tracepoint:{NAME}", "-o",
                                   "json", "--", *gate.words])
        gate.wait(process)
        return process, gate

    def work(self, cpu, first):
        """A hundred numbered calls on a processor."""
        subprocess.run([harness.program("workload_numbers"), str(cpu), str(first), "100"], check=True)

    def check(self, source):
        process, gate = self.begin(source)
        first = 1 << 28
        self.work(0, first)
        # It comes: what happens there is seen.
        SWITCH.write_text("1")
        self.work(1, first + 100)
        # It goes, at once after its last event, and comes again.
        SWITCH.write_text("0")
        self.work(0, first + 200)
        SWITCH.write_text("1")
        self.work(1, first + 300)
        gate.open()
        result = process.wait()
        self.check_ended(result)
        self.check_balance(result)
        self.check_no_loss(result)
        self.check_order(result.events)
        numbers = range(first, first + 400)
        seen = [(e["args"]["pid"], e["cpu"]) for e in result.of(NAME) if e["args"]["pid"] in numbers]
        self.assertEqual(seen, [(n, (n - first) // 100 % 2) for n in numbers])

    def check_absent(self, source):
        """One that stays away is no reason to wait for its events: neither at the end, nor after a burst."""
        process, gate = self.begin(source)
        first = 1 << 28
        subprocess.run([harness.program("workload_numbers"), "0", str(first), "20000"], check=True)
        gate.open()
        result = process.wait()
        self.check_ended(result)
        self.assertNotIn("is lost", result.err)
        self.check_balance(result)
        self.check_no_loss(result)

    def test_raw_without_one(self):
        self.check_absent("raw")

    def test_text_without_one(self):
        self.check_absent("text")

    def test_raw(self):
        self.check("raw")

    def test_text(self):
        self.check("text")


if __name__ == "__main__":
    harness.main()
