#!/usr/bin/env python3
"""A hostile consumer attacks by everything that it can reach, while another one counts numbers: the numbers are all
there, and the daemons are the same as before."""
import os
import pathlib
import resource
import signal
import subprocess
import threading
import unittest.mock

import harness

GETPGID = "syscalls:sys_enter_getpgid"
FIRST = 1 << 29
CHUNK = 200
# Between two of them: enough for the attacks to fall into the middle of events, and few enough to be read as JSON.
PAUSE_S = 0.01


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Numbers(threading.Thread):
    """Numbered calls by one process after the other, until it is told to end."""

    def __init__(self):
        super().__init__()
        self.next, self.pids, self.enough = FIRST, set(), threading.Event()

    def run(self):
        workload, cpus = harness.program("workload_numbers"), harness.cpus()
        while not self.enough.is_set():
            with subprocess.Popen([workload, str(cpus[len(self.pids) % len(cpus)]), str(self.next), str(CHUNK)]) as p:
                self.pids.add(p.pid)
                assert p.wait() == 0
            self.next += CHUNK
            self.enough.wait(PAUSE_S)

    def end(self):
        self.enough.set()
        self.join()


class Hostile(harness.TestCase):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        # What the daemons free is overwritten at once, so that nothing goes on with it by chance.
        freed = {"GLIBC_TUNABLES": "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0"}
        with unittest.mock.patch.dict(os.environ, freed):
            self.session = harness.Session(self.folder)
        self.program = harness.staged(self.folder, "hostile_consumer")
        self.gate = harness.Gate(self.folder)
        self.addCleanup(self.gate.close)
        self.calls = self.session.trace("-e", f"tracepoint:{GETPGID}", "-o", "json", uid=harness.USER_B, gate=self.gate)
        self.gate.wait(self.calls)
        self.numbers = Numbers()
        self.addCleanup(self.numbers.end)
        self.numbers.start()

    def attack(self, name, **more):
        socket = harness.SESSIONS / self.session.name / "consumers.sock"
        return harness.Process([self.program, str(socket), name],
                               **harness.as_user(harness.USER_A, self.session.group.gr_gid), **more)

    def check(self, name):
        """The attack is over, and did what it says."""
        result = self.attack(name).wait()
        self.check_ended(harness.Result(result.status, "", result.out + result.err))
        self.report(name, result.out)
        return result.out

    def report(self, name, text):
        print(f"{name}: {text.strip()}", flush=True)

    def check_others(self):
        """Nothing was lost, and nobody had to be started again."""
        self.assertTrue(self.session.reader.running() and self.session.router.running(), self.session.router.err)
        self.numbers.end()
        self.gate.open()
        result = self.calls.wait()
        self.check_ended(result)
        self.check_balance(result)
        self.check_no_loss(result)
        self.check_order(result.events)
        seen = [e["args"]["pid"] for e in result.of(GETPGID) if e["pid"] in self.numbers.pids]
        self.assertEqual(len(seen), self.numbers.next - FIRST)
        self.assertEqual(sorted(seen), list(range(FIRST, self.numbers.next)))
        self.report("others", f"{len(seen)} numbers, none lost")
        self.assertEqual(self.session.stop(), (0, 0))

    def test_messages(self):
        self.check("messages")
        self.check("sizes")
        self.check_others()

    def test_memory(self):
        self.check("ring")
        self.check("cursor")
        self.check_others()

    def test_numbers_of_connections(self):
        self.assertIn("64 attached, 936 not: user 47101 has 64 consumers attached, the usual limit", self.check("connections"))
        self.check("flood")
        self.check("filters")
        # Of those that say nothing 64 are kept, and they are in nobody's way.
        half_open = self.attack("half-open", stdin=subprocess.PIPE)
        while "\n" not in half_open.out and half_open.running():
            self.numbers.enough.wait(0.05)
        self.assertIn("936 turned away: user 47101 has 64 connections", half_open.out)
        self.report("half-open", half_open.out)
        half_open.kill()
        self.check_others()

    def test_ends(self):
        stopped = [self.attack("stop") for _ in range(3)]
        for process in stopped:
            while "live" not in process.out and process.running():
                self.numbers.enough.wait(0.05)
        self.check("die")
        for process in stopped:
            process.signal(signal.SIGKILL)
            process.kill()
        self.check_others()


if __name__ == "__main__":
    harness.main()
