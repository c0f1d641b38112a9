#!/usr/bin/env python3
"""Whatever fails, fails with a message and leaves nothing: each allocation, mapping, message, descriptor and write to tracefs
that tracefan's programs make in the course of a session fails once, in a run of its own.

Of the calls that come from one place in the code only the first is made to fail, unless TRACEFAN_FAULTS is "all";
a number takes every so many-th place, so that the whole takes about half a minute."""
import itertools
import os
import pathlib
import shutil
import struct
import time

import harness

EVERY = os.environ.get("TRACEFAN_FAULTS", "16")
REPORT_SIZE = 16 + 8 * 60000
PROGRAMS = ("tracefan", "tracefan-reader", "tracefan-router")
CLASSES = ("alloc", "map", "send", "descriptor", "tracefs")
CALLS = 7


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")
    harness.require_file("uprobe_events", "uprobes")


class Injected(harness.TestCase):
    """Programs beside each other of which one call fails."""

    def setUp(self):
        super().setUp()
        self.report = pathlib.Path(self.folder, "report")
        self.report.write_bytes(bytes(REPORT_SIZE))
        self.build = pathlib.Path(self.folder, "bin")
        self.build.mkdir()
        harness.staged(self.build, "workload_calls")
        for library in harness.BUILD.glob("libtracefan.so*"):
            if not (self.build / library.name).exists():
                (self.build / library.name).symlink_to(library)

    def arm(self, program, kind, at):
        """Programs beside each other as they are installed; the one under test is started by way of the preload."""
        with self.report.open("r+b") as report:
            report.write(bytes(16))
        for name in PROGRAMS:
            path = self.build / name
            preload = (f"LD_PRELOAD={harness.program('libfault_preload.so')} TRACEFAN_FAULT_CLASS={kind} TRACEFAN_FAULT_AT={at} "
                       f"TRACEFAN_FAULT_REPORT={self.report} " if name == program else "")
            # The command finds the daemons beside itself, and gives them no environment.
            if name == "tracefan":
                if not (self.build / "tracefan").exists():
                    shutil.copy2(harness.program(name), path)
                self.environment = dict(word.split("=", 1) for word in preload.split())
            else:
                path.write_text(f"#!/bin/sh\n{preload}exec {harness.program(name)} \"$@\"\n")
                path.chmod(0o755)

    def counted(self):
        """How many calls there were, whether one was made to fail, and where each came from."""
        data = self.report.read_bytes()
        count, failed = struct.unpack_from("=QQ", data)
        return count, failed, struct.unpack_from(f"={min(count, 60000)}Q", data, 16)

    def sample(self, count, sites, every):
        """The calls to fail, of so many."""
        if every == "all":
            return list(range(1, count + 1))
        return sorted(set(sites.index(site) + 1 for site in set(sites)))[::int(every)]

    def check_words(self, result):
        """It ended by itself, and said what went wrong if anything did."""
        self.assertLess(result.status, 128, "killed")
        self.assertGreaterEqual(result.status, 0, "killed")
        self.assertNotRegex(result.err, r"killed by|core dumped|assert|corrupt|double free")
        if result.status:
            self.assertRegex(result.err.strip(), r"\w+: \w+", "no message")

    def check_account(self, result):
        """The ledger adds up. Null: the router could not be asked any more, and that was said."""
        columns = [result.summary["session"], *(p["decoded"] for p in result.summary["probes"].values())]
        if None in columns:
            self.assertRegex(result.err, r"account of .* is not known: \w+")
        else:
            self.check_balance(result)

    def check_nothing_left(self):
        left = self._leftovers.settle()
        # What one leaves is not the next one's fault.
        self._leftovers = harness.Leftovers()
        self.assertEqual(left, [], "left behind")


class Faults(Injected):
    def session(self):
        """Start, attach, two probes of different kinds, a filter, events, stop."""
        workload = self.build / "workload_calls"
        return harness.run([self.build / "tracefan", "trace", "-o", "json", "-e", f"h=uprobe:{workload}:workload_call n=%di:u64",
                            "-e", "tracepoint:syscalls:sys_enter_getpgid if pid == 1234567", "--", workload, str(CALLS)],
                           env=self.environment, timeout=float(os.environ.get("TRACEFAN_FAULTS_PATIENCE", harness.PATIENCE)))

    def places(self, program, kind):
        """The calls to fail."""
        self.arm(program, kind, 0)
        result = self.session()
        self.check_ended(result)
        self.assertEqual(len(result.of("h")), CALLS)
        count, failed, sites = self.counted()
        self.assertEqual(failed, 0)
        return self.sample(count, sites, EVERY)

    def check(self, result):
        """A run with a fault in it: it either did all the same what it was asked for, or said what it could not."""
        self.check_words(result)
        if result.status == 0:
            self.assertEqual(result.records[-1]["kind"], "summary")
            self.check_account(result)
            lost = result.summary["probes"]["h"]["lost_ring"]
            if lost is not None:
                self.assertEqual(len(result.of("h")) + lost, CALLS, "lost, and not told")
        self.check_nothing_left()

    def run_class(self, program, kind):
        places = self.places(program, kind)
        began, statuses = time.monotonic(), {}
        for at in places:
            with self.subTest(program=program, kind=kind, at=at):
                self.arm(program, kind, at)
                result = self.session()
                _, failed, _ = self.counted()
                statuses[result.status] = statuses.get(result.status, 0) + 1
                if not failed:
                    statuses["not reached"] = statuses.get("not reached", 0) + 1
                try:
                    self.check(result)
                except AssertionError as error:
                    raise AssertionError(f"{error}\nit said: {result.err}") from None
        print(f"{program} {kind}: {len(places)} faults, by status {statuses}, {time.monotonic() - began:.1f} s", flush=True)


def add_case(program, kind):
    def test(self):
        self.run_class(program, kind)
    setattr(Faults, f"test_{kind}_of_{program.replace('-', '_')}", test)


for program, kind in itertools.product(PROGRAMS, CLASSES):
    if kind != "tracefs" or program == "tracefan-reader":
        add_case(program, kind)


if __name__ == "__main__":
    harness.main()
