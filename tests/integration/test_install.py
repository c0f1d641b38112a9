#!/usr/bin/env python3
"""An installed tree is complete: its command finds its own daemons, wherever the tree is."""
import os
import pathlib
import subprocess
import unittest

import harness

RECORDING = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "demo.tfr"


class Install(harness.TestCase):
    def setUp(self):
        super().setUp()
        if not (harness.BUILD / "cmake_install.cmake").exists():
            raise unittest.SkipTest("the programs aren't in a build folder")
        self.prefix = pathlib.Path(self.folder, "prefix")
        subprocess.run(["cmake", "--install", harness.BUILD, "--prefix", self.prefix], check=True, capture_output=True,
                       umask=0o022)

    def test_what_doctor_offers_to_mend_it_does(self):
        result = subprocess.run([self.prefix / "bin/tracefan", "doctor"], capture_output=True, text=True)
        self.assertRegex(result.stdout, r"(?m)^ok +daemons ")
        self.assertIn(str(self.prefix.resolve()), result.stdout)

    def test_by_a_user_of_the_installed_tree(self):
        recording = pathlib.Path(self.folder, RECORDING.name)
        recording.write_bytes(RECORDING.read_bytes())
        user = harness.as_user(harness.USER_A) if os.geteuid() == 0 else {}
        result = harness.run([self.prefix / "bin/tracefan", "replay", recording, "-o", "json"],
                             env={"XDG_RUNTIME_DIR": self.folder}, **user)
        self.check_ended(result)
        self.assertEqual(len(result.of("sched:sched_process_exec")), 13)


if __name__ == "__main__":
    harness.main()
