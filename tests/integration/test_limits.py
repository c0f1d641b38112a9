#!/usr/bin/env python3
"""What the limits of a process (setrlimit(2)) leave too little of: said, with the limit and its mend, or not needed."""
import os
import resource

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


class Processes(harness.TestCase):
    def test_none(self):
        """The ring's workers count as processes: without one, what is handed to them is never done."""
        tracefan, workload = harness.program("tracefan"), harness.program("workload_calls")
        for limit, source in ((0, "raw"), (0, "text"), (1, "raw")):
            with self.subTest(limit=limit, source=source):
                # Not every shell's ulimit knows it.
                result = harness.run([tracefan, "trace", "-s", source, "-o", "json", "-w", f"{self.folder}/out",
                                      "-e", f"n=uprobe:{workload}:workload_call", "--", workload, "10"],
                                     preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_NPROC, (n, n)))
                self.check_ended(result)
                result.out = open(f"{self.folder}/out").read()
                self.check_balance(result)
                self.assertEqual(len(result.of("n")), 10)
                self.assertEqual("limit of processes is 0 (ulimit -u" in result.err, limit == 0)


class Stack(harness.TestCase):
    """64 KiB are enough for all of it, the arguments and the environment included."""

    def run_small(self, *words):
        result = harness.run(limited("-s 64", *words), env={"LANG": "C"})
        self.check_ended(result)
        return result

    def test_a_trace(self):
        tracefan, workload = harness.program("tracefan"), harness.program("workload_calls")
        probes = ["-e", f"n=uprobe:{workload}:workload_call n={harness.argument(0)}:u64 if n >= 0", "-e", "tracepoint:sched:sched_process_exec",
                  "-f", "pid > 0 && comm in {sh, workload_calls}"]
        for source in ("raw", "text"):
            with self.subTest(source=source):
                out = f"{self.folder}/{source}"
                # More processes than the router's first table of them holds.
                command = f'i=0; while [ $i -lt 700 ]; do /bin/true & i=$((i + 1)); done; wait; {workload} 10'
                result = self.run_small(tracefan, "trace", "-s", source, "-o", "json", "-w", out, "--state", "--process", *probes,
                                        "--", "sh", "-c", command)
                result.out = open(out).read()
                self.check_balance(result)
                self.assertEqual(len(result.of("n")), 10)

    def test_the_rest(self):
        tracefan, recording = harness.program("tracefan"), f"{self.folder}/recording"
        self.run_small(tracefan, "record", "-o", recording, "-e", EVENT, "--", "true")
        self.run_small(tracefan, "replay", recording)
        self.run_small(tracefan, "explain", "-e", EVENT, "-f", "pid > 3 || comm ~ \"a*\"")
        self.run_small(tracefan, "ls", "sched:*")
        self.run_small(tracefan, "watch", "exec", "-d", "0.2")
        self.run_small(tracefan, "top", "-e", EVENT, "-d", "0.2")
        name = f"limit-{os.getpid()}"
        self.addCleanup(harness.run, [tracefan, "session", "stop", name])
        self.run_small(tracefan, "session", "start", name)
        self.run_small(tracefan, "trace", "--session", name, "-e", EVENT, "--", "true")
        self.run_small(tracefan, "status", "--session", name)
        self.run_small(tracefan, "session", "stop", name)


if __name__ == "__main__":
    harness.main()
