#!/usr/bin/env python3
"""Recordings, and files that output goes to: what is in them, what a start that is refused does to them, and what
happens when they take no more."""
import os
import pathlib
import random
import re
import subprocess

import harness

EVENT = "syscalls:sys_enter_getpgid"
FIRST = (1 << 26) + os.getpid() % 4096 * (1 << 14)
REFUSED = ("tracepoint:sched:no_such_event", "tracepoint:sched:sched_switch if no_such_field == 1")


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


def probe(count):
    return f"tracepoint:{EVENT} if pid >= {FIRST} && pid < {FIRST + count}"


def numbers(count):
    return [harness.program("workload_numbers"), str(harness.cpus()[0]), str(FIRST), str(count)]


class Recording(harness.TestCase):
    def path(self, name):
        return pathlib.Path(self.folder, name)

    def small_disk(self, size):
        disk = self.path("disk")
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tracefan-test", disk], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("tmpfs can't be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        return disk

    def record(self, path, *words, **more):
        return harness.run([harness.program("tracefan"), "record", "-o", path, *words], **more)

    def replay(self, path, *words, status=0):
        result = harness.run([harness.program("tracefan"), "replay", path, "-o", "json", *words])
        self.check_ended(result, status)
        return result

    def told(self, result, path, why="No space left on device"):
        """How many events were decoded, and how many of those are said not to be in the recording."""
        self.assertEqual(result.status, 1, result.err)
        decoded = int(re.search(r"session: \d+ committed = (\d+) decoded", result.err)[1])
        missing = re.search(rf"tracefan: {re.escape(str(path))}: {why}; (\d+) of the decoded events are not in the recording", result.err)
        self.assertIsNotNone(missing, result.err)
        return decoded, int(missing[1])

    def check_cut(self, result, path):
        decoded, missing = self.told(result, path)
        kept = self.replay(path, status=1)
        self.assertRegex(kept.err, rf"the recording is damaged at offset \d+ of {path.stat().st_size}: it was cut off")
        self.assertEqual(kept.summary["session"]["decoded"], decoded - missing)
        self.assertGreater(missing, 0)
        there = [e["args"]["pid"] for e in kept.of(EVENT)]
        self.assertEqual(there, list(range(FIRST, FIRST + len(there))))
        self.assertGreater(len(there), 0)

    # Of 20 bytes and more each: more than the disk and what the router holds have room for.
    MANY = 60000

    def test_a_full_disk(self):
        """It ends by itself: the command goes on for good."""
        path = self.small_disk("384k") / "file"
        work = f"{' '.join(numbers(self.MANY))}; exec sleep infinity"
        self.check_cut(self.record(path, "-e", probe(self.MANY), "--", "sh", "-c", work), path)

    def test_a_file_that_takes_nothing(self):
        """Told with the first that is written, also when so little comes that it would wait for more."""
        decoded, missing = self.told(self.record("/dev/full", "-e", probe(10), "--", *numbers(10)), "/dev/full")
        self.assertEqual(missing, decoded)

    def test_a_pipe_that_is_left(self):
        """It costs the recording, and not the session, which has an account of it."""
        path, kept = self.path("fifo"), self.path("kept")
        os.mkfifo(path)
        with kept.open("wb") as file:
            reader = harness.Process(["head", "-c", 100_000, path], stdout=file)
        work = f"{' '.join(numbers(self.MANY))}; exec sleep infinity"
        decoded, missing = self.told(self.record(path, "-e", probe(self.MANY), "--", "sh", "-c", work), path, "Broken pipe")
        self.check_ended(reader.wait())
        there = [e["args"]["pid"] for e in self.replay(kept, status=1).of(EVENT)]
        self.assertEqual(there, list(range(FIRST, FIRST + len(there))))
        # The pipe took what nobody read of it any more.
        self.assertGreater(len(there), 0)
        self.assertGreaterEqual(decoded - missing, len(there))
        self.assertGreater(missing, 0)

    def test_output_on_a_full_disk(self):
        """Whole lines, and no account of what is not there."""
        path = self.small_disk("64k") / "file"
        result = harness.trace("-e", probe(self.MANY), "-o", "json", "-w", path, "--", "sh", "-c",
                               f"{' '.join(numbers(self.MANY))}; exec sleep infinity")
        self.assertEqual(result.status, 1, result.err)
        self.assertIn(f"tracefan: writing to {path}: No space left on device", result.err)
        lines = harness.read_records(path.read_text())
        self.assertEqual([e["args"]["pid"] for e in lines], list(range(FIRST, FIRST + len(lines))))
        self.assertGreater(len(lines), 100)
        self.assertTrue(path.read_text().endswith("}\n"))

    def test_a_refused_start_costs_nothing(self):
        kept, fresh = self.path("kept"), self.path("fresh")
        kept.write_text("of yesterday\n")
        for probe_text in REFUSED:
            for words in ["record", "-o"], ["trace", "-w"]:
                for path in kept, fresh:
                    with self.subTest(probe=probe_text, words=words, path=path.name):
                        result = harness.run([harness.program("tracefan"), *words, path, "-e", f"tracepoint:{EVENT}", "-e", probe_text])
                        self.assertIn(result.status, (2, 5), result.err)
                        self.assertEqual(kept.read_text(), "of yesterday\n")
                        self.assertFalse(fresh.exists())

    def test_it_takes_the_place_of_an_older_one(self):
        """Which was longer."""
        path = self.path("file")
        path.write_bytes(b"x" * (1 << 20))
        self.check_ended(self.record(path, "-e", probe(10), "--", *numbers(10)))
        result = self.replay(path)
        self.assertEqual([e["args"]["pid"] for e in result.of(EVENT)], list(range(FIRST, FIRST + 10)))
        self.assertNotIn("cut off", result.err)

    def test_any_byte_that_is_another(self):
        """Wherever it is: the place that is told is of the part that it lies in, and what stands before that is shown."""
        path, damaged = self.path("file"), self.path("damaged")
        self.check_ended(self.record(path, "--interval", "1", "-e", probe(200), "--", *numbers(200)))
        whole, shown = path.read_bytes(), [e["args"]["pid"] for e in self.replay(path).of(EVENT)]
        starts = self.starts(whole)
        picks = random.Random(1)
        for at in (20, 100, 200, *(picks.randrange(256, len(whole)) for _ in range(30))):
            with self.subTest(at=at):
                other = bytearray(whole)
                other[at] ^= 1 << picks.randrange(8)
                damaged.write_bytes(other)
                result = harness.run([harness.program("tracefan"), "replay", damaged, "-o", "json"])
                self.check_ended(result, 1)
                told = int(re.search(r"the recording is damaged at offset (\d+)", result.err)[1])
                self.assertEqual(told, max(start for start in starts if start <= at))
                if at >= 256:
                    there = [e["args"]["pid"] for e in result.of(EVENT)]
                    self.assertEqual(there, shown[:len(there)])

    def test_so_many_events(self):
        """The command goes on to its end; what came before it was told to end is in the file."""
        path = self.path("file")
        result = self.record(path, "-n", "7", "-q", "-e", probe(20), "--", *numbers(20))
        self.check_ended(result)
        there = [e["args"]["pid"] for e in self.replay(path).of(EVENT)]
        self.assertEqual(there, list(range(FIRST, FIRST + len(there))))
        self.assertIn(len(there), range(7, 21))

    def test_stacks(self):
        """Those that lie in the recording, each with its event; nothing of this kernel or these processes is said of them."""
        path = self.path("file")
        self.check_ended(self.record(path, "-e", f"tracepoint:{EVENT} stack ustack if pid >= {FIRST} && pid < {FIRST + 5}", "--", *numbers(5)))
        waiting, expected = None, []
        for record in self.replay(path).events:
            if record["probe"] == EVENT:
                waiting = record
            elif record["probe"] == "ftrace:kernel_stack" and waiting and record["pid"] == waiting["pid"]:
                # None where the stack has less frames than the format says of it.
                expected.append((record["args"]["caller"] or [])[:record["args"]["size"]])
                waiting = None
        events = self.replay(path, "-e", f"{EVENT} ustack stack if pid != 0").of(EVENT)
        self.assertEqual(len(events), 5)
        for event, callers in zip(events, expected, strict=True):
            self.assertEqual([frame["address"] for frame in event["stack"]][:len(callers)], callers)
            self.assertGreater(len(event["ustack"]), 0)
            self.assertEqual({frame["symbol"] for frame in event["stack"] + event["ustack"]}, {None})
        # Who doesn't ask for them gets none.
        self.assertNotIn("stack", self.replay(path, "-e", EVENT).of(EVENT)[0])

    def test_no_more_than_was_committed(self):
        """Looks after every event find sub-buffers that are nearly empty."""
        path = self.path("file")
        script = "for i in 0 1 2 3 4 5 6 7 8 9; do {0} {1} $(({2} + i)) 1; sleep 0.05; done"
        work = script.format(harness.program("workload_numbers"), harness.cpus()[0], FIRST)
        self.check_ended(self.record(path, "--interval", "1", "-e", probe(10), "--", "sh", "-c", work))
        self.assertEqual(len(self.replay(path).of(EVENT)), 10)
        entries = self.entries(path.read_bytes())
        self.assertGreater(len(entries), 1)
        # A sub-buffer's header, its events, and the count of lost ones.
        for page in entries:
            self.assertLessEqual(len(page), 16 + (int.from_bytes(page[8:12], "little") & (1 << 27) - 1) + 8)

    @staticmethod
    def starts(recording):
        """Of the header and of all frames."""
        at, found = 256, [0]
        while at < len(recording):
            found.append(at)
            at += 16 + (int.from_bytes(recording[at + 8:at + 16], "little") + 7) // 8 * 8
        return found

    @staticmethod
    def entries(recording):
        """The sub-buffers that are in it."""
        at, found = 256, []
        while at < len(recording):
            kind, size = int.from_bytes(recording[at:at + 4], "little"), int.from_bytes(recording[at + 8:at + 16], "little")
            if kind == 4 and recording[at + 16 + 36] == 1:
                found.append(recording[at + 16 + 48:at + 16 + size])
            at += 16 + (size + 7) // 8 * 8
        return found


if __name__ == "__main__":
    harness.main()
