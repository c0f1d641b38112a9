#!/usr/bin/env python3
"""A session as an operator deploys it: its configuration, and modes that do not depend on who starts it."""
import json
import os
import pathlib
import stat
import unittest

import harness


def setUpModule():
    harness.require_tracefs()


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


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
        self.check_ended(result, 2)
        self.assertIn("chmod go-w", result.err)

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
