#!/usr/bin/env python3
"""What the running daemons still may: read from /proc, where the kernel says it."""
import os
import pathlib

import harness

NOTHING = "0" * 16


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Confinement(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.session = harness.Session(self.folder)
        self.gate = harness.Gate(self.folder)
        self.addCleanup(self.gate.close)
        # With a consumer and an enabled probe, so that nothing is still to be opened.
        self.consumer = self.session.trace("-e", "tracepoint:syscalls:sys_enter_getpgid", "-q", gate=self.gate)
        self.gate.wait(self.consumer)

    def end(self):
        self.gate.open()
        self.check_ended(self.consumer.wait())
        self.assertEqual(self.session.stop(), (0, 0))

    @staticmethod
    def status(process):
        lines = harness.read_lines(pathlib.Path("/proc", str(process.pid), "status"))
        return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}

    @staticmethod
    def descriptors(process):
        """What each open descriptor is, standard ones aside."""
        folder = pathlib.Path("/proc", str(process.pid), "fd")
        return [os.readlink(folder / fd) for fd in os.listdir(folder) if int(fd) > 2]

    @staticmethod
    def threads(process):
        """The names of its threads but those that the kernel adds for io_uring."""
        folder = pathlib.Path("/proc", str(process.pid), "task")
        names = [line for task in os.listdir(folder) for line in harness.read_lines(folder / task / "comm")]
        return [name for name in names if not name.startswith("iou-")]

    def check_capabilities(self, process):
        status = self.status(process)
        for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertEqual(status[kind], [NOTHING], kind)
        self.assertEqual(status["NoNewPrivs"], ["1"])
        self.assertEqual(status["Seccomp"], ["2"])
        self.assertEqual(status["Groups"], [])
        self.assertEqual(len(self.threads(process)), 1)
        return status

    def test_the_reader(self):
        """uid 0, because tracefs looks at the owner of its files, and nothing else of root."""
        status = self.check_capabilities(self.session.reader)
        self.assertEqual(status["Uid"], ["0"] * 4)
        self.assertEqual(status["CapBnd"], [NOTHING])
        # Of tracefs, what is named after the session, and files that it only reads or that take probes.
        traced = {os.path.relpath(d, harness.TRACEFS) for d in self.descriptors(self.session.reader) if d.startswith(str(harness.TRACEFS))}
        foreign = {d for d in traced if d.startswith("instances/") and not d.startswith(f"instances/{self.session.instance.name}")}
        self.assertEqual(foreign, set())
        self.assertEqual({d for d in traced if d.startswith(("trace_pipe", "per_cpu", "tracing_on", "trace_marker"))}, set(),
                         "files of the top-level buffer")
        self.end()

    def test_the_router(self):
        """Nobody's uid, and no file at all: sockets, shared memory and what wakes it up."""
        status = self.check_capabilities(self.session.router)
        for kind in ("Uid", "Gid"):
            self.assertEqual(len(set(status[kind])), 1, kind)
            self.assertNotEqual(status[kind][0], "0", kind)
        files = [d for d in self.descriptors(self.session.router) if not d.startswith(("socket:", "anon_inode:", "/memfd:", "pipe:"))]
        self.assertEqual(files, [])
        self.end()

    def test_a_consumer(self):
        """Its rights stay its own: it has no file of tracefs, and can't open one."""
        self.assertEqual(self.status(self.consumer)["CapEff"], [NOTHING])
        files = [d for d in self.descriptors(self.consumer) if d.startswith(str(harness.TRACEFS))]
        self.assertEqual(files, [])
        self.end()


if __name__ == "__main__":
    harness.main()
