#!/usr/bin/env python3
"""The harness itself: a check that can't fail proves nothing."""
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import unittest

import harness


class Finds(harness.TestCase):
    def test_an_instance(self):
        harness.require_tracefs()
        leftovers = harness.Leftovers()
        instance = harness.TRACEFS / "instances" / f"tracefan-selftest-{os.getpid()}"
        instance.mkdir()
        try:
            self.assertEqual(leftovers.settle(0.1), [f"instance {instance.name}"])
        finally:
            instance.rmdir()
        self.assertEqual(leftovers.settle(), [])

    @staticmethod
    def append(path, line):
        """Python's own append mode seeks, which files of tracefs refuse."""
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(fd, line.encode())
        os.close(fd)

    def test_a_probe(self):
        harness.require_file("uprobe_events", "uprobes")
        leftovers = harness.Leftovers()
        events = harness.TRACEFS / "uprobe_events"
        name = f"tracefan_selftest_{os.getpid()}/p"
        self.append(events, f"p:{name} {os.path.realpath(sys.executable)}:0x1000\n")
        try:
            self.assertEqual(leftovers.settle(0.1), [f"probe p:{name}"])
        finally:
            self.append(events, f"-:{name}\n")
        self.assertEqual(leftovers.settle(), [])

    def test_whose_it_is(self):
        """By the mark alone: the other numbers of a name are no pids, whatever digits they begin with."""
        for what, name, pid in [
            ("instance", "tracefan-test-4711-1", 4711),
            ("instance", "tracefan-private-4711-0815abcd", 4711),
            ("instance", "tracefan-default", None),
            ("session", "test-4711-none", 4711),
            ("folder", "tracefan-1000/private-4711-0815abcd", 4711),
            ("folder", "tracefan-4711/default", None),
            ("probe", "p:tracefan_test_4711_1_0815abcd/work_0000000000000042_4242cafe", 4711),
            ("probe", "r16:tracefan_private_4711_0815abcd_12345678/work_0000000000000042_42cafe42", 4711),
            ("probe", "p:tracefan_selftest_4711/p", 4711),
            ("probe", "p:tracefan_default_4711a0b1/test_0000000000000815_4711cafe", None),
        ]:
            with self.subTest(name=name):
                self.assertEqual(harness.owner(what, name), pid)

    def test_an_orphan(self):
        leftovers = harness.Leftovers()
        result = harness.run(["sh", "-c", "sleep 1000 > /dev/null & echo $!"])
        orphan = int(result.out)
        self.assertEqual(leftovers.settle(0.1), [f"process {orphan} sleep 1000"])
        os.kill(orphan, signal.SIGKILL)
        self.assertEqual(leftovers.settle(), [])


class Runs(harness.TestCase):
    def test_status_and_both_outputs(self):
        result = harness.run(["sh", "-c", "echo out; echo err >&2; exit 5"])
        self.assertEqual((result.status, result.out, result.err), (5, "out\n", "err\n"))

    def test_a_hanging_program_fails(self):
        with self.assertRaisesRegex(AssertionError, "hangs"):
            harness.run(["sleep", "1000"], timeout=0.2)

    def test_another_user(self):
        harness.require_root()
        result = harness.run(["sh", "-c", "id -u; id -g; id -G; test -w /"], **harness.as_user(harness.USER_A, 100))
        self.assertEqual(result.out.split(), [str(harness.USER_A)] * 3 + ["100"])
        self.assertEqual(result.status, 1)

    def test_the_gate(self):
        gate = harness.Gate(self.folder)
        process = harness.Process([*gate.words])
        gate.wait(process)
        self.assertTrue(process.running())
        gate.open()
        self.assertEqual(process.wait().status, 0)
        never = harness.Process(["true"])
        with self.assertRaisesRegex(AssertionError, "not started"):
            gate.wait(never)
        gate.close()


class Reads(unittest.TestCase):
    def test_records(self):
        records = harness.read_records('{"kind":"event","args":{"n":1}}\n{"kind":"summary"}\n')
        self.assertEqual([r["kind"] for r in records], ["event", "summary"])

    def test_what_is_no_record(self):
        for line in ('{"kind":"event"', "[]", "{}", '{"kind":"event","n":NaN}', "text"):
            with self.subTest(line=line), self.assertRaises(AssertionError):
                harness.read_records(line + "\n")

    def test_bytes(self):
        self.assertEqual(harness.as_bytes("a\u00e9\uefff\uef80"), b"a\xc3\xa9\xff\x80")


class Exits(unittest.TestCase):
    def exit_status(self, body):
        text = "import sys, unittest\nsys.path.insert(0, sys.argv.pop())\nimport harness\n" + textwrap.dedent(body)
        here = pathlib.Path(__file__).parent
        return subprocess.run([sys.executable, "-c", text + "\nharness.main()", here], capture_output=True).returncode

    def test_status(self):
        case = "class C(unittest.TestCase):\n    def test_a(self): {}\n    def test_b(self): {}\n"
        skip, fail = "self.skipTest('why')", "self.fail()"
        self.assertEqual(self.exit_status(case.format("pass", "pass")), 0)
        self.assertEqual(self.exit_status(case.format("pass", skip)), 0)
        self.assertEqual(self.exit_status(case.format(skip, skip)), 77)
        self.assertEqual(self.exit_status(case.format(skip, fail)), 1)
        self.assertEqual(self.exit_status("def setUpModule(): raise unittest.SkipTest('why')\n" + case.format(fail, fail)), 77)
        self.assertEqual(self.exit_status(""), 1)


if __name__ == "__main__":
    harness.main()
