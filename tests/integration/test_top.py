#!/usr/bin/env python3
"""tracefan top: the counts are those of a program whose calls are known, on a terminal and elsewhere."""
import os
import pathlib
import pty
import select
import subprocess
import time
import unittest

import harness

COUNT = 500


def setUpModule():
    harness.require_file("uprobe_events", "uprobes")


class Top(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.program = harness.program("workload_calls")
        self.words = [harness.program("tracefan"), "top", "--every", "0.2", "-e", f"calls=uprobe:{self.program}:workload_call",
                      "-e", "tracepoint:task:task_rename"]
        self.out = pathlib.Path(self.folder, "out")

    def wait_for(self, process, holds):
        deadline = time.monotonic() + harness.PATIENCE
        while not holds():
            self.assertTrue(process.running(), process.err)
            self.assertLess(time.monotonic(), deadline, process.out)
            time.sleep(0.02)

    def test_json(self):
        process = harness.Process([*self.words, "-o", "json"])
        self.wait_for(process, lambda: "\n" in process.out)
        subprocess.run([self.program, str(COUNT)], check=True, stdout=subprocess.DEVNULL)
        self.wait_for(process, lambda: f'"decoded":{COUNT},' in process.out.rpartition('"calls"')[2])
        process.signal(harness.signal.SIGTERM)
        result = process.wait()
        self.check_ended(result)
        self.assertEqual({r["kind"] for r in result.records}, {"top"})
        calls = [r["probes"]["calls"] for r in result.records]
        self.assertEqual(calls[0]["rate"], 0)
        self.assertEqual({k: calls[-1][k] for k in ("decoded", "delivered", "filtered", "lost_ring")},
                         {"decoded": COUNT, "delivered": COUNT, "filtered": 0, "lost_ring": 0})
        # The rates say when: times the time between the tables they are the events.
        events = sum(r["probes"]["calls"]["rate"] * (r["time"] - before["time"]) / 1e9
                     for before, r in zip(result.records, result.records[1:]))
        self.assertAlmostEqual(events, COUNT, delta=COUNT / 10)

    def test_text_ends_after_so_many_tables(self):
        result = harness.run([*self.words, "-n", "3"])
        self.check_ended(result)
        self.assertEqual(len(result.out.splitlines()), 6)
        self.assertRegex(result.out, r"(?m)^calls rate=0 decoded=0 delivered=0 filtered=0 lost_ring=0 lost_kernel=0$")

    @unittest.skipUnless(any(os.path.exists(f"{folder}/terminfo/x/xterm") for folder in ("/lib", "/usr/share", "/etc")),
                         "this machine knows nothing of terminals (package ncurses-base)")
    def test_a_terminal(self):
        main, terminal = pty.openpty()
        process = harness.Process(self.words, stdin=terminal, stdout=terminal, env={"TERM": "xterm", "LINES": "24", "COLUMNS": "120"})
        os.close(terminal)
        seen = b""
        while b"calls" not in seen:
            self.assertTrue(select.select([main], [], [], harness.PATIENCE)[0], "nothing is shown")
            seen += os.read(main, 4096)
        self.assertIn(b"EVENTS/S", seen)
        os.write(main, b"q")
        while True:
            try:
                if not os.read(main, 4096):
                    break
            except OSError:
                break
        os.close(main)
        self.check_ended(process.wait())

    def test_wrong_use(self):
        result = harness.run([harness.program("tracefan"), "top"])
        self.assertEqual(result.status, 2, result.err)
        self.assertIn("what shall be traced", result.err)


if __name__ == "__main__":
    harness.main()
