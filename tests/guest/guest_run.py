#!/usr/bin/env python3
"""Inside a guest: runs the tests of a plan (guest_test.py) one after the other and tells each one's outcome.

The serial port is slow, so only what failed is shown whole, and of what was skipped the reasons.
"""
import json
import os
import platform
import subprocess
import sys
import time


def run(test):
    """(outcome, output) of one test."""
    environment = {**os.environ, **dict(pair.split("=", 1) for pair in test["environment"])}
    environment.update({k: os.environ[k] for k in os.environ if k.startswith("TRACEFAN_")})
    try:
        done = subprocess.run(test["command"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=test["timeout"])
    except subprocess.TimeoutExpired as error:
        return "FAILED", (error.stdout or b"").decode(errors="replace") + "\n(timed out)"
    outcome = {0: "ok", 77: "skipped"}.get(done.returncode, "FAILED")
    return outcome, done.stdout.decode(errors="replace")


def main(plan):
    print(f"guest: Linux {platform.release()}", flush=True)
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    with open(plan) as file:
        tests = json.load(file)
    for test in tests:
        begin = time.monotonic()
        outcome, output = run(test)
        counts[outcome] += 1
        print(f"{outcome:8}{test['name']} ({time.monotonic() - begin:.1f}s)", flush=True)
        for line in output.splitlines():
            if outcome == "FAILED" or line.startswith("skipped:") or "skipped '" in line:
                print(f"        {line}", flush=True)
    print(f"guest: {counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
