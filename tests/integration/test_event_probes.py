#!/usr/bin/env python3
"""A tracepoint with arguments: what the event itself does not hold, fetched by an event probe, or the word that this kernel
has none."""
import contextlib
import os
import pathlib

import harness

EXECVE, OPENAT = "tracepoint:syscalls:sys_enter_execve", "tracepoint:syscalls:sys_enter_openat"
# The first two words of the command that is executed: strings of the program behind an array of pointers.
WORDS = "a=+0(+u0($argv)):ustring b=+0(+u8($argv)):ustring"


def setUpModule():
    harness.require_event("syscalls", "sys_enter_execve")


def has_event_probes():
    """The kernel describes them even where it has none, so this makes one."""
    name = f"tracefan_test_{os.getpid()}/trial"
    with contextlib.suppress(OSError):
        file = os.open(harness.TRACEFS / "dynamic_events", os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, f"e:{name} syscalls.sys_enter_execve n=$argv\n".encode())
            os.write(file, f"-:{name}\n".encode())
            return True
        finally:
            os.close(file)
    return False


class Missing(harness.TestCase):
    def test_a_kernel_without(self):
        if has_event_probes():
            self.skipTest("this kernel has event probes")
        result = harness.trace("-e", f"{EXECVE} {WORDS}", "--", "true")
        self.assertEqual(result.status, 4, result.err)
        # What was tried, and not a guess by the kernel's version.
        self.assertRegex(result.err, "dynamic_events.*no event probes \\(CONFIG_EPROBE_EVENTS\\)")
        self.assertNotIn("5.15", result.err)


class Fetched(harness.TestCase):
    def setUp(self):
        if not has_event_probes():
            self.skipTest("this kernel has no event probes (5.15 and later)")
        super().setUp()

    def trace(self, source, probes, *command):
        file = pathlib.Path(self.folder, f"events-{source}")
        words = [word for probe in probes for word in ("-e", probe)]
        result = harness.trace("-s", source, *words, "-o", "json", "-w", file, "--", *command)
        said, result.out = result.out, file.read_text()
        self.check_ended(result)
        self.check_balance(result)
        self.check_no_loss(result)
        return result, said

    def check(self, source):
        """And the event that it is attached to is still one of its own."""
        result, _ = self.trace(source, [f"x={EXECVE} {WORDS} n=$argv:x64", EXECVE], "env", "echo", "one two")
        events = [e for e in result.of("x") if e["args"]["a"] == "echo"]
        self.assertGreater(len(events), 0)
        self.assertEqual({(e["args"]["b"], e.get("suspect")) for e in events}, {("one two", None)})
        self.assertEqual(list(events[0]["args"]), ["a", "b", "n"])
        self.assertEqual(len(result.of("x")), len(result.of("syscalls:sys_enter_execve")))
        self.assertEqual([e["args"]["n"] for e in result.of("x")],
                         [e["args"]["argv"] for e in result.of("syscalls:sys_enter_execve")])

    def test_strings_raw(self):
        self.check("raw")

    def test_strings_text(self):
        self.check("text")

    def test_names_of_files(self):
        place = pathlib.Path(self.folder, "place")
        place.mkdir()
        result, said = self.trace("raw", [f"o={OPENAT} f=+0($filename):ustring p=$filename:u64 flags=$flags:s32 if flags >= 0"],
                                  harness.program("workload_open"), place)
        flags = [int(line.split()[0]) for line in said.splitlines()]
        events = result.of("o")[-len(flags):]
        self.assertEqual([e["args"]["flags"] for e in events], flags)
        if max(e["args"]["p"] % 2**63 for e in events) < 256:
            self.skipTest("this kernel takes one byte of a pointer to a string for the pointer")
        self.assertEqual({e["args"]["f"] for e in events}, {"made", "missing", "."})

    def test_a_filter_on_what_was_fetched(self):
        result, _ = self.trace("raw", [f"x={EXECVE} {WORDS} if b == wanted"], "sh", "-c", "env echo other; env echo wanted")
        self.assertEqual({e["args"]["b"] for e in result.of("x")}, {"wanted"})

    def test_mistakes(self):
        for probe, status, words in (("tracepoint:syscalls:sys_enter_nothing f=$filename", 5, "no event"),
                                     (f"{EXECVE} f=$nothing", 6, ""), (f"{EXECVE} f=+0($argv):strnig", 6, "")):
            with self.subTest(probe=probe):
                result = harness.trace("-e", probe, "--", "true")
                self.assertEqual(result.status, status, result.err)
                self.assertIn(words, result.err)

    def test_only_root_may_without_a_policy(self):
        """It reads the kernel's and the programs' memory."""
        session = harness.Session(self.folder)
        self.addCleanup(session.stop)
        result = session.trace("-e", f"{EXECVE} {WORDS}", "-n", "1").wait()
        self.assertEqual(result.status, 3, result.err)


if __name__ == "__main__":
    harness.main()
