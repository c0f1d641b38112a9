#!/usr/bin/env python3
"""Who may include whom: compares every #include of the tree with the table in ARCHITECTURE.md.

usage: layering.py TREE [-- COMPILER [FLAG...]]     (the compiler also checks that each header stands alone)
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

# "model" holds models for spin, whose files are called .h, too.
SKIPPED = {"build", ".git", "docs", "packaging", "model"}
PUBLIC = "consumers/client/tracefan.h"
C_HEADERS = re.compile(r"<(assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|"
                       r"signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|"
                       r"tgmath|threads|time|uchar|wchar|wctype)\.h>")
INCLUDE = re.compile(r'^\s*#\s*include\s*(<[^>]*>|"[^"]*")', re.M)


def read_table(text):
    """The rows of "| `folder/` | holds | may include |" as {folder: [allowed]}; None allows anything."""
    rows = {}
    folders = re.findall(r"^\| `([a-z/]+)/` \|[^|]*\| (.*) \|$", text, re.M)
    full = {path.rsplit("/", 1)[-1]: path for path, _ in folders}
    for folder, allowed in folders:
        rows[folder] = []
        for word in allowed.replace("`", "").split(", "):
            if word == "anything":
                rows[folder] = None
            elif word == "the public header":
                rows[folder].append(PUBLIC)
            elif word.endswith(".h"):
                rows[folder].append(word)
            elif word in full:
                rows[folder].append(full[word] + "/")
            else:
                raise ValueError(f"{folder}: no such folder in the table: {word}")
    return rows


def row_of(rows, path):
    """The row of the nearest folder above `path`."""
    for parent in path.parents:
        if parent.as_posix() in rows:
            return parent.as_posix()
    return None


def sources(tree):
    for folder, names, files in os.walk(tree):
        names[:] = [n for n in names if n not in SKIPPED and not n.startswith(".")]
        for name in files:
            if name.endswith((".c", ".h")):
                yield (pathlib.Path(folder) / name).relative_to(tree)


def resolve(tree, path, name):
    """What `#include "name"` in `path` means, from the top of the tree."""
    if (tree / name).exists():
        return name
    beside = path.parent / name
    if (tree / beside).exists():
        return beside.as_posix()
    return PUBLIC if name == os.path.basename(PUBLIC) else name


def check_include(tree, rows, path, include):
    """Why this include is wrong, or None."""
    if include.startswith("<"):
        if path.as_posix() == PUBLIC and not C_HEADERS.fullmatch(include):
            return "the public header includes C headers only"
        if path.name.endswith("_abi.h") and not C_HEADERS.fullmatch(include):
            return "an *_abi.h includes C headers and other *_abi.h only"
        return None
    target = resolve(tree, path, include.strip('"'))
    row = row_of(rows, path)
    if row is None:
        return "this folder has no row in ARCHITECTURE.md"
    if path.as_posix() == PUBLIC:
        return "the public header includes C headers only"
    if path.name.endswith("_abi.h") and not target.endswith("_abi.h"):
        return "an *_abi.h includes C headers and other *_abi.h only"
    if rows[row] is not None and not any(target == a or a.endswith("/") and target.startswith(a) for a in rows[row]):
        return f"{row}/ may include {', '.join(rows[row])}"
    return None


def violations(tree):
    rows = read_table((tree / "ARCHITECTURE.md").read_text())
    found = []
    for path in sources(tree):
        text = (tree / path).read_text(errors="replace")
        for match in INCLUDE.finditer(text):
            why = check_include(tree, rows, path, match[1])
            if why:
                line = text.count("\n", 0, match.start(1)) + 1
                found.append(f"{path}:{line}: {match[1]}: {why}")
    return found


TREE = None
COMPILER = []


class Layering(unittest.TestCase):
    def test_every_include_is_allowed(self):
        self.assertEqual(violations(TREE), [])

    def test_every_header_stands_alone(self):
        if not COMPILER:
            self.skipTest("no compiler was named")
        for path in sources(TREE):
            if path.suffix == ".h":
                with self.subTest(header=path.as_posix()):
                    r = subprocess.run([*COMPILER, "-fsyntax-only", "-I", TREE, "-include", path, "-x", "c", os.devnull],
                                       cwd=TREE, capture_output=True, text=True)
                    self.assertEqual(r.returncode, 0, r.stderr)

    def test_the_check_finds_what_is_wrong(self):
        """One forbidden include of each kind, and what is allowed beside it."""
        table = ("| `base/` | x | base |\n| `shm/` | x | shm, base |\n| `reader/` | x | reader, shm, base |\n"
                 "| `router/` | x | router, shm, base |\n| `consumers/client/` | x | client, shm, base |\n"
                 "| `consumers/cli/` | x | the public header, cli, `base/exit_status.h` |\n| `tests/` | x | anything |\n")
        files = {
            "base/a.c": ('"base/a.h"', '"shm/ring.h"'),
            "shm/ring_abi.h": ("<stdint.h>", "<unistd.h>"),
            "shm/pool_abi.h": ('"shm/ring_abi.h"', '"base/a.h"'),
            "reader/a.c": ('"shm/ring.h"', '"router/page.h"'),
            "router/a.c": ('"router/page.h"', '"tests/support/fuzz.h"'),
            "consumers/client/tracefan.h": ("<stdint.h>", "<sys/types.h>"),
            "consumers/client/a.c": ('"shm/ring.h"', '"consumers/cli/b.h"'),
            "consumers/cli/a.c": ('"base/exit_status.h"', '"base/log.h"'),
            "consumers/cli/b.c": ('"tracefan.h"', '"consumers/client/inner.h"'),
            "stray/a.c": ("<stdio.h>", '"base/a.h"'),
            "tests/base/a.c": ('"reader/a.h"',),
        }
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "ARCHITECTURE.md").write_text(table)
            for name, includes in files.items():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                (tree / name).write_text("".join(f"#include {i}\n" for i in includes))
            found = sorted(line.split(": ")[0] for line in violations(tree))
        expected = sorted(f"{name}:2" for name, includes in files.items() if len(includes) == 2)
        self.assertEqual(found, expected)


if __name__ == "__main__":
    words = sys.argv[1:]
    if not words:
        sys.exit(__doc__)
    TREE = pathlib.Path(words[0]).resolve()
    COMPILER = words[2:]
    unittest.main(argv=sys.argv[:1], verbosity=2)
