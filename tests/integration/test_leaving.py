#!/usr/bin/env python3
"""Consumers that leave while the reader, who was handed their sockets to ask the kernel who they are, can't let
them go."""
import contextlib
import os
import pathlib
import re
import signal
import time

import harness


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


if __name__ == "__main__":
    harness.main()
