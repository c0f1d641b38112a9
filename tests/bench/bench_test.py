#!/usr/bin/env python3
"""The bench runs, with next to no work, and says what it should: nothing of this depends on a time."""
import contextlib
import io
import json
import pathlib
import re
import subprocess
import sys
import unittest

import bench
import process
import report
import works

BENCH = pathlib.Path(__file__).with_name("bench.py")


def run(*words):
    return subprocess.run([sys.executable, BENCH, *words], capture_output=True, text=True)


class Report(unittest.TestCase):
    """The arithmetic, on numbers that are given."""

    def results(self):
        results = report.Results()
        for ours, peers in ((10, 5), (30, 10), (20, 5)):
            results.add("w", "ours", {"x": ours})
            results.add("w", "peer", {"x": peers})
        return results

    def judge(self, **more):
        return self.results().judge(report.Row("w", "f", ("ours", "x"), ("peer", "x"), **more))

    def test_ratios_are_taken_round_by_round(self):
        judged = self.judge()
        self.assertEqual((judged["value"], judged["least"], judged["most"]), (3, 2, 4))
        self.assertEqual((judged["ours"], judged["over"], judged["met"]), (20, 5, None))

    def test_targets_bound_one_side(self):
        self.assertTrue(self.judge(best="most", target=3)["met"])
        self.assertFalse(self.judge(best="most", target=3.1)["met"])
        self.assertTrue(self.judge(best="least", target=3)["met"])
        self.assertFalse(self.judge(best="least", target=2.9)["met"])

    def test_a_figure_by_itself(self):
        judged = self.results().judge(report.Row("w", "f", ("ours", "x"), target=0))
        self.assertEqual((judged["value"], judged["over"], judged["met"]), (20, None, False))

    def test_who_was_absent_has_no_row(self):
        self.assertIsNone(self.results().judge(report.Row("w", "f", ("ours", "x"), ("nobody", "x"))))


class Switches(unittest.TestCase):
    def test_threads_that_come_and_go(self):
        self.assertEqual(process.switched({1: 10, 2: 50}, {1: 13, 3: 4}), 3 + 4 + 1)


class Tries(unittest.TestCase):
    def test_who_is_disturbed_tries_again(self):
        left = [process.Disturbed("others"), process.Disturbed("others")]

        def contender():
            if left:
                raise left.pop()
            return {"x": 1}

        self.assertEqual(bench.once(contender, tries=3), {"x": 1})

    def test_not_for_ever(self):
        def contender():
            raise process.Disturbed("others")

        with self.assertRaises(process.Failed):
            bench.once(contender, tries=2)


class Rounds(unittest.TestCase):
    def run_all(self, contender, rounds, seconds):
        results = report.Results()
        with contextlib.redirect_stderr(io.StringIO()):
            bench.run_all([("w", {"ours": contender}, [])], rounds, seconds, results)
        return results

    def test_none_is_begun_too_late(self):
        self.assertEqual(len(self.run_all(lambda: {"x": 1}, 3, 0).runs["w"]["ours"]), 1)
        self.assertEqual(len(self.run_all(lambda: {"x": 1}, 3, 3600).runs["w"]["ours"]), 3)

    def test_who_fails_stops_nobody(self):
        def contender():
            raise process.Failed("hangs")

        results = self.run_all(contender, 2, 3600)
        self.assertTrue(results.failed)
        self.assertEqual((results.runs, results.absent), ({}, {"w": {"ours": "failed: hangs"}}))


class Bench(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        why = bench.missing()
        if why:
            raise unittest.SkipTest(why)

    def test_every_work_with_next_to_nothing(self):
        done = run("--rounds", "1", "--scale", "0.0005", "--rest", "0.2", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        expected = [row for work in works.WORKS for row in work(works.Scale(0.0005, 0.2))[2]]
        rows = {(row["work"], row["figure"]): row for row in told["rows"]}
        for row in expected:
            sides = {side[0] for side in (row.ours, row.over) if side}
            if sides & told["absent"].get(row.work, {}).keys():
                continue
            judged = rows.pop((row.work, row.figure), None)
            self.assertIsNotNone(judged, f"{row.work}: {row.figure} is missing")
            self.assertEqual((judged["rounds"], judged["target"]), (1, row.target))
        self.assertEqual(rows, {})
        for work, contenders in told["runs"].items():
            self.assertTrue(all(len(runs) == 1 for runs in contenders.values()), work)

    def test_the_table_names_every_row(self):
        done = run("--rounds", "1", "--scale", "0.0005", "--work", "rest", "--rest", "0.1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, re.compile(r"^rest +wake-ups .*(met|MISSED)", re.M))

    def test_a_single_row(self):
        done = run("--rounds", "1", "--scale", "0.0005", "--row", "a call / untraced", "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual([row["figure"] for row in told["rows"]], ["a call / untraced"])
        self.assertEqual(told["runs"]["live"].keys(), {"tracefan", "untraced"})

    def test_unknown_rows_are_refused(self):
        done = run("--row", "nothing")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no row", done.stderr)

    def test_unknown_works_are_refused(self):
        done = run("--work", "nothing")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no such work: nothing", done.stderr)


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    for case, reason in result.skipped:
        print(f"skipped: {case}: {reason}", file=sys.stderr)
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
