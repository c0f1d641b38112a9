#!/usr/bin/env python3
"""No hidden state: lists the writable variables of file (or function) scope in the given static libraries.

usage: state.py NM LIBRARY...

One context struct per process is handed from caller to callee. The exceptions are arg_* (options), signal_*
(what a signal handler may write) and the names below, each with its reason.
"""
import re
import subprocess
import sys

EXCEPTIONS = {
    "log_state": "a log has no caller that could hand it a context",
}


def writable(nm, library):
    """(object, symbol) of what the linker would put into .data or .bss."""
    out = subprocess.run([nm, "--format=sysv", library], check=True, capture_output=True, text=True).stdout
    member = library
    for line in out.splitlines():
        header = re.match(r"Symbols from (?:.*\[)?([^\]]+?)\]?:$", line)
        if header:
            member = header[1]
            continue
        columns = [c.strip() for c in line.split("|")]
        if len(columns) == 7 and re.fullmatch(r"\.(data|bss)(?!\.rel\.ro)\b.*|\*COM\*", columns[6]):
            yield member, columns[0]


def main(nm, libraries):
    found = 0
    for library in libraries:
        for member, symbol in writable(nm, library):
            name = re.sub(r"\.\d+$", "", symbol)
            if not name.startswith(("arg_", "signal_")) and name not in EXCEPTIONS:
                print(f"{library}: {member}: {symbol} is writable")
                found += 1
    print(f"{len(libraries)} libraries, {found} variables that should be in a context struct")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
