#!/usr/bin/env python3
"""Somebody else who is root writes to the session's instance while it runs: no column says what isn't so, and what is lost is told."""
import json
import os
import pathlib
import subprocess
import time

import harness

EVENT = "syscalls:sys_enter_getpgid"
COUNT = 201
FIRST = (1 << 25) + (1 << 23) + os.getpid() % 4096 * COUNT
PROBE = f"tracepoint:{EVENT} if pid >= {FIRST} && pid < {FIRST + COUNT}"


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Interference(harness.TestCase):
    def trace(self, write, *words):
        """A trace of COUNT events, after which, once they have come, somebody writes to its instance."""
        gate = harness.Gate(self.folder, f"gate{len(os.listdir(self.folder))}")
        self.addCleanup(gate.close)
        out = pathlib.Path(self.folder, "out")
        out.unlink(missing_ok=True)
        process = harness.Process([harness.program("tracefan"), "trace", *words, "-w", out, "-e", PROBE, "--", *gate.words])
        gate.wait(process)
        subprocess.run([harness.program("workload_numbers"), str(harness.cpus()[0]), str(FIRST), str(COUNT)], check=True)
        deadline = time.monotonic() + harness.PATIENCE
        while out.read_text().count("\n") < COUNT:
            self.assertLess(time.monotonic(), deadline, "the events don't come")
            time.sleep(0.02)
        write(next(harness.TRACEFS.glob(f"instances/tracefan-private-{process.pid}-*")))
        gate.open()
        result = process.wait()
        result.out = out.read_text()
        return result

    def check_told(self, result):
        self.check_ended(result)
        self.assertEqual([e["args"]["pid"] for e in result.events], list(range(FIRST, FIRST + COUNT)))
        lost = [r for r in result.records if r["kind"] == "lost"]
        self.assertEqual([(r["source"], r["count"], r["cpu"]) for r in lost], [("kernel", None, None)])
        self.assertLess(lost[0]["from"], result.events[-1]["time"])
        self.assertGreater(lost[0]["to"], result.events[-1]["time"])
        session = result.summary["session"]
        self.assertIsNone(session["committed"], session)
        self.assertGreaterEqual(session["decoded"], COUNT)
        self.assertIn("somebody else cleared the buffers", result.err)

    def clear(self, instance):
        (instance / "trace").write_text("")

    def test_buffers_that_are_cleared(self):
        for source in ("raw", "text"):
            with self.subTest(source=source):
                self.check_told(self.trace(self.clear, "-s", source, "-o", "json"))

    def test_one_buffer_that_is_cleared(self):
        cpu = harness.cpus()[0]
        self.check_told(self.trace(lambda instance: (instance / f"per_cpu/cpu{cpu}/trace").write_text(""), "-o", "json"))

    def test_the_summary_in_words(self):
        result = self.trace(self.clear)
        self.check_ended(result)
        self.assertRegex(result.err, r"session: at least (\d+) committed = \1 decoded \+ 0 undecodable \+ 0 lost in the kernel; somebody else cleared")
        self.assertIn("count=unknown", result.out)

    def test_is_a_loss(self):
        self.check_ended(self.trace(self.clear, "--on-loss", "exit"), 8)

    def test_a_size_that_is_changed(self):
        for size in (64, 4096):
            with self.subTest(size=size):
                result = self.trace(lambda instance: (instance / "buffer_size_kb").write_text(str(size)), "-o", "json")
                self.check_ended(result)
                self.assertEqual(len(result.events), COUNT)
                if result.summary["session"]["committed"] is None:
                    self.check_told(result)
                else:
                    self.check_balance(result)

    def test_switched_off(self):
        """What is not recorded counts nowhere, so that the sum is true; that it is missing is told."""
        result = self.trace(lambda instance: (instance / "tracing_on").write_text("0"), "-o", "json")
        self.check_ended(result)
        self.check_balance(result)
        self.assertEqual([(r["source"], r["count"]) for r in result.records if r["kind"] == "lost"], [("kernel", None)])
        self.assertIn("tracing_on", result.err)

    def test_switched_off_by_the_session(self):
        """At its end, which is no loss."""
        session = harness.Session(self.folder, "--source", "text")
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        consumer = session.trace("-e", PROBE, "-o", "json", gate=gate)
        gate.wait(consumer)
        subprocess.run([harness.program("workload_numbers"), str(harness.cpus()[0]), str(FIRST), str(COUNT)], check=True)
        self.assertEqual(session.stop()[0], 0)
        gate.open()
        result = consumer.wait()
        self.check_balance(result)
        self.check_no_loss(result)

    def test_it_goes_on(self):
        """A session that lasts tells it once, to those who are there, with the next account."""
        session = harness.Session(self.folder)
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        consumer = session.trace("-e", PROBE, "-o", "json", gate=gate)
        gate.wait(consumer)
        workload = [harness.program("workload_numbers"), str(harness.cpus()[0]), str(FIRST), str(COUNT)]
        status = [session.tracefan, "status", "--session", session.name, "-o", "json"]
        for _ in range(2):
            subprocess.run(workload, check=True)
            self.check_ended(harness.run(status))
        self.clear(session.instance)
        for _ in range(2):
            subprocess.run(workload, check=True)
            ledger = next(r for r in harness.run(status).records if r["kind"] == "session")["ledger"]
            self.assertIsNone(ledger["committed"])
        gate.open()
        result = consumer.wait()
        self.check_ended(result)
        self.assertEqual(len(result.events), 4 * COUNT)
        self.assertEqual([r["count"] for r in result.records if r["kind"] == "lost"], [None])
        self.assertEqual(session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
