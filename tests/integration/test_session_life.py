#!/usr/bin/env python3
"""A session from its start to its end: nothing is enabled that nobody wants, and the end takes the tail along and says why."""
import os
import pathlib
import subprocess
import time

import harness

NAME = "syscalls:sys_enter_getpgid"
COUNT = 1000
FIRST = (1 << 25) + (1 << 24) + os.getpid() % 4096 * COUNT
EVENT = f"tracepoint:{NAME} if pid >= {FIRST} && pid < {FIRST + COUNT}"


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Life(harness.TestCase):
    def enabled(self, session):
        return (session.instance / "events/syscalls/sys_enter_getpgid/enable").read_text()[0]

    def consumer(self, session, name, *words):
        gate = harness.Gate(self.folder, name)
        self.addCleanup(gate.close)
        process = session.trace("-e", EVENT, "-o", "json", *words, gate=gate)
        gate.wait(process)
        return process, gate

    def test_a_stop_delivers_what_came_just_before(self):
        """A thousand events, and at once the end: to each consumer a thousand, and why it ended."""
        session = harness.Session(self.folder)
        consumers = [self.consumer(session, "one"), self.consumer(session, "two", "--interval", "500")]
        subprocess.run([harness.program("workload_numbers"), str(harness.cpus()[0]), str(FIRST), str(COUNT)], check=True)
        self.check_ended(harness.run([session.tracefan, "session", "stop", session.name]))
        for process, gate in consumers:
            gate.open()
            result = process.wait()
            self.check_balance(result)
            self.check_no_loss(result)
            self.assertEqual([e["args"]["pid"] for e in result.events], list(range(FIRST, FIRST + COUNT)))
            self.assertEqual([r["reason"] for r in result.records if r["kind"] == "end"], ["stopped"])
            self.assertIn("was ended (stopped)", result.err)
        self.assertEqual((session.reader.wait().status, session.router.wait().status), (0, 0))

    def test_only_what_somebody_needs_is_enabled(self):
        session = harness.Session(self.folder)
        self.assertEqual(self.enabled(session), "0")
        one, two = self.consumer(session, "one"), self.consumer(session, "two")
        self.assertEqual(self.enabled(session), "1")
        for (process, gate), left in ((one, "1"), (two, "0")):
            gate.open()
            self.check_ended(process.wait())
            deadline = time.monotonic() + harness.PATIENCE
            # Nobody tells when an event is disabled, so this looks again.
            while self.enabled(session) != left:
                self.assertLess(time.monotonic(), deadline, "the event stays enabled")
                time.sleep(0.02)
        self.assertEqual(session.stop(), (0, 0))

    def test_whether_it_runs(self):
        session = harness.Session(self.folder)
        status = [session.tracefan, "status", "--session", session.name]
        self.check_ended(harness.run(status))
        self.assertEqual(session.stop(), (0, 0))
        self.check_ended(harness.run(status), 4)


if __name__ == "__main__":
    harness.main()
