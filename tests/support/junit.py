#!/usr/bin/env python3
"""usage: junit.py FILE: ctest's JUnit results as lines "passed|failed|skipped TAB NAME TAB REASON"."""
import sys
import xml.etree.ElementTree as ElementTree


def reason(output):
    """Why a test was skipped: the lines that say so, or else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    told = [line.rpartition(": ")[2] if line.startswith("skipped: ") else line for line in lines if "skip" in line.lower()]
    return "; ".join(dict.fromkeys(told)) or (lines[-1] if lines else "no reason was given")


def main(path):
    for case in ElementTree.parse(path).iter("testcase"):
        outcome = {"run": "passed", "fail": "failed", "notrun": "skipped", "disabled": "skipped"}[case.get("status")]
        why = reason(case.findtext("system-out") or "") if outcome == "skipped" else ""
        print(outcome, case.get("name"), why.replace("\t", " "), sep="\t")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
