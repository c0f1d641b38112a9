#!/usr/bin/env python3
"""A uprobe on a function whose every call is known: as many events as calls, and every value right."""
import os

import harness

STEP = 0x9e3779b97f4a7c15


def setUpModule():
    harness.require_file("uprobe_events", "uprobes")


class Uprobe(harness.TestCase):
    def probe(self, program):
        return (f"h=uprobe:{program}:workload_call n={harness.argument(1)}:u64 "
                f"s=+0({harness.argument(2)}):string")

    def check(self, source, count):
        workload = harness.program("workload_calls")
        result = harness.trace("-s", source, "-e", self.probe(workload), "-o", "json", "--", workload, count)
        self.check_ended(result)
        self.check_balance(result)
        self.check_no_loss(result)
        self.check_order(result.events)
        self.assertEqual({e["probe"] for e in result.events}, {"h"})
        expected = [(i * STEP % 2**64, f"call {i} of {count}") for i in range(count)]
        self.assertEqual([(e["args"]["n"], e["args"]["s"]) for e in result.events], expected)
        self.check_names(result.events, source, "workload_calls")
        self.assertEqual(len({e["pid"] for e in result.events}), 1)

    def test_a_thousand_calls_raw(self):
        self.check("raw", 1000)

    def test_a_thousand_calls_text(self):
        self.check("text", 1000)

    def test_a_name_with_blanks_and_colons(self):
        """What the kernel's own notation can't say."""
        target = f"{self.folder}/a program: one"
        with open(harness.program("workload_calls"), "rb") as source, open(target, "wb") as copy:
            copy.write(source.read())
        os.chmod(target, 0o755)
        quoted = target.replace(" ", "\\ ")
        result = harness.trace("-e", self.probe(quoted), "-o", "json", "--", target, 10)
        self.check_ended(result)
        self.assertEqual([e["args"]["s"] for e in result.of("h")], [f"call {i} of 10" for i in range(10)])


if __name__ == "__main__":
    harness.main()
