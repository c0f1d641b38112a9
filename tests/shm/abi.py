#!/usr/bin/env python3
"""The layouts that cross process boundaries: compares every struct, enumerator and constant of shm/*_abi.h, as
the compiler lays them out, with abi.golden.

usage: abi.py TREE [--update] -- COMPILER [FLAG...]

A difference is a change of the protocol between processes that may be of different builds: raise the version
(SEGMENT_VERSION, CONTROL_VERSION) unless only something new was added, then run this with --update.
"""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path(__file__).with_name("abi.golden")


def strip_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def members(body):
    """The names that a struct's body declares."""
    for declaration in body.split(";"):
        declaration = declaration.strip()
        if declaration:
            names = re.fullmatch(r"(?:struct )?\w+ (.*)", declaration, re.S)[1]
            for name in names.split(","):
                yield re.match(r"\s*(\w+)", name)[1]


def statements(text):
    """C statements that print what one header defines."""
    for name, value in re.findall(r"^#define (\w+)[ \t]+(\S.*)$", text, re.M):
        if not name.endswith("_H"):
            yield f'printf("constant {name} = %llu\\n", (unsigned long long)({value.strip()}));'
    for name, body in re.findall(r"^enum (\w+) \{(.*?)^\};", text, re.M | re.S):
        for enumerator in re.findall(r"^\s*(\w+)", body, re.M):
            yield f'printf("enum {name} {enumerator} = %lld\\n", (long long){enumerator});'
    for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.M | re.S):
        yield f'printf("struct {name}: %zu\\n", sizeof(struct {name}));'
        for member in members(body):
            yield (f'printf("\\t{member}: at %zu, %zu\\n", offsetof(struct {name}, {member}), '
                   f'sizeof(((struct {name} *)NULL)->{member}));')


def layouts(tree, compiler):
    headers = sorted((tree / "shm").glob("*_abi.h"))
    lines = ["#include <stddef.h>", "#include <stdio.h>"]
    lines += [f'#include "shm/{h.name}"' for h in headers]
    lines.append("int main(void)\n{")
    for header in headers:
        lines.append(f'printf("{header.name}\\n");')
        lines += statements(strip_comments(header.read_text()))
    lines.append("return 0;\n}")
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "layouts.c"
        source.write_text("\n".join(lines) + "\n")
        program = source.with_suffix("")
        subprocess.run([*compiler, "-I", tree, source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def main():
    if "--" not in sys.argv:
        sys.exit(__doc__)
    split = sys.argv.index("--")
    words, compiler = sys.argv[1:split], sys.argv[split + 1:]
    now = layouts(pathlib.Path(words[0]).resolve(), compiler)
    if "--update" in words:
        GOLDEN.write_text(now)
        return 0
    difference = list(difflib.unified_diff(GOLDEN.read_text().splitlines(), now.splitlines(), "abi.golden", "compiled",
                                           lineterm="", n=1))
    if difference:
        print("\n".join(difference))
        print("\nThe protocol between the processes has changed; tests/shm/abi.py says what to do.")
        return 1
    print(f"{len(now.splitlines())} lines agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
