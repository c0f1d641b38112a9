#!/usr/bin/env python3
"""What the limits of a process (setrlimit(2)) leave too little of: said, with the limit and its mend, or not needed."""
import os

import harness

EVENT = "tracepoint:syscalls:sys_enter_getpgid"


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


def limited(limit, *words):
    """`words`, started under a limit as ulimit(1) has it."""
    return ["sh", "-c", f'ulimit {limit} || exit 99; exec "$@"', "sh", *words]


class Descriptors(harness.TestCase):
    def check_names_limit(self, words, status=1):
        result = harness.run(words)
        self.check_ended(result, status)
        self.assertIn("ulimit -n 1024", result.err)
        self.assertNotIn("Invalid argument", result.err)

    def test_of_a_private_session(self):
        for limit in (8, 10, 12, 14, 16, 18, 24, 32):
            with self.subTest(limit=limit):
                self.check_names_limit(limited(f"-n {limit}", harness.program("tracefan"), "trace", "-e", EVENT, "--", "true"))

    def test_of_the_daemons(self):
        name = f"limit-{os.getpid()}"
        for limit in (10, 12, 14, 24, 40):
            with self.subTest(limit=limit):
                self.check_names_limit(limited(f"-n {limit}", harness.program("tracefan-reader"), "--session", name))
                self.check_names_limit(limited(f"-n {limit}", harness.program("tracefan-router"), "--session", name))

    def test_that_are_enough(self):
        """What the daemons say they need is what they need; a soft limit is no reason."""
        for limit in (f"-n {64 + os.cpu_count()}", "-Sn 32"):
            with self.subTest(limit=limit):
                result = harness.run(limited(limit, harness.program("tracefan"), "trace", "--process", "-e", EVENT, "--", "true"))
                self.check_ended(result)
                self.assertNotIn("Too many open files", result.err)


if __name__ == "__main__":
    harness.main()
