#!/usr/bin/env python3
"""What users of neighbouring tools reported of reading and waking up (docs/reports.md, part A): events that came
late or never, twice, or to another reader."""
import os
import pathlib
import select
import subprocess

import harness

GETPGID = "tracepoint:syscalls:sys_enter_getpgid"


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")
    harness.require_file("uprobe_events", "uprobes")


class Waking(harness.TestCase):
    """A few events on CPUs where nothing else happens reach the output while the trace goes on: no buffer has to
    fill, nothing has to end."""

    def follow(self, *words):
        """(the process, the reading end of its events) of a trace that is live and stays so."""
        events = pathlib.Path(self.folder, "events")
        os.mkfifo(events)
        reading = os.open(events, os.O_RDWR | os.O_CLOEXEC)
        self.addCleanup(os.close, reading)
        self.gate = harness.Gate(self.folder)
        self.addCleanup(self.gate.close)
        process = harness.Process([harness.program("tracefan"), "trace", "-o", "json", "-w", events, *words, "--",
                                   *self.gate.words])
        self.gate.wait(process)
        return process, reading

    def next_event(self, reading):
        """The next line, for which this waits as long as for a program that hangs."""
        line = b""
        while not line.endswith(b"\n"):
            self.assertTrue(select.select([reading], [], [], harness.PATIENCE)[0], f"no event came after {line}")
            line += os.read(reading, 1)
        return harness.read_records(line.decode())[0]

    def check(self, source):
        workload = harness.program("workload_strings")
        process, reading = self.follow("-s", source, "-e",
                                       f"h=uprobe:{workload}:workload_string s=+0({harness.argument(2)}):string")
        for cpu in harness.cpus():
            # One, and then fewer than any batch: each is waited for before the next is made.
            for texts in (["one"], ["1", "2", "3"]):
                subprocess.run([workload, *texts], check=True, preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
                got = [self.next_event(reading) for _ in texts]
                self.assertEqual([(e["cpu"], e["args"]["s"]) for e in got], [(cpu, t) for t in texts])
        self.assertTrue(process.running())
        self.gate.open()
        self.check_ended(process.wait())
        self.assertEqual(self.next_event(reading)["kind"], "summary")

    def test_raw(self):
        self.check("raw")

    def test_text(self):
        self.check("text")


class Sharing(harness.TestCase):
    def test_the_holder_of_the_pipe_is_named(self):
        """Another program reads the pipe in the instance of a session that is to start: status 7, who it is, and
        no word of tracefs being absent."""
        for source in ("raw", "text"):
            name = f"test-{os.getpid()}-held-{source}"
            instance = harness.TRACEFS / "instances" / f"tracefan-{name}"
            instance.mkdir()
            holder = subprocess.Popen(["sleep", "1000"], stdin=open(instance / "trace_pipe"))
            try:
                result = harness.run([harness.program("tracefan-reader"), "--session", name, "--source", source])
            finally:
                holder.kill()
                holder.wait()
            self.check_ended(result, 7)
            self.assertIn(f"process {holder.pid} has", result.err)
            # Nobody holds it any more.
            self.check_ended(harness.run([harness.program("tracefan-reader"), "--session", name, "--remove"]))
            self.assertFalse(instance.exists())

    def test_two_observers_get_every_event_once(self):
        session = harness.Session(self.folder)
        workload = harness.program("workload_numbers")
        count, first = 1000, 1 << 29
        consumers = []
        for user in (harness.USER_A, harness.USER_B):
            gate = harness.Gate(self.folder, f"gate{user}")
            self.addCleanup(gate.close)
            process = session.trace("-e", GETPGID, "-o", "json", uid=user, gate=gate)
            gate.wait(process)
            consumers.append((process, gate))
        processes = [subprocess.Popen([workload, str(cpu), str(first + i * count), str(count)])
                     for i, cpu in enumerate(harness.cpus())]
        self.assertEqual([p.wait() for p in processes], [0] * len(processes))
        for process, gate in consumers:
            gate.open()
            result = process.wait()
            self.check_ended(result)
            self.check_no_loss(result)
            numbers = [e["args"]["pid"] for e in result.of("syscalls:sys_enter_getpgid")
                       if e["comm"] == "workload_number"]
            self.assertEqual(sorted(numbers), list(range(first, first + len(processes) * count)))
        self.assertEqual(session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
