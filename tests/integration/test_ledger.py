#!/usr/bin/env python3
"""The ledger under fire: a million numbered events of sixteen processes against a kernel's buffer that is far too small, for
consumers of every kind. For each of them the columns add up to what was made, and say what it saw.

The left side is nobody's claim: the numbers are made by the test, and the kernel counts what it committed and what it
overwrote. TRACEFAN_LEDGER_EVENTS is how many events."""
import json
import os
import pathlib
import signal
import subprocess
import time

import harness

PROCESSES = 16
EACH = harness.scaled(int(os.environ.get("TRACEFAN_LEDGER_EVENTS", "1000000"))) // PROCESSES
TOTAL = EACH * PROCESSES
# Numbers of our own: others on the machine may run the same program.
FIRST = (1 << 29) + os.getpid() % 128 * 4_000_000
# Of those that are stopped meanwhile: much less than what comes.
STOPPED_RING = 1 << 20 if harness.SCALE >= 1 else 1 << 16


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Witness:
    """An instance of tracefs that counts the events that a session traces for itself, so that it is known how many of the
    session's losses can have been of those."""

    def __init__(self, session):
        self.path = harness.TRACEFS / "instances" / f"test-ledger-{os.getpid()}"
        self.path.mkdir()
        for event in harness.read_lines(session.instance / "set_event"):
            if event.strip() != "syscalls:sys_enter_getpgid":
                (self.path / "events" / event.strip().replace(":", "/") / "enable").write_text("1")

    def count(self):
        return sum(counts(self.path, "entries") + counts(self.path, "overrun"))

    def close(self):
        (self.path / "events/enable").write_text("0")
        self.path.rmdir()


def counts(instance, name):
    """One of the kernel's counts, of each CPU."""
    return [int(line.split()[1]) for stats in instance.glob("per_cpu/cpu*/stats") for line in harness.read_lines(stats)
            if line.startswith(f"{name}:")]


class Consumer:
    def __init__(self, program, session, *words):
        said, say = os.pipe()
        go, self.hold = os.pipe()
        self.process = harness.Process([program, session.name, FIRST, TOTAL, *words], stdin=go, stdout=say,
                                       **harness.as_user(harness.USER_A, session.group.gr_gid))
        os.close(go)
        os.close(say)
        self.lines = open(said)
        assert self.lines.readline() == "live\n", self.process.err

    def release(self):
        os.close(self.hold)

    def result(self):
        with self.lines:
            return json.loads(self.lines.readline() or "null")


class Ledger(harness.TestCase):
    def workers(self):
        """Each makes its own numbers, once all are there."""
        program, cpus = harness.program("workload_numbers"), harness.cpus()
        gate, opener = os.pipe()
        workers = [subprocess.Popen(["sh", "-c", 'read -r line; exec "$@"', "sh", program, str(cpus[i % len(cpus)]),
                                     str(FIRST + i * EACH), str(EACH)], stdin=gate) for i in range(PROCESSES)]
        os.close(gate)
        return workers, opener

    def wait_overrun(self, instance):
        """The kernel wakes nobody when it overwrites, so this looks again."""
        deadline = time.monotonic() + harness.PATIENCE
        while not all(n > 1000 for n in counts(instance, "overrun")):
            self.assertLess(time.monotonic(), deadline, "the kernel's buffers don't overflow")
            time.sleep(0.002)

    def start(self, session):
        """The consumers, by what becomes of them. Only the fast one has room for everything."""
        program = harness.staged(self.folder, "number_consumer")
        seen = pathlib.Path(self.folder)
        quarter = FIRST + TOTAL // 4
        return {name: Consumer(program, session, f"seen={seen / name}", *words) for name, words in {
            "fast": ["ring=268435456"],
            "slow": ["ring=65536", "pause=100"],
            "stopped": [f"ring={STOPPED_RING}"],
            "stopped, overwriting": [f"ring={STOPPED_RING}", "overwrite"],
            "slow, overwriting": ["ring=65536", "overwrite", "pause=100"],
            "filtered": ["ring=268435456", f"filter=pid < {quarter}"],
            "slow, filtered": ["ring=65536", "pause=100", f"filter=pid < {quarter}"],
            "killed": ["ring=1048576"],
        }.items()}

    def run_all(self):
        session = harness.Session(self.folder, "--buffer-size", "64K", "--subbuf-size", "4K")
        consumers = self.start(session)
        witness = Witness(session)
        self.addCleanup(witness.close)
        own = witness.count()
        workers, gate = self.workers()
        for name, consumer in consumers.items():
            if "stopped" in name:
                consumer.process.signal(signal.SIGSTOP)
        # However the scheduler shares the CPUs: there is loss on each of them.
        session.reader.signal(signal.SIGSTOP)
        os.write(gate, b"\n" * PROCESSES)
        os.close(gate)
        self.wait_overrun(session.instance)
        session.reader.signal(signal.SIGCONT)
        consumers["killed"].process.kill()
        self.assertEqual([w.wait() for w in workers], [0] * PROCESSES)
        self.check_ended(harness.run([session.tracefan, "session", "flush", session.name]))
        for name, consumer in consumers.items():
            if "stopped" in name:
                consumer.process.signal(signal.SIGCONT)
            consumer.release()
        results = {name: consumer.result() for name, consumer in consumers.items()}
        own = witness.count() - own
        self.assertIsNone(results.pop("killed"))
        for name in results:
            self.check_ended(consumers[name].process.wait())
        self.assertEqual(session.stop(), (0, 0))
        return results, own

    def test_every_event_is_in_one_column(self):
        results, own = self.run_all()
        seen = {name: pathlib.Path(self.folder, name).read_bytes() for name in results}
        # The fast one's ring had room for all, so what it saw is what came out of the kernel.
        decoded = seen["fast"].count(1)
        session = results["fast"]["session"]
        missing = TOTAL - decoded
        print(f"\n{TOTAL} made, {decoded} decoded, {session['lost_kernel']} lost in the kernel, {own} of the session's own")
        # What did not come is told as lost, and no more than that and the session's own events.
        self.assertGreater(missing, 1000)
        self.assertGreaterEqual(session["lost_kernel"], missing)
        self.assertLessEqual(session["lost_kernel"], missing + own)
        for name, result in results.items():
            with self.subTest(name):
                self.check_consumer(name, result, seen[name], seen["fast"], session)
        self.assertEqual(seen["filtered"], seen["fast"][:TOTAL // 4] + bytes(TOTAL - TOTAL // 4))
        for name in ("slow", "stopped", "stopped, overwriting", "slow, overwriting", "slow, filtered"):
            self.assertGreater(results[name]["told"]["ring"], 0, name)

    def check_session(self, session):
        self.assertEqual(session["committed"], session["decoded"] + session["undecodable"] + session["lost_kernel"])
        self.assertEqual(session["undecodable"], 0)
        self.assertGreaterEqual(session["committed"], TOTAL)

    def check_consumer(self, name, result, seen, came, session):
        trace, told = result["trace"], result["told"]
        print(f"{name}: {trace}, told {told}")
        self.assertEqual([result[k] for k in ("twice", "disordered", "late")], [0, 0, 0])
        # By its own eyes and by its stream.
        self.assertEqual(result["came"], seen.count(1))
        self.assertEqual(trace["delivered"], result["came"])
        self.assertEqual(trace["lost_ring"], told["ring"])
        # By what the others saw: all that came, but for what its filter keeps out, it got or was told as lost.
        self.assertEqual(trace["decoded"], came.count(1))
        self.assertEqual(trace["decoded"], trace["delivered"] + trace["filtered"] + trace["lost_ring"])
        self.assertEqual(trace["filtered"], came[TOTAL // 4:].count(1) if "filtered" in name else 0)
        self.assertEqual(int.from_bytes(seen, "little") & ~int.from_bytes(came, "little"), 0, "saw what nobody else did")
        # By what was made.
        if result["uncounted"]:
            # A sub-buffer that was full to its last bytes has no room for the kernel's count: then the stream says "at least".
            self.assertLess(told["kernel"], session["lost_kernel"])
        else:
            self.assertEqual(told["kernel"], session["lost_kernel"])
        self.assertEqual(result["session"]["lost_kernel"], session["lost_kernel"])
        self.check_session(result["session"])


class Cleared(harness.TestCase):
    """To remove a probe makes the kernel clear its instance's buffers and counts. test_soak.py has it done all the time,
    and nobody lose an event."""

    def test_too_many_probes_to_keep(self):
        """More probes than are kept until nobody traces: they go while others trace, and that is told."""
        harness.require_file("uprobe_events", "uprobes")
        session = harness.Session(self.folder)
        gate, other = harness.Gate(self.folder), harness.Gate(self.folder, "other")
        self.addCleanup(gate.close)
        self.addCleanup(other.close)
        event = f"tracepoint:syscalls:sys_enter_getpgid if pid >= {FIRST} && pid < {FIRST + 100}"
        consumer = session.trace("-e", event, "-o", "json", gate=gate)
        gate.wait(consumer)
        workload, register = harness.staged(self.folder, "workload_calls"), harness.argument(0)
        probes = [w for n in range(70) for w in ("-e", f"p{n}=uprobe:{workload}:workload_call a{n}={register}:u64")]
        many = session.trace(*probes, "-q", uid=0, gate=other)
        other.wait(many)
        other.open()
        self.check_ended(many.wait())
        # They go one after the other, and nobody is told when the last has gone.
        deadline = time.monotonic() + harness.PATIENCE
        while sum(workload in line for line in harness.read_lines(harness.TRACEFS / "uprobe_events")) > 5:
            self.assertLess(time.monotonic(), deadline, "the probes stay")
            time.sleep(0.1)
        # The reader answers when it has done with them.
        self.check_ended(harness.run([session.tracefan, "session", "flush", session.name]))
        self.assertEqual(subprocess.run([harness.program("workload_numbers"), str(harness.cpus()[0]), str(FIRST), "100"]).returncode, 0)
        gate.open()
        result = consumer.wait()
        self.check_ended(result)
        self.check_balance(result)
        self.assertEqual(len(result.events), 100)
        lost = [r for r in result.records if r["kind"] == "lost"]
        self.assertTrue(lost)
        self.assertEqual({(r["source"], r["count"]) for r in lost}, {("kernel", None)})
        self.assertTrue(all(0 < r["from"] <= r["to"] for r in lost), lost)
        self.assertEqual(session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
