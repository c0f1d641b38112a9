#!/usr/bin/env python3
"""One session for a long time, under a steady load, while consumers come and go by every door, filters change, probes are
made and removed: every account stays exact, and memory and descriptors of the daemons stay flat.

TRACEFAN_SOAK_SECONDS is how long; tools/soak takes ten minutes."""
import os
import pathlib
import time

import harness

SECONDS = float(os.environ.get("TRACEFAN_SOAK_SECONDS", "20"))
# The numbers of workload_paced that filter_changer knows.
FIRST, EXTRA = 1 << 24, 1 << 16
CALLS = 50
# Of memory of its own, what a daemon may have more at the end than when each thing had happened a few times: the router
# knows every process of the machine, of which there are now more and now fewer, and an allocator keeps some.
GROWTH = 1 << 19
WARM_UP = 4
# It also remembers so many processes that have ended: here they have to before it begins. In an emulated guest, where a
# process takes its time, there are no rounds to speak of behind.
ENDED = harness.scaled(4096)


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")
    harness.require_file("uprobe_events", "uprobes")


class Daemon:
    """What one of them holds, when nobody but those who were there at the beginning is attached."""

    def __init__(self, name, pid):
        self.name, self.pid, self.memory = name, pid, []
        self.descriptors = None

    def settle(self):
        """A descriptor's going wakes nobody, so this looks again."""
        deadline = time.monotonic() + harness.PATIENCE
        while len(os.listdir(f"/proc/{self.pid}/fd")) != self.descriptors:
            if self.descriptors is None:
                self.descriptors = len(os.listdir(f"/proc/{self.pid}/fd"))
            assert time.monotonic() < deadline, (self.name, "descriptors", os.listdir(f"/proc/{self.pid}/fd"), self.descriptors)
            time.sleep(0.02)
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        self.memory.append(int(status.split("RssAnon:")[1].split()[0]) << 10)


class Soak(harness.TestCase):
    def talker(self, *words, user=True):
        more = harness.as_user(harness.USER_A, self.session.group.gr_gid) if user else {}
        return harness.Talker(words, **more)

    def changer(self, changes):
        talker = self.talker(self.programs["filter_changer"], self.session.name, changes, *(p.pid for p in self.producers))
        self.assertEqual(talker.hear(), "live", talker.err)
        return talker

    def counter(self, *words, wanted="CPU >= 0"):
        """Others on the machine may run the same programs: by the numbers alone theirs would be ours."""
        mine = " || ".join(f"common_pid == {p.pid}" for p in self.producers)
        talker = self.talker(self.programs["number_consumer"], self.session.name, FIRST, 2 * FIRST, f"filter=({mine}) && ({wanted})", *words)
        self.assertEqual(talker.hear(), "live", talker.err)
        return talker

    def begin(self):
        self.session = harness.Session(self.folder)
        self.programs = {name: harness.staged(self.folder, name) for name in ("filter_changer", "number_consumer", "workload_calls")}
        cpus = harness.cpus()
        self.producers = [self.talker(harness.program("workload_paced"), cpus[n % len(cpus)], FIRST * (n + 1), EXTRA, user=False)
                          for n in range(2)]
        self.constant = self.changer(0)
        for producer in self.producers:
            producer.tell()
        self.assertEqual(harness.run(["sh", "-c", f'i=0; while [ "$i" -lt {ENDED} ]; do /bin/true; i=$((i + 1)); done']).status, 0)
        self.daemons = [Daemon("reader", self.session.reader.pid), Daemon("router", self.session.router.pid)]
        for daemon in self.daemons:
            daemon.settle()

    def round(self, n):
        gate = harness.Gate(self.folder, f"gate-{n}")
        workload = self.programs["workload_calls"]
        probe = self.session.trace("-e", f"h{n % 3}=uprobe:{workload}:workload_call n={harness.argument(0)}:u64", "-o", "json", uid=0, gate=gate)
        counters = {"slow": self.counter("ring=65536", "pause=20000"), "overwriting": self.counter("ring=65536", "overwrite", "pause=20000"),
                    "filtered": self.counter(wanted=f"pid < {FIRST + 1000 * n} || comm ~ \"nobody{n}\"")}
        killed = self.counter("ring=65536")
        changer = self.changer(20)
        gate.wait(probe)
        self.assertEqual(harness.run([workload, CALLS]).status, 0)
        changer.tell()
        self.assertEqual(changer.hear(), "changed", changer.err)
        killed.kill()
        self.check_ended(harness.run([self.session.tracefan, "session", "flush", self.session.name]))
        self.check_ended(harness.run([self.session.tracefan, "status", "--session", self.session.name]))
        for name, counter in counters.items():
            self.check_counter(name, counter.finish())
        self.check_changer(changer.finish())
        gate.open()
        gate.close()
        result = probe.wait()
        self.check_ended(result)
        self.check_balance(result)
        self.check_no_loss(result)
        self.assertEqual(len(result.events), CALLS)
        for daemon in self.daemons:
            daemon.settle()

    def check_counter(self, name, report):
        trace, session = report["trace"], report["session"]
        self.assertEqual((report["twice"], report["disordered"], report["uncounted"]), (0, 0, 0), name)
        self.assertEqual((trace["delivered"], trace["lost_ring"]), (report["came"], report["told"]["ring"]), name)
        self.assertEqual(trace["decoded"], trace["delivered"] + trace["filtered"] + trace["lost_ring"], name)
        self.assertEqual(session["committed"], session["decoded"] + session["undecodable"] + session["lost_kernel"], name)

    def check_changer(self, report):
        self.assertEqual((report["twice"], report["wrong"], report["missed"], report["lost_ring"]), (0, 0, 0, 0), report)
        self.assertEqual(report["decoded"], report["delivered"] + report["filtered"], report)
        self.assertEqual(report["delivered"], report["events"], report)

    def test_nothing_grows(self):
        self.begin()
        end, rounds = time.monotonic() + SECONDS, 0
        while time.monotonic() < end or rounds <= WARM_UP:
            self.round(rounds)
            rounds += 1
        made = [int(p.finish()) for p in self.producers]
        report = self.constant.finish()
        self.check_changer(report)
        # Of what came all the time, to the one who was there all the time: each once.
        self.assertEqual((report["came"], report["lost"]), (made, 0))
        print(f"\n{rounds} rounds, {sum(made)} events of two producers, each delivered once to the one who stayed")
        for daemon in self.daemons:
            first, last = daemon.memory[WARM_UP], daemon.memory[-1]
            print(f"{daemon.name}: {daemon.descriptors} descriptors, {first >> 10} KiB of memory after {WARM_UP} rounds, "
                  f"{last >> 10} at the end, {max(daemon.memory) >> 10} at most")
        for daemon in self.daemons:
            self.assertLess(daemon.memory[-1], daemon.memory[WARM_UP] + GROWTH, daemon.memory)
        self.assertEqual(self.session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
