#!/usr/bin/env python3
"""The shipped recording, replayed without root and tracefs through the same three processes."""
import os
import pathlib
import shutil

import harness

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
RECORDING = FIXTURES / "demo.tfr"


class Replay(harness.TestCase):
    def replay(self, *words):
        """By nobody in particular where the test is root, by its own user otherwise."""
        for name in ("tracefan", "tracefan-reader", "tracefan-router"):
            harness.staged(self.folder, name)
        recording = pathlib.Path(self.folder, RECORDING.name)
        recording.write_bytes(RECORDING.read_bytes())
        user = harness.as_user(harness.USER_A) if os.geteuid() == 0 else {}
        result = harness.run([f"{self.folder}/tracefan", "replay", recording, "-o", "json", *words],
                             env={"XDG_RUNTIME_DIR": self.folder}, **user)
        self.check_ended(result)
        return result

    def test_every_event_is_there(self):
        result = self.replay()
        executed = [e["args"]["filename"] for e in result.of("sched:sched_process_exec")]
        self.assertEqual(executed, ["/bin/sh"] + 3 * ["/bin/cat", "/bin/ls", "/bin/uname", "/bin/sleep"])
        self.assertEqual([e["comm"] for e in result.of("syscalls:sys_enter_openat")], 3 * ["cat", "ls"])
        self.check_balance(result)
        self.check_no_loss(result)
        self.check_order(result.events)

    def test_what_is_asked_for(self):
        result = self.replay("-e", "tracepoint:sched:sched_process_exec", "-f", 'comm == "ls"')
        self.assertEqual({e["args"]["filename"] for e in result.events}, {"/bin/ls"})
        self.assertEqual(len(result.events), 3)

    def test_what_was_not_recorded(self):
        """Nothing that is asked for is left out without a word."""
        event = "sched:sched_process_exec"
        for probe, said, place in (f"{event} a=b", f"'a' was not recorded with {event}", "a=b"), \
                (f"tracepoint:{event} pid=$pid a=b if pid > 0", "'a' was not recorded", "a=b if pid > 0"), \
                (f"{event} stack more", "'more' is out of place", "more"):
            with self.subTest(probe=probe):
                result = harness.run([harness.program("tracefan"), "replay", RECORDING, "-e", probe])
                self.check_ended(result, 2)
                lines = result.err.splitlines()
                self.assertIn(said, lines[0])
                self.assertEqual(lines[1][lines[2].index("^"):], place)
        self.assertEqual(len(self.replay("-e", f"{event} pid=$pid").events), 13)

    def test_itself(self):
        """What is replayed is no place to write to."""
        recording = pathlib.Path(self.folder, "copy.tfr")
        shutil.copy2(FIXTURES / "demo.tfr", recording)
        before = recording.read_bytes()
        result = harness.run([harness.program("tracefan"), "replay", recording, "-w", recording])
        self.check_ended(result, 2)
        self.assertIn(f"{recording} is what is replayed", result.err)
        self.assertEqual(recording.read_bytes(), before)

    def test_twice_the_same(self):
        first, second = self.replay(), self.replay()
        for event in (*first.events, *second.events):
            event.pop("id")
        self.assertEqual(first.events, second.events)


class Damaged(harness.TestCase):
    """Named with its place, and an error; what stands before that is shown all the same."""

    WHOLE = RECORDING.read_bytes()

    def replay(self, recording, status=1):
        path = pathlib.Path(self.folder, "damaged.tfr")
        path.write_bytes(recording)
        result = harness.run([harness.program("tracefan"), "replay", path, "-o", "json"])
        self.check_ended(result, status)
        return result

    def frames(self):
        """The offsets of those that hold a sub-buffer."""
        at, found = 256, []
        while at < len(self.WHOLE):
            kind, size = int.from_bytes(self.WHOLE[at:at + 4], "little"), int.from_bytes(self.WHOLE[at + 8:at + 16], "little")
            if kind == 4 and self.WHOLE[at + 16 + 36] == 1:
                found.append(at)
            at += 16 + (size + 7) // 8 * 8
        return found

    def check_rest(self, result, offset):
        """Events up to there, in their order, and the reason of the end."""
        self.assertIn(f"the recording is damaged at offset {offset} of ", result.err)
        end = next(r for r in result.records if r["kind"] == "end")
        self.assertEqual(end["reason"], "error")
        self.assertIn("the recording is damaged", end["message"])
        self.check_balance(result)
        whole = [(e["time"], e["pid"], e["probe"]) for e in self.replay(self.WHOLE, 0).events]
        self.assertEqual([(e["time"], e["pid"], e["probe"]) for e in result.events], whole[:len(result.events)])
        return len(result.events), len(whole)

    def test_cut_off(self):
        last = self.frames()[-1]
        for size in last + 8, last + 100, last + 16:
            shown, whole = self.check_rest(self.replay(self.WHOLE[:size]), last)
            self.assertLess(0, shown)
            self.assertLess(shown, whole)
        shown, whole = self.check_rest(self.replay(self.WHOLE[:-16]), len(self.WHOLE) - 16)
        self.assertEqual(shown, whole)
        self.assertEqual(self.check_rest(self.replay(self.WHOLE[:256]), 256)[0], 0)

    def test_a_byte_is_another(self):
        last = self.frames()[-1]
        for at, bits in (last, 1), (last + 2, 1), (last + 4, 2), (last + 12, 4), (last + 16 + 36, 0x10):
            with self.subTest(at=at):
                damaged = bytearray(self.WHOLE)
                damaged[at] ^= bits
                shown, whole = self.check_rest(self.replay(damaged), last)
                self.assertLess(shown, whole)

    def test_a_sub_buffer(self):
        """The others are shown, behind it, too."""
        at = self.frames()[3]
        damaged = bytearray(self.WHOLE)
        damaged[at + 16 + 48 + 9] ^= 8
        result = self.replay(damaged)
        self.assertIn("damaged sub-buffer", result.err)
        self.check_balance(result)
        whole = self.replay(self.WHOLE, 0).events
        self.assertEqual(result.events[-1]["time"], whole[-1]["time"])
        self.assertEqual(next(r for r in result.records if r["kind"] == "end")["reason"], "error")

    def test_its_header(self):
        for size in 6, 100, 255:
            self.assertIn(f"the recording is damaged at offset {size}: it ends within its header", self.replay(self.WHOLE[:size]).err)
        for at in 3, 13, 22:
            with self.subTest(at=at):
                damaged = bytearray(self.WHOLE)
                damaged[at] ^= 0x40
                self.assertRegex(self.replay(damaged).err, "the recording is damaged at offset 0: ")
        self.assertIn("empty: nothing was recorded", self.replay(b"").err)
        # Something else was named by mistake.
        self.assertIn("not a tracefan recording", self.replay(bytes(range(256)) * 4, 2).err)


class Logs(harness.TestCase):
    """ftrace's text, and raw pages with their format files."""

    PAGES = FIXTURES / "guest-6.1"
    LOG = PAGES / "expected/kernel-text.txt"

    def replay(self, *words, status=0):
        result = harness.run([harness.program("tracefan"), "replay", "-o", "json", *words])
        self.check_ended(result, status)
        return result

    def test_each_probe_gets_its_own(self):
        """However fast the file is read, each of several has all of its events."""
        probes = ["-e", "tracepoint:sched:sched_process_exec", "-e", "tracepoint:syscalls:sys_enter_getpgid"]
        for source, call in (["--pages", self.PAGES], "tracepoint:probes:call"), (["--text", self.LOG], "uprobe:/any/program:call"):
            with self.subTest(source=source):
                result = self.replay(*source, *probes, "-e", call)
                self.check_balance(result)
                names = ("sched:sched_process_exec", "syscalls:sys_enter_getpgid", call.removeprefix("tracepoint:").rpartition("/program:")[2])
                self.assertEqual([len(result.of(name)) for name in names], [3, 2, 3])

    def test_a_filter_of_what_a_log_shows(self):
        result = self.replay("--text", self.LOG, "-e", "c=uprobe:/any/program:call", status=5)
        self.assertIn('the log holds no event "c"', result.err)
        result = self.replay("--text", self.LOG, "-e", "call if s != 0 && comm == workload_calls")
        self.assertEqual([e["args"]["low"] for e in result.events], [5, 10])

    def test_losses_that_a_log_tells(self):
        """In the stream where they stand, and in the account; a string that looks like one is none."""
        line = '            prog-7       [001] .....     2.00000{}: own: (0x1) s="{}"\n'
        log = pathlib.Path(self.folder, "log")
        log.write_text(line.format(0, "a") + "CPU:1 [LOST 12345 EVENTS]\n" + line.format(1, "CPU:1 [LOST 7 EVENTS]") +
                       "CPU:0 [LOST EVENTS]\n" + line.format(2, "c"))
        result = self.replay("--text", log, "-e", "own")
        self.check_balance(result)
        self.assertEqual([(r["source"], r["cpu"], r["count"]) if r["kind"] == "lost" else r["args"]["s"]
                          for r in result.records if r["kind"] in ("event", "lost")],
                         ["a", ("kernel", 1, 12345), "CPU:1 [LOST 7 EVENTS]", ("kernel", 0, None), "c"])
        session = result.summary["session"]
        self.assertEqual((session["lost_kernel"], session["committed"], session["decoded"]), (12345, 12348, 3))

    def test_expressions_that_give_up_are_counted(self):
        log = pathlib.Path(self.folder, "log")
        log.write_text("".join(f'            prog-7       [003] .....     2.00000{i}: own: (0x1) s="{"a" * 199 + end}"\n'
                               for i, end in enumerate("a!a!!")))
        result = self.replay("--text", log, "-e", 'own if s =~ "^(a+)+$"')
        self.check_balance(result)
        probe = result.summary["probes"]["own"]
        self.assertEqual((probe["delivered"], probe["filtered"], probe["gave_up"]), (2, 3, 3))

    def test_the_mark_stands_under_what_was_written(self):
        for source, what in ("--pages", "recording"), ("--text", "log"):
            path = self.PAGES if source == "--pages" else self.LOG
            result = self.replay(source, path, "-e", "uprobe:/any/program:missing n=$arg1", status=5)
            self.assertIn(f"the {what} holds no event", result.err)
            lines = result.err.splitlines()
            mark = next(i for i, line in enumerate(lines) if line.strip() == "^")
            self.assertEqual(lines[mark - 1][lines[mark].index("^"):], "missing n=$arg1")

    def test_what_is_no_log(self):
        other = pathlib.Path(self.folder, "other")
        other.write_text("nothing of this\nis ftrace's\n")
        result = self.replay("--text", other, status=1)
        self.assertIn("not a line of the file is text of ftrace's", result.err)
        self.assertEqual(result.summary["session"]["decoded"], 0)
        # A trace without events is one all the same.
        other.write_text("# tracer: nop\n#\n")
        self.assertEqual(self.replay("--text", other).events, [])

    def test_an_event_across_the_pieces_of_a_file(self):
        """A string with newlines is one event, wherever the reader's pieces of the file end."""
        line = '            prog-7       [003] .....     2.{:06}: own: (0x1) s="one\ntwo\nthree"\n'
        log = pathlib.Path(self.folder, "log")
        log.write_text("".join(line.format(i) for i in range(5000)))
        result = self.replay("--text", log)
        self.assertEqual(len(result.events), 5000)
        self.assertEqual({e["args"]["s"] for e in result.events}, {"one\ntwo\nthree"})


if __name__ == "__main__":
    harness.main()
