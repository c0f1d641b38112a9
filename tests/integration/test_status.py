#!/usr/bin/env python3
"""What a session tells of itself: every consumer with the columns of its probes, to root all and to others their own."""
import os
import signal
import subprocess
import time

import harness

GETPGID = "syscalls:sys_enter_getpgid"
COUNT = 2000
FIRST = (1 << 25) + (1 << 24) + (1 << 23) + os.getpid() % 4096 * COUNT
EVENT = f"tracepoint:{GETPGID}"


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Status(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.session = harness.Session(self.folder)

    def consumer(self, name, *words, **more):
        gate = harness.Gate(self.folder, name)
        self.addCleanup(gate.close)
        process = self.session.trace("-o", "json", *words, gate=gate, **more)
        gate.wait(process)
        return process, gate

    def status(self, uid=0):
        """The session and its consumers by their processes."""
        more = harness.as_user(uid, self.session.group.gr_gid) if uid else {}
        result = harness.run([self.session.tracefan, "status", "--session", self.session.name, "-o", "json"], **more)
        self.check_ended(result)
        session, *consumers = result.records
        self.assertEqual((session["kind"], session["session"], session["state"]), ("session", self.session.name, "running"))
        self.assertEqual({c["kind"] for c in consumers}, {"consumer"} if consumers else set())
        self.assertEqual(len({c["consumer"] for c in consumers}), len(consumers))
        for consumer in consumers:
            for probe in consumer["probes"]:
                self.assertEqual(probe["decoded"], probe["delivered"] + probe["filtered"] + probe["lost_ring"], consumer)
        return session, {c["pid"]: c for c in consumers}

    def work(self, count=COUNT):
        subprocess.run([harness.program("workload_numbers"), str(harness.cpus()[-1]), str(FIRST), str(count)], check=True)

    def await_shown(self, process, count):
        """Until a consumer has told so many."""
        while process.out.count('"kind":"event"') < count:
            self.assertTrue(process.running(), process.err)
            time.sleep(0.01)

    def test_columns_of_two_users(self):
        mine = f"pid >= {FIRST} && pid < {FIRST + COUNT}"
        # Every consumer's probe takes the same events, and nobody else's.
        everything = self.consumer("everything", "-e", f"{EVENT} if {mine}", uid=harness.USER_A)
        some = self.consumer("some", "-e", f"{EVENT} if {mine}", "-e", f"few={EVENT} if {mine} && pid < {FIRST + 100}",
                             uid=harness.USER_B)
        recorder = self.consumer("recorder", "-e", f"{EVENT} if {mine}", "--overflow", "overwrite", "--ring", "65536",
                                 uid=harness.USER_A)
        stopped = self.consumer("stopped", "-e", f"{EVENT} if {mine}", "--ring", "65536", uid=harness.USER_B)
        for process, _ in (recorder, stopped):
            process.signal(signal.SIGSTOP)
        self.work()
        self.await_shown(everything[0], COUNT)
        self.await_shown(some[0], COUNT + 100)
        session, found = self.status()
        self.assertEqual(session["ledger"]["decoded"], session["ledger"]["committed"])
        self.assertEqual(set(found), {p.pid for p, _ in (everything, some, recorder, stopped)})
        self.assertEqual([found[p.pid]["uid"] for p, _ in (everything, some, recorder, stopped)],
                         [harness.USER_A, harness.USER_B, harness.USER_A, harness.USER_B])
        columns = {pid: {p["name"]: (p["delivered"], p["lost_ring"]) for p in c["probes"]} for pid, c in found.items()}
        self.assertEqual(columns[everything[0].pid], {GETPGID: (COUNT, 0)})
        self.assertEqual(columns[some[0].pid], {GETPGID: (COUNT, 0), "few": (100, 0)})
        # Whoever does not read has what fits, and the rest is counted.
        for process, overflow in ((recorder[0], "overwrite"), (stopped[0], "drop")):
            ring = found[process.pid]["ring"]
            self.assertEqual((ring["size"], ring["overflow"]), (65536, overflow))
            self.assertTrue(32768 < ring["used"] <= 65536, ring)
            delivered, lost = columns[process.pid][GETPGID]
            self.assertEqual(delivered + lost, COUNT)
            self.assertTrue(0 < delivered < COUNT, delivered)
        # Others are told of their own.
        for uid, own in ((harness.USER_A, (everything, recorder)), (harness.USER_B, (some, stopped))):
            session, found = self.status(uid)
            self.assertEqual(set(found), {p.pid for p, _ in own})
            self.assertEqual(session["ledger"]["decoded"], session["ledger"]["committed"])
        for process, _ in (recorder, stopped):
            process.signal(signal.SIGCONT)
        for process, gate in (everything, some, recorder, stopped):
            gate.open()
            result = process.wait()
            self.check_ended(result)
            for name, probe in result.summary["probes"].items():
                # Marks of the end may push out more of a ring that overwrites.
                self.assertEqual(probe["delivered"] + probe["lost_ring"], sum(columns[process.pid][name]))
                if process is not recorder[0]:
                    self.assertEqual(probe["delivered"], columns[process.pid][name][0])
        self.assertEqual(self.status()[1], {})
        self.assertEqual(self.session.stop(), (0, 0))

    def test_more_than_a_page(self):
        """Consumers with more probes than an answer holds."""
        words = [w for i in range(70) for w in ("-e", f"p{i}={EVENT} if pid == {FIRST + i}")]
        consumers = [self.consumer(f"c{i}", *words, uid=harness.USER_A) for i in range(2)]
        none = self.consumer("none", "-e", EVENT + f" if pid == {FIRST}", uid=harness.USER_B)
        self.work(70)
        for process, _ in consumers:
            self.await_shown(process, 70)
        _, found = self.status()
        self.assertEqual(len(found), 3)
        for process, _ in consumers:
            self.assertEqual({p["name"]: p["delivered"] for p in found[process.pid]["probes"]}, {f"p{i}": 1 for i in range(70)})
        for process, gate in (*consumers, none):
            gate.open()
            self.check_ended(process.wait())
        self.assertEqual(self.session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
