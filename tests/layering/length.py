#!/usr/bin/env python3
"""No file of more than 700 lines, no function of more than 70: past them there is a seam.

usage: length.py TREE

A function counts from the first line of its head to its closing brace, in C, and as Python's parser has it.
"""
import ast
import os
import pathlib
import sys
import tempfile
import unittest

FILE_MAX = 700
FUNCTION_MAX = 70
SKIPPED = {"build", "fixtures"}
# What may be longer, with the reason.
EXCEPTIONS = {}


def c_functions(lines):
    """(first line, its text, length) of each function: its braces stand alone at the margin."""
    opened = None
    for i, line in enumerate(lines):
        if line == "{":
            opened = i
        elif line == "}" and opened is not None:
            first = opened
            while first > 0 and lines[first - 1] and lines[first - 1][0] not in "}#*/ " and lines[first - 1][-1] not in ";/":
                first -= 1
            yield first + 1, lines[first].strip(), i - first + 1
            opened = None


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.name, node.end_lineno - node.lineno + 1


def sources(tree):
    for folder, names, files in os.walk(tree):
        names[:] = [n for n in names if n not in SKIPPED and not n.startswith(".")]
        for name in files:
            if name.endswith((".c", ".h", ".py")):
                yield pathlib.Path(folder) / name


def too_long(tree, exceptions):
    found = []
    for path in sources(tree):
        name = path.relative_to(tree).as_posix()
        text = path.read_text(errors="replace")
        lines = text.splitlines()
        if len(lines) > FILE_MAX and name not in exceptions:
            found.append(f"{name}: {len(lines)} lines, of {FILE_MAX} at the most")
        for line, head, length in python_functions(text) if path.suffix == ".py" else c_functions(lines):
            if length > FUNCTION_MAX:
                found.append(f"{name}:{line}: {length} lines, of {FUNCTION_MAX} at the most: {head}")
    return sorted(found)


TREE = None


class Length(unittest.TestCase):
    def test_nothing_is_too_long(self):
        self.assertEqual(too_long(TREE, EXCEPTIONS), [])

    def test_the_check_finds_what_is_too_long(self):
        """What has just the length that is allowed, and a line more, of each kind."""
        def function(length):
            return "#define X\nstatic int f(int a,\n\tint b)\n{\n" + "\ta++;\n" * (length - 4) + "}\n"

        files = {
            "a/file.c": "int a;\n" * FILE_MAX,
            "a/long_file.h": "int a;\n" * (FILE_MAX + 1),
            "a/excepted.c": "int a;\n" * (FILE_MAX + 1),
            "a/function.c": "int a;\n" + function(FUNCTION_MAX) + "\n" + function(FUNCTION_MAX),
            "a/long_function.c": function(FUNCTION_MAX) + "\n/* Why. */\n" + function(FUNCTION_MAX + 1),
            "a/function.py": "def f():\n" + "    a()\n" * (FUNCTION_MAX - 1),
            "a/long_function.py": "class A:\n    def f(self):\n" + "        a()\n" * FUNCTION_MAX,
            "build/a.c": "int a;\n" * (FILE_MAX + 1),
        }
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for name, text in files.items():
                (tree / name).parent.mkdir(exist_ok=True)
                (tree / name).write_text(text)
            found = [line.split(": ")[0] for line in too_long(tree, {"a/excepted.c": "a reason"})]
        self.assertEqual(found, ["a/long_file.h", f"a/long_function.c:{FUNCTION_MAX + 5}", "a/long_function.py:2"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    TREE = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1], verbosity=2)
