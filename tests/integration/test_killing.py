#!/usr/bin/env python3
"""Routers and readers that are killed again and again under 100,000 events a second. TRACEFAN_KILLS=full is a hundred
routers and twenty readers."""
import json
import os
import random
import signal
import time

import harness

FULL = os.environ.get("TRACEFAN_KILLS") == "full"
ROUTERS, READERS = (100, 20) if FULL else (8, 5)
RATE = harness.scaled(100_000)
RING = 256 << 20
# Numbers of our own: others on the machine may run the same program.
FIRST = (1 << 24) + os.getpid() % 64 * (1 << 24)
MOST = 1 << 27


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Conversation(harness.Process):
    """A program that says what it has come to by lines, and goes on until its input ends."""

    def __init__(self, words, **more):
        go, self._hold = os.pipe()
        said, say = os.pipe()
        super().__init__(words, stdin=go, stdout=say, **more)
        os.close(go)
        os.close(say)
        self.lines = open(said)

    def line(self):
        line = self.lines.readline().strip()
        if not line:
            raise AssertionError(f"{self.words[0]} has ended: {self.wait().err}")
        return line

    def finish(self):
        """Its last words, without the lines that came before them."""
        os.close(self._hold)
        rest = self.lines.read().splitlines()
        self.lines.close()
        return self.wait(), rest[-1] if rest else ""


class Killing(harness.TestCase):
    def start(self, *words):
        self.words = ("--buffer", "64M", *words)
        self.session = harness.Session(self.folder, *self.words)
        self.number_consumer = harness.staged(self.folder, "number_consumer")

    def consumer(self):
        process = Conversation([self.number_consumer, self.session.name, FIRST, MOST, RING],
                               **harness.as_user(harness.USER_A, self.session.group.gr_gid))
        self.assertEqual(process.line(), "live")
        return process

    def work(self):
        process = Conversation([harness.program("workload_rate"), harness.cpus()[-1], FIRST, RATE])
        self.assertEqual(process.line(), "going")
        return process

    def finish(self, consumers, work):
        """Every consumer's report, and the number of events that there were."""
        result, made = work.finish()
        self.assertEqual(result.status, 0, result.err)
        reports = []
        for consumer in consumers:
            result, report = consumer.finish()
            self.assertEqual(result.status, 0, (result.err, self.session.router.err, self.session.reader.err))
            reports.append(json.loads(report))
        return reports, int(made)

    def check_session(self, report):
        session = report.pop("session")
        self.assertEqual(session["committed"], session["decoded"] + session["undecodable"] + session["lost_kernel"], session)
        self.assertEqual(session["lost_kernel"], report["lost"])
        # Where the processor is emulated, it may stand still in the middle of an event.
        self.assertLessEqual(report.pop("late"), report["came"] // 1000 if harness.in_guest() else 0)

    def test_readers(self):
        self.start()
        consumers = [self.consumer() for _ in range(2)]
        work = self.work()
        began = time.monotonic()
        for _ in range(READERS):
            # Whatever it is at when it dies.
            time.sleep(random.uniform(0, 0.2))
            self.session.reader.signal(signal.SIGKILL)
            self.session.reader.wait()
            self.session.reader = self.session._start("reader", "--group", self.session.group.gr_name, *self.words)
        seconds = time.monotonic() - began
        reports, made = self.finish(consumers, work)
        print(f"readers killed: {READERS}, events: {made} in {seconds:.1f} s, consumers: {reports}")
        for report in reports:
            self.check_session(report)
            # What was lost may have been of others who make such calls, or of the session's own events.
            self.assertGreaterEqual(report["came"] + report["lost"], made)
            self.assertEqual([report[k] for k in ("twice", "disordered", "gaps", "lost_ring")], [0] * 4)
        self.assertEqual(self.session.stop(), (0, 0))

    def test_routers(self):
        self.start()
        consumers = [self.consumer() for _ in range(2)]
        work = self.work()
        began = time.monotonic()
        for _ in range(ROUTERS):
            # Whatever it is at when it dies.
            time.sleep(random.uniform(0, 0.1))
            self.session.router.signal(signal.SIGKILL)
            self.session.router.wait()
            self.session.router = self.session._start("router")
            self.assertEqual([c.line() for c in consumers], ["gap"] * len(consumers))
        seconds = time.monotonic() - began
        reports, made = self.finish(consumers, work)
        print(f"routers killed: {ROUTERS}, events: {made} in {seconds:.1f} s, consumers: {reports}")
        for report in reports:
            self.check_session(report)
            self.assertEqual(report, {"came": made, "twice": 0, "disordered": 0, "lost": 0, "gaps": ROUTERS, "lost_ring": 0})
        self.assertEqual(self.session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
