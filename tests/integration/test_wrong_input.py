#!/usr/bin/env python3
"""Wrong input ends with the status and message of the contract, before anything was enabled or run."""
import collections
import os
import pathlib

import harness


def setUpModule():
    harness.require_event("sched", "sched_process_exec")
    harness.require_file("uprobe_events", "uprobes")


GOOD = ("-e", "tracepoint:sched:sched_process_exec")
USAGE, PERMISSION, LOCATION, FETCH = 2, 3, 5, 6


class WrongInput(harness.TestCase):
    def refused(self, status, says, *words, **more):
        """Runs `trace WORDS -- touch FILE`, which must end with `status` and say `says`, and touch nothing."""
        touched = pathlib.Path(self.folder, "touched")
        with self.subTest(words=words):
            result = harness.trace(*words, "--", "touch", touched, **more)
            self.assertEqual(result.status, status, result.err)
            self.assertRegex(result.err, says)
            self.assertEqual(result.out, "")
            self.assertFalse(touched.exists(), "the command ran")
            self.assertEqual(self._leftovers.settle(), [], "left behind")
        return result

    def test_options(self):
        self.refused(USAGE, "--no-such-option", *GOOD, "--no-such-option")
        self.refused(USAGE, "xml", *GOOD, "-o", "xml")
        self.refused(USAGE, "binary", *GOOD, "-s", "binary")
        self.refused(USAGE, "many", *GOOD, "-n", "many")
        self.refused(USAGE, "-1", *GOOD, "-d", "-1")
        self.refused(USAGE, "never", *GOOD, "--overflow", "never")
        self.refused(USAGE, "big", *GOOD, "--ring", "big")

    def test_functions_of_the_kernel(self):
        """None of the name, and more than one."""
        harness.require_file("kprobe_events", "kprobes")
        self.refused(LOCATION, "no function of this name; did you mean .*vfs_read", "-e", "kprobe:vfs_raed")
        functions = [line.split() for line in pathlib.Path("/proc/kallsyms").read_text().splitlines()]
        names = collections.Counter(words[2] for words in functions if words[1] in "tT" and len(words) == 3)
        twice = next((name for name, count in names.items() if count > 1 and name.isidentifier()), None)
        if twice is None:
            self.skipTest("this kernel has no two functions of one name")
        self.refused(LOCATION, f'functions named "{twice}"', "-e", f"kprobe:{twice}")

    def test_a_router_without_a_session_leaves_its_input_alone(self):
        path = pathlib.Path(self.folder, "input")
        path.touch()
        with path.open("r+b") as file:
            result = harness.run([harness.program("tracefan-router"), "--session", "nosuch", "--directory", self.folder],
                                 stdin=file)
        self.assertEqual(result.status, 4, result.err)
        self.assertRegex(result.err, "^tracefan-router: error: session nosuch: .*start tracefan-reader[^\n]*\n$")
        self.assertEqual(path.read_bytes(), b"")

    def test_notation(self):
        self.refused(USAGE, "tracepint", "-e", "tracepint:sched:sched_process_exec")
        # Where nothing was written there is nothing to show.
        self.assertEqual(self.refused(USAGE, "KIND:PLACE", "-e", "").err.count("\n"), 1)
        self.refused(USAGE, ".", "-e", "tracepoint:sched")
        # The mark below the text shows the place.
        result = self.refused(USAGE, r"\^", "-e", "tracepoint:sched:sched_process_exec if pid ==")
        self.assertIn("pid ==", result.err)

    def test_a_filter_for_several_events(self):
        both = ("-e", "tracepoint:sched:sched_process_exec", "-e", "tracepoint:sched:sched_process_exit")
        # A field of one of them is no error; one of none is, wherever it stands.
        wrong = 'filename ~ "*/x" || prio > 0 || filenam == "x"'
        result = self.refused(USAGE, "none of the events has a field 'filenam'.*filename", *both, "-f", wrong)
        lines = result.err.splitlines()
        at = next(i for i, line in enumerate(lines) if "^" in line)
        self.assertEqual(lines[at].index("^") - lines[at - 1].index(wrong), wrong.index("filenam =="))
        # A probe's own filter is for its event alone.
        self.refused(USAGE, "prio", "-e", "tracepoint:sched:sched_process_exec if prio > 0", *both[2:])

    def test_events(self):
        self.refused(LOCATION, "sched_process_exec", "-e", "tracepoint:sched:sched_process_exek")
        self.refused(LOCATION, "schedd", "-e", "tracepoint:schedd:sched_process_exec")
        # All or nothing: the first two are good.
        self.refused(LOCATION, "no_such", *GOOD, "-e", "tracepoint:sched:sched_process_fork", "-e", "tracepoint:sched:no_such")

    def test_uprobe_places(self):
        workload = harness.program("workload_calls")
        self.refused(LOCATION, "/no/such/file", "-e", "uprobe:/no/such/file:main")
        self.refused(LOCATION, "(?i)elf", "-e", f"uprobe:{os.path.realpath(__file__)}:main")
        self.refused(LOCATION, "workload_call", "-e", f"uprobe:{workload}:workload_cal")

    def test_fetch_arguments(self):
        workload = harness.program("workload_calls")
        first = harness.argument(1)
        for fetch in ("n=%nosuch:u64", f"n={first}:u65", "n=+0(", f"n=+0({first}:string"):
            self.refused(FETCH, r"\^", "-e", f"uprobe:{workload}:workload_call {fetch}")

    def test_filters(self):
        self.refused(USAGE, "no_such_field", "-e", "tracepoint:sched:sched_process_exec if no_such_field == 1")

    def test_a_private_session_needs_root(self):
        tracefan = harness.staged(self.folder, "tracefan")
        self.refused(PERMISSION, "root", *GOOD, uid=harness.USER_A, tracefan=tracefan)


if __name__ == "__main__":
    harness.main()
