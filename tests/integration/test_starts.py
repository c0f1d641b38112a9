#!/usr/bin/env python3
"""Several who start the session of one name at once: one has it, the others say who, and take nothing of it away."""
import os
import pathlib
import subprocess

import harness

EVENT = "syscalls:sys_enter_getpgid"
AT_ONCE = 6
ROUNDS = harness.scaled(12)


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Starts(harness.TestCase):
    count = 0

    def name(self):
        Starts.count += 1
        return f"start-{os.getpid()}-{Starts.count}"

    def check_losers(self, losers):
        for loser in losers:
            self.check_ended(loser, 7)
            self.assertRegex(loser.err, r"process [1-9]\d*", "who has it is not told")

    def check_works(self, tracefan, name, *words):
        """The session that is left is whole: it traces."""
        command = [harness.program("workload_numbers"), str(harness.cpus()[0]), "7", "3"]
        result = harness.run([tracefan, "trace", "--session", name, *words, "-o", "json", "-w", f"{self.folder}/out",
                              "-e", f"tracepoint:{EVENT} if pid >= 7 && pid < 10", "--", *command])
        self.check_ended(result)
        result.out = pathlib.Path(self.folder, "out").read_text()
        self.check_no_loss(result)
        self.assertEqual([e["args"]["pid"] for e in result.events], [7, 8, 9])

    def test_by_the_command(self):
        tracefan = harness.program("tracefan")
        for _ in range(ROUNDS):
            name = self.name()
            self.addCleanup(harness.run, [tracefan, "session", "stop", name])
            starts = [harness.Process([tracefan, "session", "start", name]) for _ in range(AT_ONCE)]
            results = [s.wait() for s in starts]
            winners = [r for r in results if r.status == 0]
            self.assertEqual(len(winners), 1, [(r.status, r.err) for r in results])
            self.check_losers(r for r in results if r.status != 0)
            self.check_works(tracefan, name)
            self.assertTrue((harness.SESSIONS / f"{name}.log").exists(), "the winner's log is gone")
            self.check_ended(harness.run([tracefan, "session", "stop", name]))
            self.assertEqual(self._leftovers.settle(), [])

    def readers(self, name, directories):
        """The one that is ready, and what the others said."""
        notify = harness.Notify(self.folder, f"{name}.notify")
        self.addCleanup(notify.close)
        readers = [harness.Process([harness.program("tracefan-reader"), "--session", name, "--directory", d],
                                   env={"NOTIFY_SOCKET": str(notify.path)}) for d in directories]
        losers = []
        while len(readers) > 1:
            ended = [r for r in readers if not r.running()]
            losers += [r.wait() for r in ended]
            readers = [r for r in readers if r not in ended]
            if not ended:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        self.assertEqual(len(readers), 1, [(r.status, r.err) for r in losers])
        notify.wait_ready(readers[0])
        return readers[0], losers

    def check_readers(self, directories):
        name = self.name()
        reader, losers = self.readers(name, directories)
        self.check_losers(losers)
        place = reader.words[-1]
        router = harness.Process([harness.program("tracefan-router"), "--session", name, "--directory", place])
        self.check_works(harness.program("tracefan"), name, "--directory", place)
        reader.signal(15)
        self.check_ended(reader.wait())
        self.check_ended(router.wait())
        self.assertEqual(self._leftovers.settle(), [])

    def test_by_the_reader(self):
        for _ in range(ROUNDS):
            self.check_readers([str(harness.SESSIONS)] * AT_ONCE)

    def test_in_several_directories(self):
        """They share nothing but the instance in tracefs."""
        places = [pathlib.Path(self.folder, f"d{i}") for i in range(AT_ONCE)]
        for _ in range(ROUNDS):
            self.check_readers([str(p) for p in places])
            for place in places:
                self.assertEqual(list(place.iterdir()) if place.exists() else [], [])


if __name__ == "__main__":
    harness.main()
