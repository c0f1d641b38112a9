#!/usr/bin/env python3
"""What users of neighbouring tools reported of probes (docs/reports.md, part D): probes that could not be removed or
took others' with them, tracers that trace themselves, and other users of ftrace on the same machine."""
import contextlib
import os
import pathlib
import socket
import shutil
import subprocess
import threading
import time

import harness

WRITE = "syscalls:sys_enter_write"
# What belongs to everybody: only the list of probes may differ, and there only by lines of ours.
GLOBAL = ("tracing_on", "current_tracer", "set_event", "buffer_size_kb", "buffer_percent", "trace_clock", "trace_options",
          "tracing_cpumask", "set_event_pid", "set_event_notrace_pid", "events/enable")


def setUpModule():
    harness.require_file("uprobe_events", "uprobes")
    harness.require_event("syscalls", "sys_enter_write")


class Probes(harness.TestCase):
    def start(self, *words):
        """A live trace that the test ends by opening its gate."""
        gate = harness.Gate(self.folder, f"gate{len(list(pathlib.Path(self.folder).iterdir()))}")
        self.addCleanup(gate.close)
        process = harness.Process([harness.program("tracefan"), "trace", *words, "--", *gate.words])
        gate.wait(process)
        return process, gate

    def end(self, process, gate):
        gate.open()
        return process.wait()

    @contextlib.contextmanager
    def instance(self, name):
        """Somebody else's instance."""
        path = harness.TRACEFS / "instances" / f"foreign-{os.getpid()}-{name}"
        path.mkdir()
        try:
            yield path
        finally:
            (path / "events" / "enable").write_text("0")
            path.rmdir()


class Removal(Probes):
    def test_a_probe_that_is_enabled_elsewhere(self):
        """The kernel keeps it, and whose instance holds it is said. Once that lets go, it goes by --remove."""
        workload = harness.program("workload_calls")
        session = harness.Session(self.folder)
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        place = f"uprobe:{workload}:workload_call"
        process = harness.Process([session.tracefan, "trace", "--session", session.name, "-e", place, "-o", "json", "--",
                                   *gate.words])
        gate.wait(process)
        # Not another session's, or one that was left behind.
        own = f":tracefan_{session.name.replace('-', '_')}_"
        name = next(l for l in harness.read_lines(harness.TRACEFS / "uprobe_events") if own in l)
        group, _, event = name.split()[0].partition(":")[2].partition("/")
        with self.instance("holder") as holder:
            enable = holder / "events" / group / event / "enable"
            enable.write_text("1")
            gate.open()
            self.check_ended(process.wait())
            # The session serves others meanwhile, also with the same definition.
            again = harness.run([session.tracefan, "trace", "--session", session.name, "-e", place, "-o", "json", "--",
                                 workload, "3"])
            self.check_ended(again)
            self.assertEqual(len(again.of("workload_call")), 3)
            self.assertEqual(enable.read_text()[0], "1", "another's instance was touched")
            session.stop()
            self.assertRegex(session.reader.err, rf"{event} can't be removed: .*enabled in instance {holder.name}")
            self.assertIn(event, (harness.TRACEFS / "uprobe_events").read_text())
            enable.write_text("0")
            self.check_ended(harness.run([harness.program("tracefan-reader"), "--session", session.name, "--remove"]))
            self.assertNotIn(event, (harness.TRACEFS / "uprobe_events").read_text())

    def test_hundreds_of_probes(self):
        """Come and go, and nobody gives up on whoever removes them: the kernel takes its time for each, and the
        requests are more than a socket holds."""
        workload = harness.program("workload_calls")
        count = harness.scaled(200)
        # Definitions that differ: equal ones would share one probe.
        probes = [w for i in range(count)
                  for w in ("-e", f"p{i}=uprobe:{workload}:workload_call n{i}={harness.argument(1)}:u64")]
        result = harness.trace(*probes, "-o", "json", "--", workload, "2")
        self.check_ended(result)
        self.check_balance(result)
        self.assertNotIn("warning", result.err)
        self.assertEqual(len(result.events), 2 * count)
        self.assertEqual({p["delivered"] for p in result.summary["probes"].values()}, {2})


class Returns(Probes):
    """A return probe keeps a note for each call that is under way. Threads that wait in accept(2) hold theirs, and the
    kernel's usual number of notes, ten or two per CPU, is soon used up."""

    WAITING = 25

    def accept(self, probe):
        """Traces the returns of as many calls as wait at a time."""
        harness.require_file("kprobe_events", "kprobes")
        harness.up_loopback()
        with socket.create_server(("127.0.0.1", 0), backlog=self.WAITING) as server:
            process, gate = self.start("-e", f"a=kretprobe:{probe} err=$retval:x64", "-o", "json")
            waiting = [threading.Thread(target=lambda: server.accept()[0].close()) for _ in range(self.WAITING)]
            for thread in waiting:
                thread.start()
            self.wait_for_sleepers("inet_csk_accept")
            for _ in waiting:
                socket.create_connection(server.getsockname()).close()
            for thread in waiting:
                thread.join()
        result = self.end(process, gate)
        self.check_ended(result)
        self.check_balance(result)
        return len(result.of("a")), result.summary["probes"]["a"]["missed"]

    def wait_for_sleepers(self, function):
        """There is nothing to be woken by when another thread falls asleep, so this looks again."""
        deadline = time.monotonic() + harness.PATIENCE
        while True:
            stacks = [p.read_text() for p in pathlib.Path("/proc/self/task").glob("*/stack")]
            if sum(function in stack for stack in stacks) == self.WAITING:
                return
            self.assertLess(time.monotonic(), deadline, "not all threads wait")
            time.sleep(0.01)

    def test_as_many_as_wait(self):
        self.assertEqual(self.accept("inet_csk_accept"), (self.WAITING, 0))

    def test_those_without_a_note_are_counted(self):
        events, missed = self.accept("inet_csk_accept+maxactive=5")
        self.assertEqual(events + missed, self.WAITING)
        self.assertGreater(missed, 0)


class Neighbours(Probes):
    def globals(self):
        state = {name: (harness.TRACEFS / name).read_text() for name in GLOBAL if (harness.TRACEFS / name).exists()}
        state["probes"] = [l for l in harness.read_lines(harness.TRACEFS / "uprobe_events") if "/tracefan" not in l
                           and ":tracefan_" not in l]
        return state

    def test_nothing_of_others_changes(self):
        """With another's instance that traces the same event, and another's probe enabled in it."""
        if not shutil.which("nm") or not shutil.which("readelf"):
            self.skipTest("nm and readelf are not installed (package binutils)")
        workload = harness.program("workload_calls")
        foreign = f"foreign_{os.getpid()}/neighbour"
        self.command(f"p:{foreign} {workload}:{self.offset(workload):#x}")
        try:
            with self.instance("neighbour") as instance:
                for event in (foreign, WRITE.replace(":", "/")):
                    (instance / "events" / event / "enable").write_text("1")
                before = self.globals()
                process, gate = self.start("-e", f"tracepoint:{WRITE}", "-e", f"uprobe:{workload}:workload_call", "-o", "json")
                during = self.globals()
                subprocess.run([workload, "5"], check=True)
                result = self.end(process, gate)
                self.check_ended(result)
                self.assertEqual(during, before)
                self.assertEqual(self.globals(), before)
                self.assertEqual(len(result.of("workload_call")), 5)
                self.assertEqual((instance / "trace").read_text().count(" neighbour: "), 5)
        finally:
            self.command(f"-:{foreign}")

    @staticmethod
    def command(line):
        """Python's own append seeks, which the file refuses."""
        fd = os.open(harness.TRACEFS / "uprobe_events", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(fd, line.encode() + b"\n")
        finally:
            os.close(fd)

    @staticmethod
    def offset(program):
        """Of the function in the file: its address less what its segment has more than its place in the file."""
        nm = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
        address = next(int(l.split()[0], 16) for l in nm.splitlines() if l.endswith(" workload_call"))
        headers = subprocess.run(["readelf", "-lW", program], check=True, capture_output=True, text=True).stdout
        for line in headers.splitlines():
            words = line.split()
            if words[:1] == ["LOAD"] and int(words[2], 16) <= address < int(words[2], 16) + int(words[4], 16):
                return address - int(words[2], 16) + int(words[1], 16)
        raise AssertionError("no segment has the function")


class Itself(Probes):
    """A trace of write(2) writes what it shows."""

    def pids(self, process):
        parent_of = harness.parents()
        return {process.pid} | {pid for pid in parent_of if harness.descends(pid, process.pid, parent_of) and
                                "tracefan" in harness.read_lines(pathlib.Path("/proc", str(pid), "cmdline"))[0].split("\0")[0]}

    def writes(self, *words):
        events = pathlib.Path(self.folder, f"events{len(words)}")
        process, gate = self.start("-e", f"tracepoint:{WRITE}", "-o", "json", "-w", events, "--interval", "1", *words)
        own = self.pids(process)
        self.assertEqual(len(own), 4, "the command, its two daemons and the reader's helper")
        # Written by somebody else, each into another batch.
        a, b = socket.socketpair()
        for i in range(50):
            os.write(a.fileno(), b"x")
            os.sched_yield()
        a.close()
        b.close()
        result = self.end(process, gate)
        result.out = events.read_text()
        self.check_ended(result)
        self.check_balance(result)
        by_test = [e for e in result.events if e["pid"] == os.getpid() and e["args"]["count"] == 1]
        self.assertGreaterEqual(len(by_test), 50)
        return [e for e in result.events if e["pid"] in own]

    def test_left_out(self):
        self.assertEqual(self.writes(), [])

    def test_on_request(self):
        self.assertNotEqual(self.writes("--include-self"), [])


if __name__ == "__main__":
    harness.main()
