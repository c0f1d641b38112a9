#!/usr/bin/env python3
"""However a run ends, it says its summary and nothing of it is left: no instance, probe, socket, folder, process."""
import contextlib
import os
import pathlib
import resource
import signal
import time

import harness

# Only this test's own calls, so that nobody else's fill the pipe that it reads at the end.
NUMBER = (1 << 29) + os.getpid()
EVENT = f"tracepoint:syscalls:sys_enter_getpgid if pid >= {NUMBER} && pid < {NUMBER + 100}"


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")
    harness.require_file("uprobe_events", "uprobes")


class Endings(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.workload = harness.program("workload_calls")
        self.uprobe = f"h=uprobe:{self.workload}:workload_call"
        self.gate = harness.Gate(self.folder)
        self.addCleanup(self.gate.close)

    def start(self, *words):
        """A private session with a probe of each kind, live and without a command of its own to end it."""
        events = pathlib.Path(self.folder, "events")
        os.mkfifo(events)
        # Both ends: neither open waits for the other side.
        self.events = os.open(events, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.addCleanup(os.close, self.events)
        process = harness.Process([harness.program("tracefan"), "trace", "-e", EVENT, "-e", self.uprobe, "-o", "json",
                                   "-w", events, *words])
        self.wait_live(process)
        return process

    def wait_live(self, process):
        """Until an event has come: makes some, as a run without a command doesn't say when it is live."""
        deadline = time.monotonic() + harness.PATIENCE
        while not harness.select.select([self.events], [], [], 0.05)[0]:
            self.assertTrue(process.running(), process.err if process.running() else process.wait(1).err)
            self.assertLess(time.monotonic(), deadline, "no event came")
            with contextlib.suppress(ProcessLookupError):
                os.getpgid(NUMBER)

    def records(self):
        """What has been written to the events' pipe."""
        chunks = []
        try:
            while True:
                chunks.append(os.read(self.events, 1 << 16))
        except BlockingIOError:
            return harness.read_records(b"".join(chunks).decode())

    def daemon(self, process, name):
        """The pid of a private session's daemon."""
        parent_of = harness.parents()
        found = [pid for pid in parent_of if harness.descends(pid, process.pid, parent_of)
                 and harness.read_lines(pathlib.Path("/proc", str(pid), "comm")) == [name]]
        self.assertEqual(len(found), 1, name)
        return found[0]

    def check_summary(self):
        self.assertEqual(self.records()[-1]["kind"], "summary")

    def test_count(self):
        process = harness.Process([harness.program("tracefan"), "trace", "-e", EVENT, "-e", self.uprobe, "-o", "json",
                                   "-n", 5, "--", harness.program("workload_numbers"), str(harness.cpus()[0]), NUMBER, 100])
        result = process.wait()
        self.check_ended(result)
        self.assertEqual(len(result.events), 5)

    def test_duration(self):
        result = harness.trace("-e", EVENT, "-e", self.uprobe, "-o", "json", "-d", 1)
        self.check_ended(result)
        self.check_balance(result)

    def test_interrupt(self):
        process = self.start()
        process.signal(signal.SIGINT)
        self.check_ended(process.wait())
        self.check_summary()

    def test_terminate(self):
        process = self.start()
        process.signal(signal.SIGTERM)
        self.check_ended(process.wait())
        self.check_summary()

    def test_terminate_the_reader(self):
        process = self.start()
        os.kill(self.daemon(process, "tracefan-reader"), signal.SIGTERM)
        process.wait()
        self.check_summary()

    def test_terminate_the_router(self):
        process = self.start()
        os.kill(self.daemon(process, "tracefan-router"), signal.SIGTERM)
        process.wait()
        self.check_summary()

    def test_kill_the_command_line(self):
        """Nobody is left to clean up but the daemons themselves."""
        process = self.start()
        process.kill()

    def test_a_closed_pipe(self):
        """As with `tracefan trace ... | head -n 1`."""
        reading, writing = os.pipe()
        process = harness.Process([harness.program("tracefan"), "trace", "-e", EVENT, "-e", self.uprobe, "-o", "json", "--",
                                   *self.gate.words], stdout=writing)
        os.close(writing)
        self.gate.wait(process)
        os.close(reading)
        # The command is still waiting at the gate: nothing but the pipe can end the session.
        self.assertEqual(self._leftovers.settle(), [])
        self.gate.open()
        self.check_ended(process.wait())

    def test_daemons_that_stand_still(self):
        """A daemon that neither answers nor ends is waited for, then killed, and what it held is removed."""
        stopped = []
        for name in "tracefan-reader", "tracefan-router":
            gate = harness.Gate(self.folder, name)
            self.addCleanup(gate.close)
            process = harness.Process([harness.program("tracefan"), "trace", "-e", EVENT, "-e", self.uprobe, "-q", "--",
                                       *gate.words])
            gate.wait(process)
            os.kill(self.daemon(process, name), signal.SIGSTOP)
            gate.open()
            stopped.append((name, process))
        for name, process in stopped:
            result = process.wait()
            self.assertNotEqual(result.status, 0, name)
            self.assertRegex(result.err, "hang or were stopped", name)
            self.assertRegex(result.err, f"{name} was killed by signal 9", name)

    def test_a_limit_on_the_size_of_files(self):
        """Each file reaches the limit of this process and its daemons: an error, an orderly end, and not a signal's death."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))
        # It goes on until its input ends, and no faster than what it brings is written.
        workload = [harness.program("workload_paced"), str(harness.cpus()[0]), str(NUMBER), str(NUMBER)]
        probe = f"tracepoint:syscalls:sys_enter_getpgid if pid >= {NUMBER} && pid < {NUMBER + 100000}"
        for verb, option in ("trace", "-w"), ("record", "-o"):
            file = pathlib.Path(self.folder, verb)
            going, hold = os.pipe()
            os.write(hold, b"\n")
            process = harness.Process([harness.program("tracefan"), verb, "--ring", "1M", "-e", probe, option, file, "--", *workload],
                                      stdin=going, preexec_fn=limit)
            os.close(going)
            result = process.wait()
            os.close(hold)
            self.check_ended(result, 1)
            self.assertIn("File too large", result.err)
            self.assertNotIn("killed", result.err)
            # Of lines, those that found room in whole.
            written, least = file.read_bytes(), (2 << 20) - (1 << 10) if verb == "trace" else 2 << 20
            self.assertTrue(least <= len(written) <= 2 << 20, len(written))
            self.assertTrue(verb == "record" or written.endswith(b"\n"))
        # So small that the daemons can't share memory.
        result = harness.run([harness.program("tracefan"), "trace", "-e", probe, "--", "true"],
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
        self.check_ended(result, 1)
        self.assertIn("File too large", result.err)

    def test_the_command_s_status(self):
        result = harness.trace("-e", EVENT, "-q", "--", "sh", "-c", "exit 42")
        self.check_ended(result, 42)


if __name__ == "__main__":
    harness.main()
