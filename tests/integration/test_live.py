#!/usr/bin/env python3
"""A command traced live: what it executed and opened, by the binary source and by the text source."""
import os
import pathlib
import shutil

import harness

EXEC = "tracepoint:sched:sched_process_exec"
OPENAT = "tracepoint:syscalls:sys_enter_openat"
EXEC_NAME, OPENAT_NAME = "sched:sched_process_exec", "syscalls:sys_enter_openat"


def setUpModule():
    harness.require_event("sched", "sched_process_exec")
    harness.require_event("syscalls", "sys_enter_openat")


def in_words(source):
    """Newer kernels print flags as words. The text source has no number then, rather than one that it made up."""
    text = (harness.TRACEFS / "events/syscalls/sys_enter_openat/format").read_text()
    return source == "text" and "__print_flags(REC->flags" in text


class Live(harness.TestCase):
    def check_flags(self, source, traced, expected):
        """The flags and modes of openat(2)."""
        if in_words(source):
            traced = [{"flags": flags, "mode": mode, **a} for a, (flags, mode) in zip(traced, expected)]
        self.assertEqual([(a["flags"], a["mode"]) for a in traced], expected)

    def trace(self, source, *command):
        """Traces a command with the events in a file of their own; (result, the command's pid)."""
        file = pathlib.Path(self.folder, f"events-{source}")
        result = harness.trace("-s", source, "-e", EXEC, "-e", OPENAT, "-o", "json", "-w", file, "--", *command)
        result.command_out, result.out = result.out, file.read_text()
        self.check_ended(result)
        self.check_balance(result)
        self.check_no_loss(result)
        self.check_order(result.events)
        return result

    def check_cat(self, source):
        result = self.trace(source, "cat", "/etc/hostname")
        self.assertEqual(result.command_out, pathlib.Path("/etc/hostname").read_text())
        executed = [e for e in result.of(EXEC_NAME) if e["args"]["filename"] == shutil.which("cat")]
        self.assertEqual(len(executed), 1, result.events)
        self.check_names(executed, source, "cat")
        self.assertEqual(executed[0]["args"]["pid"], executed[0]["pid"])
        opened = [e for e in result.of(OPENAT_NAME) if e["pid"] == executed[0]["pid"] and e["time"] > executed[0]["time"]]
        self.assertGreaterEqual(len(opened), 1)
        self.check_names(opened, source, "cat")
        # cat's own open comes last, and it only reads.
        last = {k: v & os.O_ACCMODE if k == "flags" else v for k, v in opened[-1]["args"].items()}
        self.check_flags(source, [last], [(os.O_RDONLY, 0)])

    def test_cat_raw(self):
        self.check_cat("raw")

    def test_cat_text(self):
        self.check_cat("text")

    def test_events_and_output_on_one_stream(self):
        """Without -w the command's lines stand between whole lines of JSON."""
        result = harness.trace("-e", EXEC, "-o", "json", "--", "echo", "said by the command")
        self.check_ended(result)
        lines = result.out.splitlines()
        self.assertIn("said by the command", lines)
        lines.remove("said by the command")
        self.assertEqual(harness.read_records("\n".join(lines))[-1]["kind"], "summary")

    def opens(self, source):
        """What workload_open did: the arguments that it prints, and those that were traced."""
        workload = harness.program("workload_open")
        place = pathlib.Path(self.folder, source)
        place.mkdir()
        result = self.trace(source, "setarch", "-R", workload, place)
        expected = [tuple(map(int, line.split())) for line in result.command_out.splitlines()]
        pids = {e["pid"] for e in result.of(EXEC_NAME) if e["args"]["filename"] == workload}
        self.assertEqual(len(pids), 1)
        traced = [e["args"] for e in result.of(OPENAT_NAME) if e["pid"] in pids][-len(expected):]
        return expected, traced

    def check_opens(self, source):
        expected, traced = self.opens(source)
        self.check_flags(source, traced, expected)
        self.assertEqual(len({a["dfd"] for a in traced}), 1)

    def test_flags_and_modes_raw(self):
        self.check_opens("raw")

    def test_flags_and_modes_text(self):
        self.check_opens("text")


if __name__ == "__main__":
    harness.main()
