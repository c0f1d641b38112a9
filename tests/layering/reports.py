#!/usr/bin/env python3
"""The tests that docs/reports.md names are there, and in the files that it names.

usage: reports.py TREE
"""
import pathlib
import re
import sys


def named(cell):
    """(file, name) of each test in a row's last cell: names belong to the file before them; without one, name is None."""
    file = None
    for word in re.findall(r"`([^`]+)`", cell):
        if re.fullmatch(r"[\w/]+\.(c|py)", word):
            file = word
            yield file, None
        elif re.fullmatch(r"\w+", word) and file:
            yield file, word


def lacking(page, files):
    """What is named and not there; `files` is {path: text}."""
    for line in page.splitlines():
        if not line.startswith("| "):
            continue
        for file, name in named(line.rsplit("|", 2)[1]):
            texts = [text for path, text in files.items() if path == file or path.endswith("/" + file)]
            # A name that begins with _ is the end of one.
            if not texts or name and not any(re.search(r"(?<!\w)%s\b" % name.replace("_", r"\w*_", name[0] == "_"), t) for t in texts):
                yield f"{file} {name or ''}".strip()


def main(tree):
    files = {path.relative_to(tree).as_posix(): path.read_text(errors="replace")
             for folder in ("tests", "reader") for path in (tree / folder).rglob("*") if path.suffix in (".c", ".py")}
    page = (tree / "docs" / "reports.md").read_text()
    assert list(lacking("| a | b | `a.c` `t`, `u`; `b.py` |\n", {"x/a.c": "t _u"})) == ["a.c u", "b.py"]
    wrong = list(lacking(page, files))
    for name in wrong:
        print(f"docs/reports.md names a test that is not there: {name}")
    count = sum(len(list(named(line))) for line in page.splitlines())
    print(f"{count} files and tests, {len(wrong)} not there")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
