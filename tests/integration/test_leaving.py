#!/usr/bin/env python3
"""Consumers that leave while the reader, who was handed their sockets to ask the kernel who they are, can't let
them go."""
import contextlib
import fcntl
import os
import pathlib
import re
import signal
import struct
import termios
import time

import harness

CALL = "syscalls:sys_enter_sched_get_priority_max"


def descriptors(pid):
    return {int(n) for n in os.listdir(f"/proc/{pid}/fd")}


def of_state(pid):
    """The descriptors with what the helper read of processes, at the session's start above all: the router has them until the
    reader has said which place in the stream that is of."""
    found = set()
    for n in descriptors(pid):
        with contextlib.suppress(FileNotFoundError):
            if re.match(r"/memfd:tracefan-(table|details)\b", os.readlink(f"/proc/{pid}/fd/{n}")):
                found.add(n)
    return found


def watched(pid):
    """The descriptors that a process's epoll names in its events, those closed meanwhile included."""
    for info in pathlib.Path("/proc", str(pid), "fdinfo").iterdir():
        found = {int(n) for n in re.findall(r"^tfd:\s*(\d+)", info.read_text(), re.M)}
        if found:
            return found
    return set()


def unread(pipe):
    """The bytes in a pipe."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def state(pid):
    return pathlib.Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]


class Leaving(harness.TestCase):
    def setUp(self):
        harness.require_tracefs()
        super().setUp()

    def wait_closed(self, pid, before):
        """A process can't be waited for by its descriptors, so this looks again."""
        deadline = time.monotonic() + harness.PATIENCE
        while descriptors(pid) - before - of_state(pid):
            self.assertLess(time.monotonic(), deadline, "the router keeps the descriptors of consumers that left")
            time.sleep(0.02)

    def test_while_the_reader_stands_still(self):
        session = harness.Session(self.folder)
        self.addCleanup(session.stop)
        router = session.router.pid
        before = descriptors(router)
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        consumer = session.trace("-e", "tracepoint:sched:sched_process_exit", gate=gate)
        gate.wait(consumer)
        session.reader.signal(signal.SIGSTOP)
        try:
            consumer.kill()
            gate.open()
            self.wait_closed(router, before)
            self.assertLessEqual(watched(router), descriptors(router))
        finally:
            session.reader.signal(signal.SIGCONT)

    def talker(self):
        talker = harness.Talker([self.switching, self.session.name, f"tracepoint:{CALL}"],
                                **harness.as_user(harness.USER_A, self.session.group.gr_gid))
        self.addCleanup(talker.kill)
        self.assertEqual(talker.hear(), "created", talker.err)
        return talker

    def switch(self, talker, expected):
        talker.tell()
        self.assertEqual(talker.hear(), expected, talker.err)

    def leave_amid_switching(self, enabled):
        """A consumer that asked to switch and is killed before the reader, which stands still then, has taken notice."""
        before = descriptors(self.session.router.pid)
        leaver = self.talker()
        if enabled:
            self.switch(leaver, "enabled")
        self.session.reader.signal(signal.SIGSTOP)
        leaver.tell()
        # It has asked when it took the line and sleeps again: there is nothing else to wait for than the answer.
        deadline = time.monotonic() + harness.PATIENCE
        while unread(leaver.hold) or state(leaver.pid) != "S":
            self.assertLess(time.monotonic(), deadline, "the consumer asks for nothing")
            time.sleep(0.02)
        os.kill(leaver.pid, signal.SIGKILL)
        self.wait_closed(self.session.router.pid, before)

    def start_shared(self):
        """A session in which one consumer has an event enabled, and another may want it later."""
        harness.require_event("syscalls", "sys_enter_sched_get_priority_max")
        self.switching = harness.staged(self.folder, "switching_consumer")
        self.session = harness.Session(self.folder)
        self.addCleanup(self.session.stop)
        self.gate = harness.Gate(self.folder)
        self.addCleanup(self.gate.close)
        self.keeper = self.session.trace("-e", f"tracepoint:{CALL}", "-o", "json", gate=self.gate)
        self.gate.wait(self.keeper)
        self.other = self.talker()
        self.enable = self.session.instance / "events" / CALL.replace(":", "/") / "enable"

    def check_shared(self):
        """The other one can have the event, and gives up its own share alone."""
        self.switch(self.other, "enabled")
        self.assertEqual(self.enable.read_text(), "1\n")
        self.switch(self.other, "disabled")
        self.assertEqual(self.enable.read_text(), "1\n", "another's event was switched off")

    def end_shared(self):
        os.sched_get_priority_max(os.SCHED_OTHER)
        self.gate.open()
        result = self.keeper.wait()
        self.check_ended(result)
        self.assertIn(os.getpid(), [e["pid"] for e in result.of(CALL)])
        # No share stays: with the last one who wanted it the event is off.
        deadline = time.monotonic() + harness.PATIENCE
        while self.enable.read_text() != "0\n":
            self.assertLess(time.monotonic(), deadline, "the event stays enabled for one who has left")
            time.sleep(0.02)

    def check_leaving(self, go_on):
        """By each way of switching; `go_on` is what becomes of the reader that stands still."""
        self.start_shared()
        for enabled in False, True:
            with self.subTest(enabled=enabled):
                self.leave_amid_switching(enabled)
                go_on()
                self.check_shared()
        self.end_shared()

    def take_over(self):
        self.session.reader.signal(signal.SIGKILL)
        self.session.reader.wait()
        self.session.reader = self.session._start("reader", "--group", self.session.group.gr_name)

    def test_while_it_switches(self):
        self.check_leaving(lambda: self.session.reader.signal(signal.SIGCONT))

    def test_while_it_switches_and_the_reader_dies(self):
        self.check_leaving(self.take_over)


if __name__ == "__main__":
    harness.main()
