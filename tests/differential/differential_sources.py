#!/usr/bin/env python3
"""The same workload through the binary source and through the text source of the whole program, field by field.

Without address randomization two runs of a program pass the same values, pointers included. What the program did is
known besides, so that both are not wrong in the same way. What text has only as words it must not have as numbers."""
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

import harness  # noqa: E402 (its folder is named above)

SOURCES = ("raw", "text")


def setUpModule():
    harness.require_event("sched", "sched_process_exec")
    harness.require_event("syscalls", "sys_enter_openat")


def signed(value, bits):
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


class Sources(harness.TestCase):
    def trace(self, source, probes, *command):
        """(result, what the command printed)."""
        file = pathlib.Path(self.folder, f"events-{source}")
        words = [w for p in probes for w in ("-e", p)]
        result = harness.trace("-s", source, *words, "-o", "json", "-w", file, "--", "setarch", "-R", *command)
        said, result.out = result.out, file.read_text()
        self.check_ended(result)
        self.check_balance(result)
        self.check_no_loss(result)
        self.check_order(result.events)
        return result, said

    def both(self, probes, *command):
        """({source: result}, what the command printed, both times)."""
        traced = {source: self.trace(source, probes, *command) for source in SOURCES}
        self.assertEqual(traced["raw"][1], traced["text"][1])
        return {source: result for source, (result, _) in traced.items()}, traced["raw"][1]

    def assert_same(self, raw, text, absent=()):
        """Two lists of events of one probe have the same fields, in the same order, with the same values. `absent`: what
        the text source has no value of."""
        self.assertEqual(len(raw), len(text))
        for a, b in zip(raw, text):
            self.assertEqual(set(absent) & set(b["args"]), set())
            args = {k: v for k, v in a["args"].items() if k not in absent}
            self.assertEqual(list(args.items()), list(b["args"].items()))
            self.assertEqual((a["cpu"] is None, a["pid"] > 0, b["pid"] > 0), (False, True, True))


class Programs(Sources):
    def setUp(self):
        harness.require_file("uprobe_events", "uprobes")
        super().setUp()

    # Each field by what it is of the value.
    NUMBERS = {"u8": lambda v: v % 2**8, "u16": lambda v: v % 2**16, "u32": lambda v: v % 2**32, "u64": lambda v: v,
               "s8": lambda v: signed(v, 8), "s16": lambda v: signed(v, 16), "s32": lambda v: signed(v, 32),
               "s64": lambda v: signed(v, 64), "x8": lambda v: v % 2**8, "x16": lambda v: v % 2**16,
               "x32": lambda v: v % 2**32, "x64": lambda v: v}

    def check_calls(self, fetch, expected):
        """`expected` makes the arguments out of the value and the text of a call."""
        workload = harness.program("workload_kinds")
        results, said = self.both([f"k=uprobe:{workload}:workload_kinds_call {fetch}"], workload)
        calls = [line.split(" ") for line in said.splitlines()]
        self.assertGreater(len(calls), 15)
        for source, result in results.items():
            events = result.of("k")
            self.assertEqual(len(events), len(calls), source)
            for event, (value, text) in zip(events, calls):
                with self.subTest(source=source, value=value, text=text):
                    self.assertEqual(event["args"], expected(int(value, 16), bytes.fromhex(text)))
        self.assert_same(results["raw"].of("k"), results["text"].of("k"))

    def test_integers_of_each_width_and_sign(self):
        value = harness.argument(1)
        self.check_calls(" ".join(f"{name}={value}:{name}" for name in self.NUMBERS),
                         lambda v, _: {name: f(v) for name, f in self.NUMBERS.items()})

    def test_bit_fields(self):
        value = harness.argument(1)
        self.check_calls(f"low={value}:b4@1/32 high={value}:b16@48/64",
                         lambda v, _: {"low": v >> 1 & 15, "high": v >> 48})

    def test_arrays(self):
        place = harness.argument(2)
        self.check_calls(f"a=+0({place}):u8[8] b=+0({place}):s16[3] c=+1({place}):x32[1]", lambda v, _: {
            "a": [0, 0x80, 0xff, 0x7f, 1, 0xfe, 0x55, 0xaa], "b": [-32768, 0x7fff, -511], "c": [0x017fff80]})

    def test_strings(self):
        """By the bytes: empty, with blanks and quotes, with a newline, long, not in UTF-8."""
        place = harness.argument(3)
        workload = harness.program("workload_kinds")
        results, said = self.both([f"k=uprobe:{workload}:workload_kinds_call s=+0({place}):string"], workload)
        texts = [bytes.fromhex(line.split(" ")[1]) for line in said.splitlines()]
        self.assertTrue({b""} < set(texts) and max(map(len, texts)) > 1000)
        for result in results.values():
            self.assertEqual([harness.as_bytes(e["args"]["s"]) for e in result.of("k")], texts)
        self.assert_same(results["raw"].of("k"), results["text"].of("k"))

    def test_returns(self):
        workload = harness.program("workload_kinds")
        results, said = self.both([f"r=uretprobe:{workload}:workload_kinds_call r=$retval:u64 s=$retval:s16"], workload)
        values = [int(line.split(" ")[0], 16) for line in said.splitlines()]
        for result in results.values():
            self.assertEqual([e["args"] for e in result.of("r")],
                             [{"r": ~v % 2**64, "s": signed(~v, 16)} for v in values])
        self.assert_same(results["raw"].of("r"), results["text"].of("r"))


def in_words(event):
    """The fields of an event that its text has as words."""
    text = (harness.TRACEFS / "events" / event / "format").read_text()
    return set(re.findall(r"__print_(?:flags|symbolic)\((?:REC->|\(unsigned long\)REC->)?(\w+)", text))


class Kernel(Sources):
    def test_system_calls(self):
        """Newer kernels print flags as words."""
        workload = harness.program("workload_open")
        place = pathlib.Path(self.folder, "place")
        results = {}
        for source in SOURCES:
            place.mkdir()
            results[source], said = self.trace(source, ["tracepoint:syscalls:sys_enter_openat",
                                                        "tracepoint:syscalls:sys_exit_openat"], workload, place)
            expected = [tuple(map(int, line.split())) for line in said.splitlines()]
            shutil.rmtree(place)
        words = in_words("syscalls/sys_enter_openat")
        # Others open files, too.
        own = {s: {e["pid"] for e in r.events if e["comm"] == os.path.basename(workload)[:15]} or
               # From text the thread may go by the name that it had before it executed the workload.
               {r.of("syscalls:sys_enter_openat")[-1]["pid"]} for s, r in results.items()}
        entered = {s: [e for e in r.of("syscalls:sys_enter_openat") if e["pid"] in own[s]][-len(expected):]
                   for s, r in results.items()}
        self.assertEqual([(e["args"]["flags"], e["args"]["mode"]) for e in entered["raw"]], expected)
        for source in SOURCES:
            for event in entered[source]:
                event["args"].pop("__syscall_nr", None)
        if words:
            # Then a mode that no flag asks for is left out, too.
            for a, b in zip(entered["raw"], entered["text"]):
                for name in {"mode"} - set(b["args"]):
                    a["args"].pop(name)
        self.assert_same(entered["raw"], entered["text"], words & {"flags"})
        returned = {s: [e for e in r.of("syscalls:sys_exit_openat") if e["pid"] in own[s]][-len(expected):]
                    for s, r in results.items()}
        for source in SOURCES:
            for event in returned[source]:
                event["args"].pop("__syscall_nr", None)
        self.assert_same(returned["raw"], returned["text"])
        self.assertTrue(any(e["args"]["ret"] == -2 for e in returned["text"]), "ENOENT of the missing file")

    def test_tracepoints(self):
        """A dynamic string, fixed ones, signed numbers, an array."""
        program = pathlib.Path(self.folder, 'a "program": x=1')
        shutil.copy2(harness.program("workload_kinds"), program)
        probes = ["tracepoint:sched:sched_process_exec", "tracepoint:task:task_rename",
                  "tracepoint:sched:sched_process_exit"]
        results, _ = self.both(probes, program)
        for probe in (p.removeprefix("tracepoint:") for p in probes):
            events = {}
            for source, result in results.items():
                pids = {e["pid"] for e in result.of("sched:sched_process_exec") if e["args"]["filename"] == str(program)}
                self.assertEqual(len(pids), 1)
                events[source] = [e for e in result.of(probe) if e["pid"] in pids]
                self.assertGreater(len(events[source]), 0, probe)
                # The process is another one.
                for event in events[source]:
                    for name in ("pid", "old_pid"):
                        if name in event["args"]:
                            self.assertEqual(event["args"].pop(name), event["pid"])
            self.assert_same(events["raw"], events["text"])

    def test_words_in_the_place_of_numbers(self):
        """A state that is printed as a letter."""
        results, _ = self.both(["tracepoint:sched:sched_switch if prev_comm == workload_kinds"],
                               harness.program("workload_kinds"))
        for event in results["text"].of("sched:sched_switch"):
            self.assertNotIn("prev_state", event["args"])
            self.assertEqual(event["args"]["prev_comm"], "workload_kinds")
        for event in results["raw"].of("sched:sched_switch"):
            self.assertIsInstance(event["args"]["prev_state"], int)
        self.assertGreater(len(results["text"].of("sched:sched_switch")), 0)


class KernelProbes(Sources):
    def setUp(self):
        harness.require_file("kprobe_events", "kprobes")
        super().setUp()

    def test_arguments_and_returns(self):
        workload = harness.program("workload_open")
        place = pathlib.Path(self.folder, "place")
        entry = "k=kprobe:do_sys_openat2 d=$arg1:s32 name=+0($arg2):ustring flags=+0($arg3):u64 how=+0($arg3):x64[3]"
        results, opened = {}, {}
        for source in SOURCES:
            place.mkdir()
            results[source], said = self.trace(source, [entry, "r=kretprobe:do_sys_openat2 r=$retval:s32"], workload, place)
            expected = [tuple(map(int, line.split())) for line in said.splitlines()]
            opened[source] = results[source].of("k")[-len(expected):]
            shutil.rmtree(place)
        for source in SOURCES:
            # O_LARGEFILE is the kernel's own addition.
            flags = [e["args"]["flags"] & ~0o100000 for e in opened[source]]
            self.assertEqual(flags, [f & ~0o100000 for f, _ in expected])
            self.assertEqual([e["args"]["how"][0] for e in opened[source]], [e["args"]["flags"] for e in opened[source]])
            self.assertEqual({"made", "missing", "."}, {e["args"]["name"] for e in opened[source]})
        self.assert_same(opened["raw"], opened["text"])
        self.assert_same(results["raw"].of("r")[-len(expected):], results["text"].of("r")[-len(expected):])


if __name__ == "__main__":
    harness.main()
