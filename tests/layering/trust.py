#!/usr/bin/env python3
"""docs/trust.md shows the rows that the code has.

usage: trust.py TREE [--update]     (--update writes the tables anew)

A line "<!-- rows of FILE NAME -->" stands above a table that shows the array NAME of FILE.
"""
import pathlib
import re
import sys

MARK = re.compile(r"<!-- rows of (\S+) (\w+) -->\n\n?((?:\|.*\n)*)\n*")
ARGUMENTS = {"CONFINE_NO_CODE": "never PROT_EXEC", "CONFINE_SELF": "of itself only", "CONFINE_TO_READ": "never to write"}
ACCESSES = {"CONFINE_READ": "read", "CONFINE_WRITE": "write", "CONFINE_REMOVE": "remove"}


def array(text, name):
    body = re.search(r"\b%s\[\] = \{\n(.*?)\n\s*\};" % name, text, re.S)
    if not body:
        raise ValueError(f"no array {name}")
    return body[1]


def rows(text, name):
    """The table's lines for an array of calls, of files or of opcodes."""
    body = array(text, name)
    calls = re.findall(r'\{ "(\w+)",\s*"([^"]*)"(?:,\s*(CONFINE_\w+))? \}', body)
    files = re.findall(r'\{ "(/?\w+)",\s*((?:CONFINE_\w+(?: \| )?)+),\s*"([^"]*)" \}', body)
    opcodes = re.findall(r"IORING_OP_(\w+),\s*/\* (.*?) \*/", body, re.S)
    if body.count('{ "') + body.count("IORING_OP") != len(calls) + len(files) + len(opcodes):
        raise ValueError(f"{name} has a row that isn't understood")
    if calls:
        yield "| call | why |\n|---|---|\n"
        for call, why, argument in calls:
            yield f"| `{call}` | {why}{'; ' + ARGUMENTS[argument] if argument and ARGUMENTS[argument] else ''} |\n"
    elif files:
        yield "| file | access | why |\n|---|---|---|\n"
        for path, access, why in files:
            yield f"| `{path}` | {' and '.join(ACCESSES[a] for a in access.split(' | '))} | {why} |\n"
    else:
        yield "| opcode | why |\n|---|---|\n"
        for opcode, why in opcodes:
            yield f"| `{opcode}` | {' '.join(why.split())} |\n"


def main(tree, update):
    page = tree / "docs" / "trust.md"
    text = page.read_text()
    marks = MARK.findall(text)
    assert len(marks) >= 6, "the page has lost its tables"
    wrong = 0

    def table(match):
        nonlocal wrong
        expected = "".join(rows((tree / match[1]).read_text(), match[2]))
        if match[3] != expected:
            wrong += 1
            if not update:
                print(f"docs/trust.md: the table of {match[1]} {match[2]} should be:\n{expected}")
        return f"<!-- rows of {match[1]} {match[2]} -->\n\n{expected}\n"

    text = MARK.sub(table, text)
    if update:
        page.write_text(text)
        return 0
    print(f"{len(marks)} tables, {wrong} differ" + (": run tests/layering/trust.py TREE --update" if wrong else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--update"]):
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), len(sys.argv) == 3))
