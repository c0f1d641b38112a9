#!/usr/bin/env python3
"""A session as an operator deploys it: its configuration, and modes that do not depend on who starts it."""
import json
import os
import pathlib
import stat
import struct
import subprocess
import unittest

import harness


def setUpModule():
    harness.require_tracefs()


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def file_offset(program, symbol):
    """Where in the file a function of it begins."""
    table = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    address = next(int(line.split()[0], 16) for line in table.splitlines() if line.split()[-2:] == ["T", symbol])
    image = pathlib.Path(program).read_bytes()
    start, size, count = struct.unpack_from("<Q", image, 32)[0], *struct.unpack_from("<HH", image, 54)
    for i in range(count):
        kind, _, offset, virtual, _, length = struct.unpack_from("<IIQQQQ", image, start + i * size)
        if kind == 1 and virtual <= address < virtual + length:
            return address - virtual + offset
    raise AssertionError(f"{symbol} is in no segment of {program}")


class Deployment(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.name = f"test-{os.getpid()}-{self._testMethodName[-8:].strip('_')}"
        self.directory = pathlib.Path(self.folder, "run")
        self.config = pathlib.Path(self.folder, "session.conf")
        self.group = harness.a_group()

    def act(self, verb, *words, **more):
        return harness.run([harness.program("tracefan"), "session", verb, self.name, "--directory", self.directory, *words], **more)

    def start(self, text, **more):
        self.config.write_text(text)
        self.config.chmod(0o644)
        return self.act("start", "-c", self.config, **more)

    def status(self):
        result = harness.run([harness.program("tracefan"), "status", "--session", self.name, "--directory", self.directory, "-o", "json"])
        self.check_ended(result)
        return json.loads(result.out)

    def test_a_configured_session(self):
        result = self.start(f"[session]\ngroup = {self.group.gr_name}\nrouter-user = {harness.USER_B}\n"
                            "[kernel]\nbuffer-size = 512K\n")
        self.check_ended(result)
        self.addCleanup(self.act, "stop")
        status = self.status()
        self.assertTrue(512 <= status["buffer_size"] / 1024 < 1024, status)
        self.assertEqual(os.stat(self.directory / self.name / "consumers.sock").st_gid, self.group.gr_gid)
        # The router finds out by itself who it is to be.
        uid = harness.read_lines(pathlib.Path("/proc", str(status["router_pid"]), "status"))
        self.assertIn("\t".join(["Uid:"] + [str(harness.USER_B)] * 4), uid)

    def test_a_probe_that_the_operator_defines(self):
        """For a member of the group, who may define none."""
        harness.require_file("uprobe_events", "uprobes")
        program = harness.staged(self.folder, "workload_numbers")
        result = self.start(f"[session]\ngroup = {self.group.gr_name}\npolicy = none\n[probes]\n"
                            f"begin = uprobe:{program}:{file_offset(program, 'main'):#x}\n argc={harness.argument(1)}:s32\n")
        self.check_ended(result)
        self.addCleanup(self.act, "stop")
        tracefan, member = harness.staged(self.folder, "tracefan"), harness.as_user(harness.USER_A, self.group.gr_gid)
        where = ("--session", self.name, "--directory", self.directory)
        listed = harness.run([tracefan, "ls", *where, "probes:*"], **member)
        self.assertEqual((listed.status, listed.out.split()), (0, ["probes:begin"]))
        traced = harness.run([tracefan, "trace", *where, "-e", "tracepoint:probes:begin", "-o", "json", "--",
                              program, harness.cpus()[0], 1, 1], **member)
        self.check_ended(traced)
        self.assertEqual([(e["probe"], e["args"]) for e in traced.events], [("probes:begin", {"argc": 4})])
        for probe, status, words in ((f"uprobe:{program}:main", 3, "root"), ("tracepoint:probes:end", 5, "no probe \"end\"")):
            refused = harness.run([tracefan, "trace", *where, "-e", probe, "--", "true"], **member)
            self.check_ended(refused, status)
            self.assertIn(words, refused.err)

    def test_a_probe_that_can_not_be(self):
        harness.require_file("uprobe_events", "uprobes")
        for place, status, words in (("/nonexistent:0x10", 5, "/nonexistent: No such file"),
                                     ("/etc/passwd:0x7fffffff", 5, "behind the end")):
            result = self.start(f"[probes]\nnone = uprobe:{place}\n")
            self.check_ended(result, status)
            self.assertIn(f"{self.config}: line 2: ", result.err)
            self.assertIn(words, result.err)
            self.assertFalse((self.directory / self.name).exists())

    def test_mistakes_start_nothing(self):
        for text, words in (("[kernel]\nbufer-size = 1M\n", ('line 2', '"bufer-size"', "buffer-size")),
                            ("[session]\ngroup = a\ngroup = b\n", ("line 3", "group", "line 2")),
                            ("[kernel]\nbuffer-size = 8K\nsubbuf-size = 64K\n", ("subbuf-size (line 3)", "buffer-size (line 2)")),
                            ("[session]\ngroup = nobody-is-in-this\n", ("nobody-is-in-this",))):
            with self.subTest(text=text):
                result = self.start(text)
                self.check_ended(result, 2)
                for word in words:
                    self.assertIn(word, result.err)
                if "line" in words[0]:
                    self.assertIn(str(self.config), result.err)
                self.assertFalse((self.directory / self.name).exists())
                self.assertFalse((harness.TRACEFS / "instances" / f"tracefan-{self.name}").exists())

    def test_a_file_that_others_may_write(self):
        self.config.write_text("[session]\n")
        self.config.chmod(0o666)
        result = self.act("start", "-c", self.config)
        self.check_ended(result, 3)
        self.assertIn("chmod go-w", result.err)

    def test_a_full_log(self):
        """The confined reader empties it: what consumers and others do is logged, too."""
        self.check_ended(self.start(f"[session]\ngroup = {self.group.gr_name}\n"))
        self.addCleanup(self.act, "stop")
        log = self.directory / f"{self.name}.log"
        with log.open("a") as file:
            file.write("x" * ((1 << 20) - file.tell()))
        router = harness.run([harness.program("tracefan-router"), "--session", self.name, "--directory", self.directory])
        self.assertNotEqual(router.status, 0)
        lines = log.read_text().splitlines()
        self.assertEqual(lines[0], "tracefan-reader: the log was full, at 1048576 bytes, and begins anew")
        self.assertIn("connected as a second router", lines[1])

    def test_modes_whatever_the_umask(self):
        for umask in (0o000, 0o077):
            with self.subTest(umask=umask):
                self.check_ended(self.start(f"[session]\ngroup = {self.group.gr_name}\n", umask=umask))
                folder = self.directory / self.name
                self.assertEqual(mode(self.directory), 0o755)
                self.assertEqual(mode(folder), 0o755)
                self.assertEqual(mode(folder / "router.sock"), 0o600)
                self.assertEqual(mode(folder / "control.sock"), 0o600)
                self.assertEqual(mode(folder / "consumers.sock"), 0o660)
                self.assertEqual(mode(self.directory / f"{self.name}.log"), 0o644)
                owners = [(os.stat(folder / n).st_uid, os.stat(folder / n).st_gid) for n in ("control.sock", "consumers.sock")]
                self.assertEqual(owners, [(0, 0), (0, self.group.gr_gid)])
                self.assertNotEqual(os.stat(folder / "router.sock").st_uid, 0)
                self.check_ended(self.act("stop"))
                self.directory.rmdir()


if __name__ == "__main__":
    harness.main()
