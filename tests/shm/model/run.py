#!/usr/bin/env python3
"""Checks the models with spin: each must hold as it stands, and must fail with each part left out that it says
it needs. Exit status 77 (skipped) where spin or a C compiler is missing.

usage: run.py
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent

ROUTER_DIES = ["ROUTER_DIES", "READERS=2", "EVENTS=3"]

# model, configurations that must hold, parts whose absence must be found
MODELS = [
    ("ring.pml", [[]], ["NO_WRITER_FENCE", "NO_READER_FENCE", "NO_LAST_LOOK", "NO_CURSOR", "LATE_ORDER"]),
    ("overwrite.pml", [[]], ["LATE_CURSOR", "ONE_PAIR", "NO_CLAIM", "LATE_PAIR"]),
    ("pool.pml", [["BUFFERS=2", "NOTES=3"], ["SLOTS=2", "NOTES=0", "BUFFERS=4"]],
     ["NO_READER_FENCE", "NO_ROUTER_FENCE", "NO_LAST_LOOK", "EARLY_RETURN", "NO_KEPT_ROOM"]),
    ("debt.pml", [[]], ["NO_DEBT", "ONE_DEBT", "EARLY_SERIAL", "EARLY_RETURN", "NO_PLACE"]),
    # With three readers and a router that dies there are a hundred times as many states.
    ("takeover.pml", [[], ROUTER_DIES],
     ["NO_DRAIN", "NO_DISOWN", "EARLY_RELEASE", "NO_HELD", *(" ".join([p, *ROUTER_DIES]) for p in ("NO_COUNT", "NO_CARRY", "NO_PAUSE"))]),
]


def check(folder, model, defines):
    """Searches all interleavings. Returns (errors, states)."""
    subprocess.run(["spin", "-a", *[f"-D{d}" for d in defines], model], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cc", "-w", "-O2", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=2000", "-o", "pan", "pan.c"], cwd=folder,
                   check=True)
    out = subprocess.run(["./pan", "-m100000", "-w22"], cwd=folder, capture_output=True, text=True).stdout
    errors = int(re.search(r"errors: (\d+)", out)[1])
    if not errors and re.search(r"Search not completed|max search depth too small", out):
        sys.exit(f"{model} {defines}: the search was cut short:\n{out}")
    return errors, int(re.search(r"(\d+) states, stored", out)[1])


def main():
    if not shutil.which("spin") or not shutil.which("cc"):
        print("skipped: the models need spin and a C compiler")
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in HERE.glob("*.pml"):
            shutil.copy(path, folder)
        for path in HERE.glob("*.h"):
            shutil.copy(path, folder)
        for model, configurations, parts in MODELS:
            for defines, expected in [(c, 0) for c in configurations] + [(p.split(), 1) for p in parts]:
                errors, states = check(folder, model, defines)
                fine = (errors > 0) == (expected > 0)
                wrong += not fine
                print(f"{'' if fine else 'WRONG: '}{model} {' '.join(defines) or 'as it is'}: "
                      f"{'an error' if errors else 'no error'}, {states} states")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
