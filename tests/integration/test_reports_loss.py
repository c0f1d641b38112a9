#!/usr/bin/env python3
"""What users of neighbouring tools reported of loss (docs/reports.md, part B): losses that were not told, told of
nobody's CPU, told again and again, or that did not add up."""
import os
import pathlib
import signal
import subprocess
import time

import harness

NAME = "syscalls:sys_enter_getpgid"
EVENT = f"tracepoint:{NAME}"
FIRST = 1 << 28


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Loss(harness.TestCase):
    def work(self, count):
        """Numbered calls from a process on each CPU; what they pass."""
        workload = harness.program("workload_numbers")
        processes = [subprocess.Popen([workload, str(cpu), str(FIRST + i * count), str(count)])
                     for i, cpu in enumerate(harness.cpus())]
        self.assertEqual([p.wait() for p in processes], [0] * len(processes))
        return range(FIRST, FIRST + len(processes) * count)

    def check_told(self, records, source):
        """Losses are told as losses of something, somewhere, sometime; (how many in all, their records)."""
        lost = [r for r in records if r["kind"] == "lost"]
        self.assertEqual({r["source"] for r in lost}, {source})
        for r in lost:
            # Nothing is ever told as nothing.
            self.assertGreater(self.count(r), 0, r)
            self.assertLessEqual(r["from"], r["to"], r)
        return sum(self.count(r) for r in lost), lost

    @staticmethod
    def count(lost):
        """A sub-buffer that was full to its last bytes has no room for the kernel's count: then it is unknown."""
        return lost["at_least"] if lost["count"] is None else lost["count"]

    def check_events(self, events, numbers):
        """None twice, none that nobody made, each CPU's in the order of their making."""
        seen = [e["args"]["pid"] for e in events if e["args"]["pid"] in numbers]
        self.assertEqual(len(seen), len(set(seen)), "delivered twice")
        for cpu in {e["cpu"] for e in events}:
            own = [e["args"]["pid"] for e in events if e["cpu"] == cpu and e["args"]["pid"] in numbers]
            self.assertEqual(own, sorted(own))
        return seen

    def test_in_the_kernel(self):
        """The reader stands still while each CPU's small buffer overflows: what came and what is told as lost are
        together what was made, and each CPU's loss is its own."""
        session = harness.Session(self.folder, "--buffer-size", "64K")
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        consumer = session.trace("-e", EVENT, "-o", "json", "--ring", "16M", gate=gate)
        gate.wait(consumer)
        session.reader.signal(signal.SIGSTOP)
        try:
            numbers = self.work(20000)
        finally:
            session.reader.signal(signal.SIGCONT)
        gate.open()
        result = consumer.wait()
        self.check_ended(result)
        self.check_balance(result)
        self.check_order(result.events)
        seen = self.check_events(result.events, numbers)
        lost, records = self.check_told(result.records, "kernel")
        told, lost = lost, result.summary["session"]["lost_kernel"]
        if all(r["count"] is not None for r in records):
            self.assertEqual(told, lost)
        self.assertLessEqual(told, lost)
        self.assertEqual({r["cpu"] for r in records}, set(harness.cpus()))
        # Others may make such calls, too, and theirs may be lost; no more than they made.
        others = result.summary["session"]["committed"] - len(numbers)
        self.assertGreaterEqual(len(seen) + lost, len(numbers))
        self.assertLessEqual(len(seen) + lost, len(numbers) + others)
        # One stretch of loss per CPU, told once, not once per event.
        self.assertLess(len(records), max(10 * len(harness.cpus()), lost // 100))
        # The loss stands where it happened: before what its CPU delivered after it.
        for record in records:
            later = [i for i, r in enumerate(result.records) if r["kind"] == "event" and r["cpu"] == record["cpu"]
                     and r["time"] > record["to"]]
            self.assertTrue(all(i > result.records.index(record) for i in later), record)
        self.assertEqual(session.stop(), (0, 0))

    def stopped_consumer(self, *words):
        """A consumer that stands still while more events come than its ring holds."""
        session = harness.Session(self.folder)
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        events = pathlib.Path(self.folder, "events")
        consumer = session.trace("-e", EVENT, "-o", "json", "--ring", "64K", "-w", events, *words, gate=gate)
        gate.wait(consumer)
        consumer.signal(signal.SIGSTOP)
        try:
            numbers = self.work(5000)
            self.check_ended(harness.run([session.tracefan, "session", "flush", session.name]))
        finally:
            consumer.signal(signal.SIGCONT)
        # Until it has made room.
        deadline = time.monotonic() + harness.PATIENCE
        while not events.stat().st_size:
            self.assertLess(time.monotonic(), deadline, "the consumer reads nothing")
            time.sleep(0.02)
        more = self.work(10)
        gate.open()
        result = consumer.wait()
        result.out = events.read_text()
        self.assertEqual(session.stop(), (0, 0))
        return result, range(numbers.start, max(numbers.stop, more.stop))

    def test_at_a_ring(self):
        """A gap in band, of exactly what is missing, and the trace goes on behind it."""
        result, numbers = self.stopped_consumer()
        self.check_ended(result)
        self.check_balance(result)
        lost, records = self.check_told(result.records, "ring")
        probe = result.summary["probes"][NAME]
        self.assertEqual(lost, probe["lost_ring"])
        self.assertEqual(lost + len(result.events), probe["decoded"] - probe["filtered"])
        kinds = [r["kind"] for r in result.records]
        self.assertIn("event", kinds[kinds.index("lost"):])
        # Merged: the ring fills more than once, with what others call meanwhile, but not once per event.
        self.assertLess(len(records), lost // 10)

    def test_overwritten(self):
        """The same with the oldest lost: the columns say what came, not what was written."""
        result, numbers = self.stopped_consumer("--overflow", "overwrite")
        self.check_ended(result)
        self.check_balance(result)
        lost, _ = self.check_told(result.records, "ring")
        probe = result.summary["probes"][NAME]
        self.assertEqual((probe["lost_ring"], probe["delivered"]), (lost, len(result.events)))
        self.check_order(result.events)
        self.assertGreater(lost, 5000)
        # The newest are there: the last that a process made before the consumer went on.
        last = {FIRST + (i + 1) * 5000 - 1 for i in range(len(harness.cpus()))}
        self.assertTrue(last.intersection(e["args"]["pid"] for e in result.events))

    def test_the_exit_status_tells(self):
        result, _ = self.stopped_consumer("--on-loss", "exit")
        self.check_ended(result, 8)
        self.assertGreater(result.summary["probes"][NAME]["lost_ring"], 0)

    def test_none_is_told_where_there_was_none(self):
        """Ended under load: no loss of nothing, nothing twice, nothing out of order."""
        command = ["sh", "-c", '"$1" "$2" "$3" 2000 & "$1" "$4" "$5" 2000 & wait', "sh", harness.program("workload_numbers"),
                   str(harness.cpus()[0]), str(FIRST), str(harness.cpus()[-1]), str(FIRST + 2000)]
        result = harness.trace("-e", EVENT, "-o", "json", "--", *command)
        self.check_ended(result)
        self.check_balance(result)
        self.check_no_loss(result)
        self.check_order(result.events)
        numbers = range(FIRST, FIRST + 4000)
        self.assertEqual(sorted(self.check_events(result.events, numbers)), list(numbers))


if __name__ == "__main__":
    harness.main()
