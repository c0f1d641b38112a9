#!/usr/bin/env python3
"""Sessions whose daemons are dead or stopped, and commands that are ended before they began: each says so, and how to mend it,
and what can be cleaned up is."""
import contextlib
import json
import os
import pathlib
import re
import signal
import time
import unittest

import harness

GETPGID = "syscalls:sys_enter_getpgid"
# The account of a session that nobody can be asked for.
UNKNOWN = dict.fromkeys(("committed", "decoded", "undecodable", "lost_kernel", "dropped"))


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Sessions(harness.TestCase):
    """Sessions in a directory of their own, so that nobody else's are among them."""

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.folder, "sessions")
        self.tracefan = harness.staged(self.folder, "tracefan")

    def command(self, *words, **more):
        return harness.run([harness.program("tracefan") if not more else self.tracefan, *words, "--directory", self.directory], **more)

    def start(self, name):
        name = f"test-{os.getpid()}-{name}"
        self.check_ended(self.command("session", "start", name))
        self.addCleanup(self.remove, name)
        return name

    def remove(self, name):
        if (self.directory / name).exists():
            self.check_ended(self.command("session", "stop", name))

    def status(self, *words, status=0, **more):
        result = self.command("status", "-o", "json", *words, **more)
        self.check_ended(result, status)
        return {r["session"]: r for r in result.records if r["kind"] == "session"}

    def pids(self, name):
        found = self.status("--session", name)[name]
        return found["reader_pid"], found["router_pid"]

    def state(self, pid):
        """X: it is gone."""
        lines = harness.read_lines(pathlib.Path("/proc", str(pid), "stat"))
        return lines[0].rpartition(")")[2].split()[0] if lines else "X"

    def send(self, pid, number, states):
        os.kill(pid, number)
        self.await_true(lambda: self.state(pid) in states, f"process {pid} is not in {states}")

    def kill(self, pid):
        self.send(pid, signal.SIGKILL, "ZX")

    def await_true(self, condition, what):
        """Nobody tells, so this looks again."""
        deadline = time.monotonic() + harness.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline, what() if callable(what) else what)
            time.sleep(0.01)

    def consumer(self, name, *words):
        return harness.Process([harness.program("tracefan"), "trace", "--session", name, "--directory", self.directory,
                                "-o", "json", *words])

    def marks(self, name):
        """What the kernel has of a session."""
        mark = re.sub("[^A-Za-z0-9]", "_", name)
        probes = [line for file in ("uprobe_events", "kprobe_events") for line in harness.read_lines(harness.TRACEFS / file)
                  if mark in line]
        return probes + [d for d in os.listdir(harness.TRACEFS / "instances") if name in d]


class Stopped(Sessions):
    def test_who_does_not_answer_is_named(self):
        one, other = self.start("one"), self.start("other")
        for index, daemon in enumerate(("reader", "router")):
            pid = self.pids(one)[index]
            self.send(pid, signal.SIGSTOP, "T")
            try:
                found = self.status(status=1)
                text = self.command("status").out
            finally:
                os.kill(pid, signal.SIGCONT)
            self.assertEqual({k: found[one][k] for k in ("state", "silent", "silent_pid")},
                             {"state": "silent", "silent": daemon, "silent_pid": pid})
            self.assertIn(f"its {daemon}, process {pid}, does not answer", text)
            self.assertEqual(found[other]["state"], "running")
            self.assertEqual(found[other]["ledger"]["committed"], found[other]["ledger"]["decoded"])


class Dead(Sessions):
    def check_mend(self, name, text):
        self.assertIn(f'session "{name}"\'s reader is gone; start it again with: tracefan session start {name}', text)

    def test_a_dead_reader(self):
        name, program = self.start("dead"), harness.staged(self.folder, "workload_calls")
        attached = [self.consumer(name, "-e", f"tracepoint:{GETPGID}", "-e", f"c=uprobe:{program}:main") for _ in range(2)]
        for process in attached:
            self.await_true(lambda: os.getpgid(0) and GETPGID in process.out, lambda: process.err)
        reader, router = self.pids(name)
        self.assertTrue(self.marks(name))
        self.kill(reader)
        for process in attached:
            self.await_true(lambda: "reader is gone" in process.err, lambda: process.err)
            self.check_mend(name, process.err)
        # It is told everywhere, and keeps nobody from ending.
        self.assertEqual(self.command("session", "list").out, f"{name}: its reader is dead\n")
        self.assertEqual(self.status()[name]["state"], "reader-dead")
        self.assertEqual(self.status("--session", name, status=4)[name]["state"], "reader-dead")
        attached[0].signal(signal.SIGINT)
        result = attached[0].wait()
        self.check_ended(result, 1)
        self.assertEqual(result.summary["session"], UNKNOWN)
        probe = result.summary["probes"][GETPGID]
        self.assertEqual(probe["decoded"], probe["delivered"] + probe["filtered"] + probe["lost_ring"])
        self.assertEqual((probe["shown"], probe["lost_ring"]), (probe["delivered"], 0))
        late = self.consumer(name, "-e", f"tracepoint:{GETPGID}", "-d", "1").wait()
        self.check_ended(late, 4)
        self.check_mend(name, late.err)
        late = self.consumer(name, "-e", f"tracepoint:{GETPGID}")
        self.await_true(lambda: "reader is gone" in late.err, lambda: late.err)
        late.signal(signal.SIGTERM)
        result = late.wait()
        self.check_ended(result)
        self.assertEqual(result.records, [{"kind": "summary", "session": UNKNOWN, "probes": {}}])
        # The other one is told of the end.
        self.check_ended(self.command("session", "stop", name))
        self.assertEqual([r["reason"] for r in attached[1].wait().records if r["kind"] == "end"], ["stopped"])
        self.assertIn(self.state(router), "ZX")
        self.assertEqual((self.marks(name), os.listdir(self.directory)), ([], []))

    def test_both_dead(self):
        dead, alive = self.start("dead"), self.start("alive")
        for pid in self.pids(dead):
            self.kill(pid)
        found = self.status()
        self.assertEqual((found[dead]["state"], found[alive]["state"]), ("dead", "running"))
        self.assertIn(f"it is dead; start it again with: tracefan session start {dead}", self.command("status").out)
        self.status("--session", dead, status=4)
        self.assertEqual(self.command("session", "list").out, f"{alive}\n{dead}: its reader is dead\n")
        self.check_ended(self.command("session", "stop", dead))
        self.assertEqual(self.marks(dead), [])
        self.assertEqual(sorted(os.listdir(self.directory)), sorted([alive, f"{alive}.log"]))

    def test_others_sessions_are_counted(self):
        names = [self.start("one"), self.start("two")]
        for name in names:
            for path in (self.directory / name).iterdir():
                path.chmod(0o600)
        result = self.command("status", **harness.as_user(harness.USER_A))
        self.check_ended(result)
        self.assertEqual(result.out, "")
        self.assertEqual(result.err, "tracefan: not shown: 2 sessions that this user may not attach to\n")
        result = self.command("status", "--session", names[0], **harness.as_user(harness.USER_A))
        self.check_ended(result, 3)


class Early(Sessions):
    """A command of its own session."""

    def reader(self, process):
        """The reader that it has started."""
        def children():
            return [pid for pid, parent in harness.parents().items() if parent == process.pid and "tracefan-reader" in
                    "".join(harness.read_lines(pathlib.Path("/proc", str(pid), "cmdline")))]
        self.await_true(lambda: children() or not process.running(), "no reader is started")
        return children()[0]

    def test_an_interrupt_before_it_began(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = harness.Process([harness.program("tracefan"), "trace", "-e", f"tracepoint:{GETPGID}", "-o", "json"])
            self.reader(process)
            process.signal(number)
            result = process.wait()
            self.check_ended(result)
            self.assertEqual(result.summary["kind"], "summary")
            # Of older kernels and of a request that came behind the end, notes; nothing of an error of the command's.
            self.assertEqual([line for line in result.err.splitlines() if line.startswith("tracefan:")], [])

    def test_a_watch_whose_reader_is_killed(self):
        for live in (False, True):
            process = harness.Process([harness.program("tracefan"), "watch", "exec", "-o", "json"])
            reader = self.reader(process)
            if live:
                self.await_true(lambda: harness.run(["true"]).status == 0 and '"kind"' in process.out, lambda: process.err)
            with contextlib.suppress(ProcessLookupError):
                os.kill(reader, signal.SIGKILL)
            result = process.wait()
            self.check_ended(result, 1)
            self.assertIn("tracefan-reader was killed by signal 9", result.err)


if __name__ == "__main__":
    harness.main()
