#!/usr/bin/env python3
"""The recorded fixtures (tests/fixtures), replayed once as raw pages and once as the kernel's own text of the same events,
through the whole program, which needs neither root nor tracefs for it. A log has no format files: what its fields are is
told by its lines alone."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

import harness  # noqa: E402 (its folder is named above)

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
# What the kernel prints in another way than it stores it, or not at all.
UNPRINTED = {"__syscall_nr", "ip", "__probe_ip", "__probe_func", "__probe_ret_ip"}


class Fixtures(harness.TestCase):
    def replay(self, *words):
        result = harness.run([harness.program("tracefan"), "replay", "-o", "json", *words])
        self.check_ended(result)
        self.check_balance(result)
        return result

    @staticmethod
    def same(stored, said):
        """A number that has two readings in a log, an array, a word or a character stays the text that it was there."""
        if type(stored) is type(said):
            return stored == said
        if isinstance(stored, bool) or said in ("true", "false"):
            return said == ("true" if stored else "false")
        if isinstance(stored, list):
            return stored == [int(n, 0) for n in said.strip("{}").split(",")]
        number = said.split(" ", 1)[0]
        if re.fullmatch("(0x)?[0-9a-f]+", number):
            return stored in (int(number, 16), int(number) if number.isdigit() else -1)
        # Words of flags, and a character.
        return bool(re.fullmatch("[A-Z_|]+", said)) or said.strip("'") == chr(stored).rstrip("\0")

    def check_same(self, folder):
        pages = self.replay("--pages", folder).events
        lines = self.replay("--text", folder / "expected/kernel-text.txt").events
        self.assertEqual(len(pages), len(lines))
        pages.sort(key=lambda e: ((e["time"] + 500) // 1000, e["cpu"]))
        lines.sort(key=lambda e: (e["time"] // 1000, e["cpu"]))
        compared = 0
        for page, line in zip(pages, lines):
            # A log does not tell an event's system.
            self.assertEqual(page["probe"].rpartition(":")[2].replace("print", "tracing_mark_write"), line["probe"])
            self.assertEqual(((page["time"] + 500) // 1000, page["cpu"], page["pid"], page["comm"]),
                             (line["time"] // 1000, line["cpu"], line["pid"], line["comm"]))
            for name in (set(line["args"]) & set(page["args"])) - UNPRINTED:
                stored, said = page["args"][name], line["args"][name]
                self.assertTrue(self.same(stored, said), f"{name}: {stored} and {said} in {page} and {line}")
                compared += 1
        return compared

    def test_pages_and_text(self):
        for folder in (FIXTURES / "pages", *sorted(FIXTURES.glob("guest-*"))):
            with self.subTest(fixture=folder.name):
                self.assertGreater(self.check_same(folder), 150)


if __name__ == "__main__":
    harness.main()
