#!/usr/bin/env python3
"""In a time namespace CLOCK_MONOTONIC is not the clock by which the kernel notes the times of events: consumers there miss nothing,
and a session isn't begun there."""
import os
import signal
import subprocess
import unittest

import harness

FIRST = (1 << 25) + os.getpid() % 4096 * (1 << 13)
COUNT = 100
OFFSETS = (100_000, -1)


def within(seconds):
    return ["unshare", "--time", "--fork", "--kill-child", "--monotonic", str(seconds)]


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")
    try:
        usable = subprocess.run([*within(1), "true"], stderr=subprocess.DEVNULL).returncode == 0
    except FileNotFoundError:
        usable = False
    if not usable:
        raise unittest.SkipTest("there are no time namespaces here, or no unshare(1) that makes them")


class TimeNamespace(harness.TestCase):
    def numbers(self, first):
        self.check_ended(harness.run([harness.program("workload_numbers"), harness.cpus()[0], first, COUNT]))

    def take_over(self, daemon, *words):
        process = getattr(self.session, daemon)
        process.signal(signal.SIGKILL)
        process.wait()
        setattr(self.session, daemon, self.session._start(daemon, *words))

    def test_a_consumer(self):
        """Whose place in the stream is asked of it when the router is another one: before its first event, and later."""
        for seconds in OFFSETS:
            for before in (0, COUNT):
                with self.subTest(seconds=seconds, before=before):
                    self.session = harness.Session(self.folder)
                    consumer = harness.Talker([*within(seconds), harness.program("number_consumer"), self.session.name, FIRST, 2 * COUNT, "tell"])
                    self.assertEqual(consumer.hear(), "live", consumer.err)
                    if before:
                        self.numbers(FIRST)
                    self.take_over("router")
                    self.assertEqual(consumer.hear(), "gap", consumer.err)
                    self.numbers(FIRST + before)
                    report = consumer.finish()
                    self.assertEqual((report["came"], report["twice"], report["lost"]), (before + COUNT, 0, 0), report)
                    self.assertEqual(self.session.stop(), (0, 0))

    def test_a_session(self):
        """It would take its own time for the kernel's, and tell no event."""
        for seconds in OFFSETS:
            with self.subTest(seconds=seconds):
                command = [harness.program("workload_numbers"), harness.cpus()[0], FIRST, COUNT]
                result = harness.run([*within(seconds), harness.program("tracefan"), "trace", "-e", "tracepoint:syscalls:sys_enter_getpgid", "--", *command])
                self.check_ended(result, 4)
                self.assertIn("time namespace", result.err)

    def test_a_router(self):
        """Also where the reader is outside."""
        self.session = harness.Session(self.folder)
        self.session.router.signal(signal.SIGTERM)
        self.session.router.wait()
        result = harness.run([*within(1), harness.program("tracefan-router"), "--session", self.session.name])
        self.check_ended(result, 4)
        self.assertIn("time namespace", result.err)
        self.session.router = self.session._start("router")
        self.assertEqual(self.session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
