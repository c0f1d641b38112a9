#!/usr/bin/env python3
"""A router that is killed and started again: its consumers come back, and get every event once."""
import os
import signal
import subprocess
import time

import harness

GETPGID = "syscalls:sys_enter_getpgid"
ROUNDS, COUNT = 5, 20000
# A second more than a router's patience, and what it takes for standing still.
STANDSTILL = 5


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Restart(harness.TestCase):
    words = ()

    def setUp(self):
        super().setUp()
        self.session = harness.Session(self.folder, *self.words)

    def consumer(self, name, *words):
        gate = harness.Gate(self.folder, name)
        self.addCleanup(gate.close)
        process = self.session.trace("-e", f"tracepoint:{GETPGID}", *words, "-o", "json", gate=gate)
        gate.wait(process)
        return process, gate

    @staticmethod
    def gaps(process):
        """How often the consumer has come back, by its output so far."""
        return process.out.count('"kind":"gap"')

    def await_return(self, processes, rounds):
        """Until each consumer is back."""
        deadline = time.monotonic() + harness.PATIENCE
        while any(self.gaps(p) < rounds for p in processes):
            self.assertLess(time.monotonic(), deadline, [p.err for p in processes])
            time.sleep(0.01)

    def restart(self):
        self.session.router.signal(signal.SIGKILL)
        self.session.router.wait()
        self.session.router = self.session._start("router")

    def check_status(self, processes):
        """The columns of each add up while it runs, too."""
        result = harness.run([harness.program("tracefan"), "status", "--session", self.session.name, "-o", "json"])
        # Whatever the kernel's counts take: the router tells of consumers by itself.
        self.assertIn(result.status, (0, 1), result.err)
        consumers = {r["pid"]: r for r in result.records if r["kind"] == "consumer"}
        for process in processes:
            for probe in consumers[process.pid]["probes"]:
                self.assertEqual(probe["decoded"], probe["delivered"] + probe["filtered"] + probe["lost_ring"])

    def work(self, first, count):
        return subprocess.Popen([harness.program("workload_numbers"), str(harness.cpus()[-1]), str(first), str(count)])

    def numbers(self, result, wanted):
        return [e["args"]["pid"] for e in result.of(GETPGID) if e["args"]["pid"] in wanted]

    def test_who_comes_while_there_is_no_router_is_told_and_served_later(self):
        self.session.router.signal(signal.SIGKILL)
        self.session.router.wait()
        process = self.session.trace("-e", f"tracepoint:{GETPGID}", "-n", "1", "-o", "json")
        deadline = time.monotonic() + harness.PATIENCE
        while "does not answer" not in process.err:
            self.assertTrue(process.running(), process.err)
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.session.router = self.session._start("router")
        while process.running():
            os.getpgid(0)
            self.assertLess(time.monotonic(), deadline, process.err)
            time.sleep(0.01)
        self.assertEqual(process.wait().status, 0)
        self.assertEqual(self.session.stop(), (0, 0))

    def test_who_comes_back_too_late_is_told_that_it_missed_events(self):
        process, gate = self.consumer("late", "--on-loss", "report")
        process.signal(signal.SIGSTOP)
        self.restart()
        deadline = time.monotonic() + harness.PATIENCE
        while "did not come back" not in self.session.router.err:
            self.assertLess(time.monotonic(), deadline, self.session.router.err)
            time.sleep(0.01)
        process.signal(signal.SIGCONT)
        self.await_return([process], 1)
        first = (1 << 28) + os.getpid() % 128 * 100
        self.assertEqual(self.work(first, 100).wait(), 0)
        gate.open()
        result = process.wait()
        self.check_ended(result)
        gap, = [r for r in result.records if r["kind"] == "gap"]
        self.assertEqual((gap["count"], gap["at_least"]), (None, 0))
        self.assertLess(gap["from"], gap["to"])
        wanted = range(first, first + 100)
        self.assertEqual(self.numbers(result, wanted), list(wanted))
        self.assertEqual(self.session.stop(), (0, 0))

    def come_back_past(self, daemon):
        """A consumer that comes back, but for a daemon that stands still for longer than consumers are waited for: that isn't theirs."""
        process, gate = self.consumer("patient", "--on-loss", "report")
        process.signal(signal.SIGSTOP)
        self.restart()
        getattr(self.session, daemon).signal(signal.SIGSTOP)
        process.signal(signal.SIGCONT)
        first = (1 << 28) + os.getpid() % 128 * 100
        self.assertEqual(self.work(first, 100).wait(), 0)
        time.sleep(STANDSTILL)
        getattr(self.session, daemon).signal(signal.SIGCONT)
        self.await_return([process], 1)
        gate.open()
        result = process.wait()
        self.check_ended(result)
        self.check_no_loss(result)
        wanted = range(first, first + 100)
        self.assertEqual(self.numbers(result, wanted), list(wanted))
        self.assertEqual(self.session.stop(), (0, 0))

    def test_a_router_that_stands_still_has_patience(self):
        self.come_back_past("router")

    def test_a_reader_that_stands_still_costs_nobody_his_place(self):
        self.come_back_past("reader")

    def test_every_event_once(self):
        # Numbers of our own: others on the machine may make the same calls.
        count = harness.scaled(COUNT)
        first = (1 << 24) + os.getpid() % 128 * ROUNDS * count
        everything = self.consumer("everything")
        # Too little room for what comes, and what comes is these numbers alone.
        end = first + ROUNDS * count
        small = self.consumer("small", "-f", f"pid >= {first} && pid < {end}", "--ring", "65536", "--on-loss", "report")
        flight = self.consumer("flight", "-f", f"pid >= {first} && pid < {end}", "--ring", "65536", "--overflow", "overwrite")
        some = self.consumer("some", "-f", f"pid < {first + 100} || pid >= {first + ROUNDS * count - 100}")
        for i in range(ROUNDS):
            work = self.work(first + i * count, count)
            self.restart()
            self.assertEqual(work.wait(), 0)
            self.await_return([everything[0], some[0], small[0], flight[0]], i + 1)
            self.check_status([p for p, _ in (everything, some, small, flight)])
        results = []
        for process, gate in (everything, some):
            gate.open()
            results.append(process.wait())
        for result in results:
            self.check_ended(result)
            self.check_no_loss(result)
            self.check_order(result.events)
            # The kernel's count, of the whole session, and what all its routers have decoded together.
            session = result.summary["session"]
            self.assertEqual(session["committed"], session["decoded"])
            self.assertGreaterEqual(session["decoded"], ROUNDS * count)
            gaps = [r for r in result.records if r["kind"] == "gap"]
            self.assertEqual([g["count"] for g in gaps], [0] * ROUNDS)
            # Over all routers: what was shown was delivered, and nothing twice.
            self.check_balance(result)
            self.assertEqual([p["shown"] for p in result.summary["probes"].values()],
                             [p["delivered"] for p in result.summary["probes"].values()])
        probe = results[0].summary["probes"][GETPGID]
        self.assertEqual((probe["decoded"], probe["filtered"]), (probe["delivered"], 0))
        self.assertGreater(results[1].summary["probes"][GETPGID]["filtered"], 0)
        for process, gate in (small, flight):
            gate.open()
            result = process.wait()
            self.check_ended(result)
            self.check_balance(result)
            probe = result.summary["probes"][GETPGID]
            self.assertEqual(probe["shown"], probe["delivered"])
            # The event up to which a consumer had come is told again; where it is overwritten before it was known again, it is
            # lost once more.
            again = ROUNDS if process is flight[0] else 0
            self.assertIn(probe["delivered"] + probe["lost_ring"] - ROUNDS * count, range(again + 1))
        wanted = range(first, first + ROUNDS * count)
        self.assertEqual(self.numbers(results[0], wanted), list(wanted))
        self.assertEqual(self.numbers(results[1], wanted), [*wanted[:100], *wanted[-100:]])
        self.assertEqual(self.session.stop(), (0, 0))


class Text(Restart):
    words = ("--source", "text")
    # Of a text no place is known, so they hold for the binary source alone.
    test_every_event_once = test_who_comes_back_too_late_is_told_that_it_missed_events = None
    test_who_comes_while_there_is_no_router_is_told_and_served_later = None

    def test_what_was_told_one_by_one_stays_counted(self):
        process, gate = self.consumer("consumer")
        first = (1 << 27) + os.getpid() % 128 * 100
        wanted = range(first, first + 10)
        for number in wanted:
            self.assertEqual(self.work(number, 1).wait(), 0)
            # Nothing follows, so each is told by itself.
            deadline = time.monotonic() + harness.PATIENCE
            while f'"pid":{number}' not in process.out:
                self.assertTrue(process.running() and time.monotonic() < deadline, process.err)
                time.sleep(0.01)
        self.restart()
        self.await_return([process], 1)
        gate.open()
        result = process.wait()
        self.check_ended(result)
        self.assertEqual(self.numbers(result, wanted), list(wanted))
        self.check_balance(result)
        self.assertEqual(self.session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
