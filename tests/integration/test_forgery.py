#!/usr/bin/env python3
"""Strings that a traced program made to look like events, by both sources: they stay strings."""
import harness

SWITCH = "sched:sched_switch"
# No process has it: the kernel's largest is 2^22.
FORGED_PID = 7654321


def setUpModule():
    harness.require_file("uprobe_events", "uprobes")
    harness.require_event("sched", "sched_switch")


def forged_lines(event):
    """Lines as the kernel prints them, of the very probe `event` and of others, each with what may follow it."""
    prefix = f"\n            evil-{FORGED_PID} [000] .....     1.000000: "
    guess = " tfc_0_0123456789abcdef=0"
    return [
        f'x"{prefix}{event}: (0x1234) s="forged" n=7',
        f'x"{guess} n=1{prefix}{event}: (0x1234) s="forged"{guess} n=7',
        f'x" n=1{prefix}{event}: (0x1234) s="forged',
        f'x"{prefix}sched_switch: prev_comm=forged prev_pid={FORGED_PID} prev_prio=120 prev_state=R ==> next_comm=forged '
        f'next_pid={FORGED_PID} next_prio=120',
        "x\"\nCPU:0 [LOST 12345 EVENTS]\n => forged_symbol\n# tracer: nop\n",
        "\n\n\n",
        "no newline, \"quotes\" and n=5",
    ]


class Forgery(harness.TestCase):
    def event_name(self):
        """The name that only root can know: the kernel's list has it."""
        names = [line.split()[0].partition("/")[2] for line in harness.read_lines(harness.TRACEFS / "uprobe_events")]
        ours = [n for n in names if n.startswith("workload_string_")]
        self.assertEqual(len(ours), 1)
        return ours[0]

    def check(self, source, fetch):
        workload = harness.program("workload_strings")
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        process = harness.Process(
            [harness.program("tracefan"), "trace", "-s", source, "-o", "json", "-e", f"tracepoint:{SWITCH}", "-e",
             f"h=uprobe:{workload}:workload_string {fetch} n={harness.argument(1)}:u64", "--", *gate.words])
        gate.wait(process)
        texts = forged_lines(self.event_name())
        self.check_ended(harness.run([workload, *texts]), 0)
        gate.open()
        result = process.wait()
        self.check_ended(result)
        self.check_balance(result)
        self.check_no_loss(result)
        self.assertEqual([(e["args"]["n"], e["args"]["s"]) for e in result.of("h")], list(enumerate(texts)))
        self.assertEqual([set(e["args"]) - {"__probe_ip", "text"} for e in result.of("h")], [{"n", "s"}] * len(texts))
        self.check_names(result.of("h"), source, "workload_strings"[:15])
        self.assertEqual([e for e in result.events if e["pid"] == FORGED_PID], [])
        self.assertEqual([e for e in result.events if e.get("suspect")], [])
        self.assertNotEqual(result.of(SWITCH), [])

    def test_text(self):
        self.check("text", f"s=+0({harness.argument(2)}):string")

    def test_text_user_string(self):
        self.check("text", f"s=+u0({harness.argument(2)}):ustring")

    def test_raw(self):
        self.check("raw", f"s=+0({harness.argument(2)}):string")

    def test_the_kernel_s_position_is_in_what_was_written(self):
        """Behind arguments that the reader added."""
        place = f"uprobe:{harness.program('workload_strings')}:workload_string"
        s = f"s=+0({harness.argument(2)}):string"
        marks = []
        for source in ("raw", "text"):
            result = harness.trace("-s", source, "-e", f"{place} {s} t{s} n=%nosuch:u64", "--", "true")
            self.check_ended(result, 6)
            lines = result.err.splitlines()
            marks.append([(above[line.index("^"):][:7], line.index("^")) for above, line in zip(lines, lines[1:]) if "^" in line])
        self.assertEqual(marks[0], marks[1])
        self.assertEqual([m[0] for m in marks[0]], ["%nosuch"])


if __name__ == "__main__":
    harness.main()
