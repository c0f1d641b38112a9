#!/usr/bin/env python3
"""Several consumers of one session, none of them root: each gets all of its own and nothing of the others'."""
import subprocess

import harness

EXEC = "sched:sched_process_exec"
GETPGID = "syscalls:sys_enter_getpgid"


def setUpModule():
    harness.require_event("sched", "sched_process_exec")
    harness.require_event("syscalls", "sys_enter_getpgid")


class Consumers(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.session = harness.Session(self.folder)
        self.workers = []

    def consumer(self, name, event, uid):
        gate = harness.Gate(self.folder, name)
        self.addCleanup(gate.close)
        process = self.session.trace("-e", f"tracepoint:{event}", "-o", "json", uid=uid, gate=gate)
        gate.wait(process)
        return process, gate

    def work(self, first, count):
        """`count` numbered calls from each of several processes; returns their pids."""
        workload = harness.program("workload_numbers")
        pids = []
        for i in range(10):
            with subprocess.Popen([workload, str(harness.cpus()[i % len(harness.cpus())]), str(first + i * count), str(count)]) as p:
                self.assertEqual(p.wait(), 0)
                pids.append(p.pid)
        self.workers += pids
        return pids

    def end(self, process, gate):
        gate.open()
        result = process.wait()
        self.check_ended(result)
        self.check_balance(result)
        self.check_no_loss(result)
        self.check_order(result.events)
        return result

    def numbers(self, result):
        """What our own workload's processes passed; others on the machine may run the same program."""
        return sorted(e["args"]["pid"] for e in result.of(GETPGID) if e["pid"] in self.workers)

    def executed(self, result):
        return [e["pid"] for e in result.of(EXEC) if e["pid"] in self.workers]

    def test_each_gets_its_own(self):
        first, count = 1 << 30, 100
        execs, execs_gate = self.consumer("execs", EXEC, harness.USER_A)
        calls, calls_gate = self.consumer("calls", GETPGID, harness.USER_B)
        pids = self.work(first, count)

        # A third comes and goes in the middle.
        third, third_gate = self.consumer("third", GETPGID, harness.USER_A)
        seen_by_third = self.work(first + 10 * count, count)
        third_result = self.end(third, third_gate)
        pids += seen_by_third

        pids += self.work(first + 20 * count, count)
        execs_result, calls_result = self.end(execs, execs_gate), self.end(calls, calls_gate)

        self.assertEqual({e["probe"] for e in execs_result.events}, {EXEC})
        self.assertEqual({e["probe"] for e in calls_result.events}, {GETPGID})
        self.assertEqual(self.executed(execs_result), pids)
        self.assertEqual(self.numbers(calls_result), list(range(first, first + 30 * count)))
        self.assertEqual(self.numbers(third_result), list(range(first + 10 * count, first + 20 * count)))
        self.assertEqual(self.session.stop(), (0, 0))

    def test_a_killed_consumer_costs_the_others_nothing(self):
        first, count = 1 << 30, 100
        victim, _ = self.consumer("victim", GETPGID, harness.USER_A)
        calls, gate = self.consumer("calls", GETPGID, harness.USER_B)
        self.work(first, count)
        victim.kill()
        self.work(first + 10 * count, count)
        self.assertEqual(self.numbers(self.end(calls, gate)), list(range(first, first + 20 * count)))
        self.assertEqual(self.session.stop(), (0, 0))

    def test_the_end_of_the_session_is_told(self):
        process, gate = self.consumer("calls", GETPGID, harness.USER_A)
        self.work(1 << 30, 10)
        self.assertEqual(self.session.stop(), (0, 0))
        gate.open()
        result = process.wait()
        kinds = [r["kind"] for r in result.records]
        self.assertEqual(kinds[-2:], ["end", "summary"])
        self.assertEqual(self.numbers(result), list(range(1 << 30, (1 << 30) + 100)))

    def test_a_stranger_is_refused(self):
        """A user who is not in the session's group."""
        result = harness.trace("--session", self.session.name, "-e", f"tracepoint:{EXEC}", "-d", 5, uid=harness.USER_B,
                               tracefan=self.session.tracefan)
        self.check_ended(result, 3)
        self.assertEqual(result.out, "")
        self.assertEqual(self.session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
