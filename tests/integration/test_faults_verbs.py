#!/usr/bin/env python3
"""The rest of the verbs, and libtracefan, under the same faults as test_faults.py: whatever fails, fails with a message, and
leaves nothing half made.

TRACEFAN_FAULTS is as there; the usual sample is smaller: of each verb and program one class of calls, and few of those."""
import itertools
import os
import pathlib
import re
import time

import harness
import test_faults

EVERY = os.environ.get("TRACEFAN_FAULTS", "40")
# Of the sample, each verb and program take one class: another one each time.
turns = itertools.count()
CLASSES = ("alloc", "map", "send", "descriptor")
CALLS = test_faults.CALLS


def setUpModule():
    test_faults.setUpModule()
    harness.require_event("sched", "sched_process_exec")


class Verbs(test_faults.Injected):
    def setUp(self):
        super().setUp()
        self.workload = self.build / "workload_calls"
        self.probe = f"h=uprobe:{self.workload}:workload_call n={harness.argument(0)}:u64"

    def run_under_fault(self, *words):
        return harness.run([self.build / "tracefan", *words], env=self.environment)

    def run_plain(self, *words):
        return harness.run([self.build / "tracefan", *words])

    def each(self, scenario, programs=("tracefan",), classes=CLASSES):
        """Runs a scenario with each fault of the sample. It returns what the verb said, which is looked at here."""
        for program, kind in itertools.product(programs, classes):
            if "TRACEFAN_FAULTS" not in os.environ and kind != classes[next(turns) // len(classes) % len(classes)]:
                continue
            self.arm(program, kind, 0)
            result = scenario()
            self.assertEqual(result.status, 0, result.err)
            count, failed, sites = self.counted()
            self.assertEqual(failed, 0)
            began, statuses = time.monotonic(), {}
            places = self.sample(count, sites, EVERY)
            for at in places:
                with self.subTest(program=program, kind=kind, at=at):
                    self.arm(program, kind, at)
                    result = scenario()
                    statuses[result.status] = statuses.get(result.status, 0) + 1
                    self.check_words(result)
            print(f"{self._testMethodName[5:]}: {program} {kind}: {len(places)} faults, by status {statuses}, "
                  f"{time.monotonic() - began:.1f} s", flush=True)

    # ---- the operator's ----

    def test_session_start(self):
        name = f"faults-{os.getpid()}"

        def start():
            result = self.run_under_fault("session", "start", name)
            if result.status == 0:
                self.assertEqual(self.run_plain("session", "stop", name).status, 0)
            # No half-made session either.
            self.check_nothing_left()
            return result

        self.each(start)

    def test_session_stop(self):
        name = f"faults-{os.getpid()}"

        def stop():
            self.check_ended(self.run_plain("session", "start", name))
            result = self.run_under_fault("session", "stop", name)
            if result.status:
                # It runs, or it has gone.
                self.assertIn(self.run_plain("session", "stop", name).status, (0, 4))
                pathlib.Path(harness.SESSIONS, f"{name}.log").unlink(missing_ok=True)
            self.check_nothing_left()
            return result

        self.each(stop)

    def test_questions(self):
        """Verbs that only ask: they say all, or that they can't."""
        session = harness.Session(self.folder)
        wanted = {
            ("session", "flush", session.name): r"^$",
            ("session", "list"): re.escape(session.name),
            ("status", "--session", session.name, "-o", "json"): re.escape(session.name),
            ("ls", "--session", session.name, "sched:sched_process_exec"): r"sched:sched_process_exec",
            ("explain", "--session", session.name, "-e", "tracepoint:syscalls:sys_enter_getpgid if pid == 7"): r"pid == 7",
        }
        for words, said in wanted.items():
            def ask():
                result = self.run_under_fault(*words)
                if result.status == 0:
                    self.assertRegex(result.out, said, words)
                return result

            self.each(ask)
        # And the session never minded.
        self.assertEqual(session.stop(), (0, 0))

    # ---- consumers of other kinds ----

    def check_shown(self, result):
        """If all went well there is a summary that adds up."""
        if result.status == 0:
            self.assertEqual(result.records[-1]["kind"], "summary")
            self.check_account(result)
        self.check_nothing_left()
        return result

    def test_record_and_replay(self):
        file = pathlib.Path(self.folder, "recording")

        def record():
            file.unlink(missing_ok=True)
            result = self.run_under_fault("record", "-o", file, "-e", self.probe, "--", self.workload, CALLS)
            if result.status == 0:
                shown = harness.run([harness.program("tracefan"), "replay", "-o", "json", file])
                self.check_ended(shown)
                # What is missing was told: to the one who recorded, or in the recording.
                lost = sum(r["count"] or CALLS for r in shown.records if r["kind"] == "lost")
                if len(shown.of("h")) + lost < CALLS:
                    self.assertRegex(result.err, r"\w+: \w+", "lost, and not told")
            self.check_nothing_left()
            return result

        self.each(record, ("tracefan", "tracefan-router"))
        self.arm("tracefan", "alloc", 0)
        self.check_ended(record())
        self.each(lambda: self.check_shown(self.run_under_fault("replay", "-o", "json", file)), test_faults.PROGRAMS)

    def test_watch(self):
        out = pathlib.Path(self.folder, "out")

        def watch():
            result = self.run_under_fault("watch", "exec", "-o", "json", "-w", out, "--", "true")
            if result.status == 0:
                records = harness.read_records(out.read_text())
                self.assertEqual(records[-1]["kind"], "summary")
                if not any(r["kind"] == "exec" for r in records):
                    self.assertRegex(result.err, r"\w+: \w+", "nothing came, and nothing was said")
            self.check_nothing_left()
            return result

        self.each(watch)

    def test_state(self):
        """What is there, as the helper reads it: whole, or a word of what is missing."""
        def state():
            result = self.check_shown(self.run_under_fault("trace", "--state", "-e", self.probe, "-o", "json", "--", self.workload, CALLS))
            if result.status == 0 and os.getpid() not in [r.get("pid") for r in result.records if r["kind"] == "state"]:
                self.assertRegex(result.err, r"\w+: \w+", "the state is not whole, and nothing was said")
            return result

        self.each(state, test_faults.PROGRAMS)

    # ---- the library ----

    def test_library(self):
        """A program of its own that attaches to a session."""
        session = harness.Session(self.folder)
        consumer = harness.staged(self.build, "number_consumer")

        def attach():
            result = harness.run([consumer, session.name, 1 << 24, 1024, "ring=65536"], env=self.environment)
            if result.status == 0:
                self.assertRegex(result.out, r'"lost_ring"')
            return result

        self.each(attach)
        self.assertEqual(session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
