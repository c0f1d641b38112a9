#!/usr/bin/env python3
"""The kernel hangs in a write to a control file, or in a read of one, and events go on to come: in place of an event's `filter`
there is a pipe that is full, and stays so until the test reads from it; in place of its `format` one that is empty."""
import contextlib
import ctypes
import os
import pathlib
import platform
import stat
import subprocess
import time
import unittest

import harness

FIRST = (1 << 27) + os.getpid() % 1024 * 1000
COUNT = 500
OTHER = "syscalls/sys_enter_getsid"


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


def mount(source, target):
    libc, MS_BIND = ctypes.CDLL(None, use_errno=True), 4096
    if libc.mount(str(source).encode(), str(target).encode(), None, MS_BIND, None) < 0:
        raise OSError(ctypes.get_errno(), "mount", str(target))


def unmount(target):
    libc, MNT_DETACH = ctypes.CDLL(None, use_errno=True), 2
    libc.umount2(str(target).encode(), MNT_DETACH)


class Hanging(harness.TestCase):
    words = ()

    def block(self, session, name):
        """Returns the pipe's other end."""
        fifo = pathlib.Path(self.folder, name)
        os.mkfifo(fifo)
        fifo.chmod(0o666)
        end = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        try:
            while name == "filter" and os.write(end, bytes(4096)):
                pass
        except BlockingIOError:
            pass
        target = session.instance / "events" / OTHER / name
        mount(fifo, target)
        self.addCleanup(unmount, target)
        return end, target

    def wait_lines(self, file, count):
        """Nobody tells when a file grows, so this looks again."""
        deadline = time.monotonic() + harness.PATIENCE
        while file.read_text().count('"event"') < count:
            self.assertLess(time.monotonic(), deadline, "events don't come while the kernel hangs")
            time.sleep(0.02)

    def hang(self, name="filter"):
        """A session whose reader hangs in the kernel for a consumer; returns it, another consumer and the one, each with its
        gate, the pipe and where it is."""
        session = harness.Session(self.folder, *self.words)
        self.file = pathlib.Path(self.folder, "events")
        gate, other = harness.Gate(self.folder), harness.Gate(self.folder, "other")
        self.addCleanup(gate.close)
        self.addCleanup(other.close)
        consumer = session.trace("-e", f"tracepoint:syscalls:sys_enter_getpgid if pid >= {FIRST} && pid < {FIRST + COUNT}",
                                 "-o", "json", "-w", self.file, gate=gate)
        gate.wait(consumer)
        end, target = self.block(session, name)
        late = session.trace("-e", "tracepoint:syscalls:sys_enter_getsid if pid > 0", "-o", "json", gate=other)
        # The reader is in the write, or the read, once it has the pipe.
        deadline = time.monotonic() + harness.PATIENCE
        while not self.has_pipe(session):
            self.assertLess(time.monotonic(), deadline, f"{name} is not opened")
            time.sleep(0.01)
        return session, (consumer, gate), (late, other), (end, target)

    def check_hangs(self, session):
        self.assertTrue(self.has_pipe(session), "it does not hang any more")

    @staticmethod
    def release(end, target):
        """The kernel is done."""
        unmount(target)
        if target.name == "filter":
            with contextlib.suppress(BlockingIOError):
                while os.read(end, 65536):
                    pass
        else:
            os.write(end, target.read_bytes())
        os.close(end)

    def test_events_go_on(self):
        self.check_events_go_on("filter")

    def test_events_go_on_while_it_reads(self):
        self.check_events_go_on("format")

    def check_events_go_on(self, name):
        session, (consumer, gate), (late, other), pipe = self.hang(name)
        subprocess.run([harness.program("workload_numbers"), str(harness.cpus()[0]), str(FIRST), str(COUNT)], check=True)
        self.wait_lines(self.file, COUNT)
        self.check_hangs(session)
        # Who waited goes on.
        self.release(*pipe)
        other.wait(late)
        other.open()
        self.check_ended(late.wait())
        gate.open()
        self.check_ended(consumer.wait())
        self.assertEqual(session.stop(), (0, 0))

    @unittest.skipUnless(os.environ.get("TRACEFAN_KILLS") == "full", "takes half a minute: with TRACEFAN_KILLS=full")
    def test_the_session_is_not_blamed(self):
        """Longer than anybody waits for a session that is not heard of: one waits for its probe, another for its end."""
        session, (consumer, gate), (late, other), pipe = self.hang()
        gate.open()
        until = time.monotonic() + 25
        while time.monotonic() < until:
            self.assertTrue(consumer.running() and late.running(), (consumer.err, late.err))
            time.sleep(0.1)
        self.check_hangs(session)
        self.release(*pipe)
        other.wait(late)
        other.open()
        self.check_ended(late.wait())
        self.check_ended(consumer.wait())
        self.assertEqual(session.stop(), (0, 0))

    def has_pipe(self, session):
        """Whether the reader has it open: for writing, or for reading."""
        for f in pathlib.Path(f"/proc/{session.reader.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if pathlib.Path(os.readlink(f)).name in ("filter", "format") and stat.S_ISFIFO(f.stat().st_mode):
                    return True
        return False


class HangingText(Hanging):
    words = ("--source", "text")


class Worker(harness.TestCase):
    """Who writes to control files for the reader, a thread of the kernel's, goes some seconds after the last write. One that
    stayed would be woken every few seconds for ever."""

    def test_it_goes(self):
        if tuple(map(int, platform.release().split("-")[0].split(".")[:2])) < (6, 4):
            self.skipTest(f"Linux {platform.release()} keeps idle workers")
        session = harness.Session(self.folder)
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        consumer = session.trace("-e", "tracepoint:syscalls:sys_enter_getpgid", "-o", "json", gate=gate)
        gate.wait(consumer)
        threads = pathlib.Path(f"/proc/{session.reader.pid}/task")
        deadline = time.monotonic() + harness.PATIENCE
        while len(list(threads.iterdir())) > 1:
            self.assertLess(time.monotonic(), deadline, "the ring's worker stays")
            time.sleep(0.1)
        gate.open()
        self.check_ended(consumer.wait())
        self.assertEqual(session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
