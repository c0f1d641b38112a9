#!/usr/bin/env python3
"""A million numbered events from two processes on two CPUs: all delivered, in order, none twice, default sizes.

The processes are nice and the programs under test are not: they take all of an idle machine, but on a busy one the test must
not come to depend on how the scheduler shares it between them and whatever else runs."""
import json
import os
import pathlib
import subprocess

import harness

TOTAL = harness.scaled(1_000_000)
# Numbers of our own: others on the machine may run the same program.
FIRST = (1 << 30) + os.getpid() % 256 * 2_000_000
# Of the programs under test and of the workers, which may be started by one of them.
FIRM, YIELDING = -15, 19


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Million(harness.TestCase):
    def work(self):
        """Half of the numbers from each of two processes, at the same time."""
        cpus, half = harness.cpus(), TOTAL // 2
        workers = [subprocess.Popen(["nice", "-n", str(YIELDING), harness.program("workload_numbers"), str(cpus[i % len(cpus)]),
                                     str(FIRST + i * half), str(half)]) for i in range(2)]
        self.assertEqual([w.wait() for w in workers], [0, 0])

    def check_late(self, count):
        """None, but where the processor is emulated: there one may stand still in the middle of an event for longer
        than the reader waits for it, and the event is delivered late and says so."""
        self.assertLessEqual(count, TOTAL // 1000 if harness.in_guest() else 0)

    def test_by_the_library(self):
        session = harness.Session(self.folder)
        consumer = harness.staged(self.folder, "number_consumer")
        # It says when it is live, and ends when its input does.
        said, say = os.pipe()
        go, hold = os.pipe()
        process = harness.Process([consumer, session.name, FIRST, TOTAL, "all"], stdin=go, stdout=say,
                                  **harness.as_user(harness.USER_A, session.group.gr_gid))
        for under_test in session.reader, session.router, process:
            os.setpriority(os.PRIO_PROCESS, under_test.pid, FIRM)
        os.close(go)
        os.close(say)
        with open(said) as lines:
            self.assertEqual(lines.readline(), "live\n", process.err)
            self.work()
            os.close(hold)
            result = json.loads(lines.readline())
        self.check_ended(process.wait())
        self.check_late(result.pop("late"))
        ledger, trace = result.pop("session"), result.pop("trace")
        self.assertEqual(ledger["committed"], ledger["decoded"])
        self.assertEqual(result, {"came": TOTAL // 2 * 2, "twice": 0, "disordered": 0, "lost": 0, "gaps": 0, "uncounted": 0,
                                  "told": {"kernel": 0, "ring": 0}})
        self.assertEqual(trace["lost_ring"], 0)
        self.assertEqual(session.stop(), (0, 0))

    def test_by_the_command(self):
        """The same through tracefan trace, which has to format every event, too."""
        file = pathlib.Path(self.folder, "events")
        cpus, half = harness.cpus(), TOTAL // 2
        workload = harness.program("workload_numbers")
        result = harness.trace(
            "-e", "tracepoint:syscalls:sys_enter_getpgid", "-o", "json", "-w", file, "--",
            "nice", "-n", str(YIELDING - FIRM), "sh", "-c",
            f"'{workload}' {cpus[0]} {FIRST} {half} & '{workload}' {cpus[-1]} {FIRST + half} {half} & wait",
            preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, FIRM))
        self.check_ended(result)
        numbers, times, late = bytearray(2 * half), [], 0
        with file.open() as lines:
            for line in lines:
                record = json.loads(line)
                if record["kind"] != "event":
                    break
                late += record.get("late", False)
                if not record.get("late"):
                    times.append(record["time"])
                if FIRST <= record["args"]["pid"] < FIRST + 2 * half:
                    numbers[record["args"]["pid"] - FIRST] += 1
            rest = [record] + [r for r in map(json.loads, lines) if r["kind"] != "event"]
        self.assertEqual([r["kind"] for r in rest], ["summary"], rest[:20] + rest[-1:])
        session, probe = rest[0]["session"], rest[0]["probes"]["syscalls:sys_enter_getpgid"]
        self.assertEqual(session["committed"], session["decoded"])
        self.assertEqual((probe["delivered"], probe["lost_ring"]), (len(times) + late, 0))
        self.assertTrue(numbers == bytes([1]) * (2 * half), "each number once")
        self.assertTrue(times == sorted(times), "order")
        self.check_late(late)


if __name__ == "__main__":
    harness.main()
