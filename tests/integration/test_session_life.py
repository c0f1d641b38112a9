#!/usr/bin/env python3
"""A session from its start to its end: nothing is enabled that nobody wants, and the end takes the tail along and says why."""
import json
import os
import pathlib
import select
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

    def test_a_lone_event_does_not_wait_for_others(self):
        """Far below what wakes anybody: it comes within the interval all the same, without a flush or an end."""
        session = harness.Session(self.folder, "--interval", "500", "--subbuf-size", "64K")
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        told = os.path.join(self.folder, "told")
        os.mkfifo(told, 0o666)
        reading = os.open(told, os.O_RDWR)
        self.addCleanup(os.close, reading)
        os.chmod(told, 0o666)
        consumer = session.trace("-e", EVENT, "-o", "json", "-w", told, "--interval", "500", gate=gate)
        gate.wait(consumer)
        subprocess.run([harness.program("workload_numbers"), str(harness.cpus()[0]), str(FIRST), "1"], check=True)
        readable, _, _ = select.select([reading], [], [], harness.PATIENCE)
        self.assertTrue(readable, "it waits for more")
        self.assertEqual(json.loads(os.read(reading, 65536).split(b"\n")[0])["args"]["pid"], FIRST)
        gate.open()
        self.check_ended(consumer.wait())
        self.assertEqual(session.stop(), (0, 0))

    def test_sizes_that_cannot_be_as_asked(self):
        """What was made of them is told to who asked, and to who asks later."""
        # Whole sub-buffers, and one more.
        session = harness.Session(self.folder, "--buffer-size", "1000K", "--subbuf-size", "16K", "--interval", "10000")
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        consumer = session.trace("-e", EVENT, "-o", "json", "--ring", "100000", gate=gate)
        gate.wait(consumer)
        status = harness.run([session.tracefan, "status", "--session", session.name, "-o", "json"])
        self.check_ended(status)
        of_session = next(r for r in status.records if r["kind"] == "session")
        kernel = int((session.instance / "buffer_size_kb").read_text()) << 10
        self.assertGreaterEqual(kernel, 1000 << 10)
        self.assertEqual(of_session["buffer_size"], kernel)
        if (session.instance / "buffer_subbuf_size_kb").exists():
            self.assertEqual(of_session["subbuf_size"], 16 << 10)
        gate.open()
        result = consumer.wait()
        self.check_ended(result)
        self.assertIn("the ring has 131072 bytes; 100000 were asked for", result.err)
        self.assertEqual(session.stop(), (0, 0))

    def test_contradictions_name_both(self):
        for program, words, both in (("tracefan-reader", ("--session", "s", "--source", "raw", "--pages", "d"), ("--source", "--pages")),
                                     ("tracefan-reader", ("--session", "s", "--buffer-size", "16K", "--subbuf-size", "64K"),
                                      ("--subbuf-size", "--buffer-size")),
                                     ("tracefan", ("replay", "--text", "a", "--pages", "d"), ("--text", "--pages")),
                                     ("tracefan", ("replay", "--text", "a", "b"), ("FILE", "--text")),
                                     ("tracefan", ("trace", "--session", "s", "-s", "text", "-e", EVENT), ("--source", "--session"))):
            with self.subTest(program=program, words=words):
                result = harness.run([harness.program(program), *words])
                self.assertEqual(result.status, 2, result.err)
                for name in both:
                    self.assertIn(name, result.err)

    def test_names(self):
        for name in ("1bad", "a/b", "a b", "x" * 33, "..", ""):
            with self.subTest(name=name):
                result = harness.run([harness.program("tracefan"), "session", "start", name])
                self.assertEqual(result.status, 2, result.err)
                self.assertRegex(result.err, r"name|NAME")


if __name__ == "__main__":
    harness.main()
