#!/usr/bin/env python3
"""Runs tracefan and its peers on the same work, taking turns, and prints medians, ratios and their spread.

usage: bench.py [--work NAME]... [--row TEXT]... [--rounds N] [--minutes N] [--scale SHARE]
                [--rest SECONDS] [--json FILE] [--list]

Who fails is left out of the later rounds, and the exit status is 1. Needs root and tracefs; exit status 77 where they
are missing. TRACEFAN_BUILD names the folder of the built programs.
"""
import argparse
import os
import sys
import time

import peers
import process
import report
from process import Absent, Disturbed, Failed
from works import WORKS, Scale

# Of a contender whose figures others have spoilt.
TRIES = 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", action="append", metavar="NAME", help="only this one (repeatable)")
    parser.add_argument("--row", action="append", metavar="TEXT",
                        help="only the rows with this in their figure, and who is needed for them (repeatable)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="turns of each contender (3)")
    parser.add_argument("--minutes", type=float, default=15, metavar="N",
                        help="begin no round that would not end within so many minutes (15)")
    parser.add_argument("--scale", type=float, default=1, metavar="SHARE", help="share of the usual amount of events (1)")
    parser.add_argument("--rest", type=float, default=10, metavar="SECONDS", help="how long the session is at rest (10)")
    parser.add_argument("--json", metavar="FILE", help="write everything there, '-': only that, to standard output")
    parser.add_argument("--list", action="store_true", help="name the works and their rows")
    return parser.parse_args()


def missing():
    """Why nothing can be measured here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if not (peers.TRACEFS / "instances").is_dir():
        return f"tracefs isn't mounted at {peers.TRACEFS}"
    if not (peers.TRACEFS / "events" / peers.EVENT.replace(":", "/")).is_dir():
        return f"this kernel has no event {peers.EVENT}"
    return None


def chosen(work, contenders, rows, args):
    """(contenders, rows) that the arguments ask for."""
    if args.work and work not in args.work:
        return {}, []
    if not args.row:
        return contenders, rows
    rows = [row for row in rows if any(text in row.figure for text in args.row)]
    needed = {side[0] for row in rows for side in (row.ours, row.over) if side}
    return {name: contender for name, contender in contenders.items() if name in needed}, rows


def once(contender, tries=TRIES):
    """Its figures. The traced calls may be made by anybody on this machine, and others may keep it from the processors,
    so it gets a few tries."""
    while True:
        try:
            return contender()
        except Disturbed as reason:
            tries -= 1
            if not tries:
                raise Failed(reason) from reason
            print(f"disturbed: {reason}; again ", end="", file=sys.stderr, flush=True)


def run(work, contenders, turn, results):
    """All contenders once, one after the other, so that a slow minute of the machine is everybody's."""
    for name, contender in contenders.items():
        if name in results.absent.get(work, {}):
            continue
        print(f"{turn} {work}: {name} ", end="", file=sys.stderr, flush=True)
        began = time.monotonic()
        try:
            figures = once(contender)
        except Absent as reason:
            results.miss(work, name, str(reason))
            print(f"left out: {reason}", file=sys.stderr)
            continue
        except Failed as error:
            process.end_all()
            results.fail(work, name, str(error))
            print(f"failed: {error}", file=sys.stderr)
            continue
        results.add(work, name, figures)
        print(" ".join(f"{key} {report.number(value)}" for key, value in figures.items()),
              f"({time.monotonic() - began:.1f} s)", file=sys.stderr)


def run_all(works, rounds, seconds, results):
    """As many rounds of all works as are asked for, and as there is time for: at least one."""
    began, longest = time.monotonic(), 0
    for i in range(rounds):
        before = time.monotonic()
        if i and before - began + longest > seconds:
            print(f"no time for more than {i} rounds", file=sys.stderr)
            return
        for work, contenders, _ in works:
            run(work, contenders, f"{i + 1}/{rounds}", results)
        longest = max(longest, time.monotonic() - before)
        print(f"{i + 1}/{rounds} took {time.monotonic() - before:.0f} s", file=sys.stderr)


def main():
    args = arguments()
    works = [work(Scale(args.scale, args.rest)) for work in WORKS]
    if args.list:
        print("\n".join(f"{work}: {row.figure}" for work, _, rows in works for row in rows))
        return 0
    why = missing()
    if why:
        print(f"bench: {why}", file=sys.stderr)
        return 77
    unknown = set(args.work or ()) - {work for work, _, _ in works}
    if unknown:
        sys.exit(f"bench: no such work: {', '.join(sorted(unknown))}")
    works = [(work[0], *chosen(*work, args)) for work in works]
    if not any(rows for _, _, rows in works):
        sys.exit("bench: no row's figure has that in it")
    results = report.Results()
    run_all(works, args.rounds, args.minutes * 60, results)
    judged = [numbers for _, _, rows in works for numbers in map(results.judge, rows) if numbers]
    text = report.as_json(judged, results, {"rounds": args.rounds, "scale": args.scale, "rest": args.rest})
    if args.json and args.json != "-":
        with open(args.json, "w") as file:
            file.write(text + "\n")
    if args.json == "-":
        print(text)
        return 1 if results.failed else 0
    print(report.table(judged))
    for work, absent in results.absent.items():
        for contender, reason in absent.items():
            print(f"left out of {work}: {contender}: {reason}")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
