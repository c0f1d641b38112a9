#!/usr/bin/env python3
"""The list of those who are kept out of the trace is written anew while events flow, when consumers have left and when a reader takes over from one
that was killed in the midst of it: each event is delivered or told, and nobody stays hidden."""
import os
import pathlib
import signal
import time
import unittest

import harness

# The numbers of workload_paced that filter_changer knows.
FIRST, EXTRA = 1 << 24, 1 << 16
ROUNDS = 3
# So many threads a second are thought to be made at most, so that a number isn't another's before the list is written anew.
MADE_EACH_SECOND = 16000
WAIT_MAX = 10


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


def numbers_end():
    return int(pathlib.Path("/proc/sys/kernel/pid_max").read_text())


class KeptOut(harness.TestCase):
    def setUp(self):
        super().setUp()
        if os.stat("/proc/self/ns/pid").st_ino != 0xEFFFFFFC:
            raise unittest.SkipTest("in a namespace of processes nobody can be kept out")
        if numbers_end() / MADE_EACH_SECOND > WAIT_MAX:
            raise unittest.SkipTest(f"with a kernel.pid_max of {numbers_end()} the list is written anew once a minute")
        self.session = harness.Session(self.folder)
        user = harness.as_user(harness.USER_A, self.session.group.gr_gid)
        cpus = harness.cpus()
        self.producers = [harness.Talker([harness.program("workload_paced"), cpus[n % len(cpus)], FIRST * (n + 1), EXTRA]) for n in range(2)]
        self.consumer = harness.Talker([harness.staged(self.folder, "filter_changer"), self.session.name, 0, *(p.pid for p in self.producers)], **user)
        self.assertEqual(self.consumer.hear(), "live", self.consumer.err)
        for producer in self.producers:
            producer.tell()

    def listed(self, file="set_event_notrace_pid"):
        return set(map(int, (self.session.instance / file).read_text().split()))

    def await_true(self, condition):
        """Nobody tells when the kernel's list changes, so this looks again."""
        deadline = time.monotonic() + WAIT_MAX + harness.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), deadline, (self.listed(), len(self.listed("set_event_pid"))))
            time.sleep(0.02)

    def await_listed(self, *pids):
        """Until just these are kept out, and nobody is on the list of those who are let in."""
        self.await_true(lambda: self.listed() == set(pids) and not self.listed("set_event_pid"))

    def own(self):
        helper = [pid for pid, parent in harness.parents().items() if parent == self.session.reader.pid]
        return {self.session.reader.pid, self.session.router.pid, *helper}

    def check_account(self, doubts=0):
        """`doubts`: of so many losses the count is not known, they are told as one at least, and none was these producers'."""
        made = sum(int(producer.finish()) for producer in self.producers)
        report = self.consumer.finish()
        self.assertGreater(made, 0)
        self.assertEqual((sum(report["came"]) + report["lost"] - doubts, report["twice"], report["lost_ring"]), (made, 0, 0), report)
        return report

    def test_while_consumers_come_and_go(self):
        for _ in range(ROUNDS):
            passing = [self.session.trace("-e", "tracepoint:sched:sched_process_exec", "-q", "-d", "0.2") for _ in range(2)]
            for consumer in passing:
                self.check_ended(consumer.wait())
            self.await_listed(*self.own(), self.consumer.pid)
        self.assertEqual(self.check_account()["lost"], 0)
        self.assertEqual(self.session.stop(), (0, 0))

    def reborn(self, pid):
        """A producer with the number of a process that has just ended; others make processes, too."""
        cpu = harness.cpus()[0]
        while True:
            pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
            producer = harness.Talker([harness.program("workload_paced"), cpu, FIRST * 3, EXTRA])
            if producer.pid == pid:
                return producer
            producer.kill()
            producer.wait()

    def test_a_number_is_a_strangers_before_the_reader_hears_of_it(self):
        """Who got it was kept out, and everybody else is told so; from then on its events come."""
        if not os.path.exists("/proc/sys/kernel/ns_last_pid"):
            self.skipTest("the kernel gives out what number it likes")
        gate = harness.Gate(self.folder, "witness")
        witness = self.session.trace("-o", "json", "-e", "tracepoint:syscalls:sys_enter_getpgid", "--", *gate.words)
        gate.wait(witness)
        leaver = self.session.trace("-e", "tracepoint:sched:sched_process_exec", "-q", "-d", "600")
        self.await_true(lambda: leaver.pid in self.listed())
        # Times are told in ticks.
        time.sleep(0.05)
        self.session.reader.signal(signal.SIGSTOP)
        leaver.kill()
        leaver.wait()
        stranger = self.reborn(leaver.pid)
        self.session.reader.signal(signal.SIGCONT)
        self.await_listed(*self.own(), self.consumer.pid, witness.pid)
        stranger.tell()
        made = int(stranger.finish())
        self.assertGreater(made, 0)
        gate.open()
        result = witness.wait()
        self.check_ended(result)
        came = [r["args"]["pid"] for r in result.of("syscalls:sys_enter_getpgid") if r["pid"] == leaver.pid]
        self.assertEqual([n for n in came if n != EXTRA and n >= FIRST], list(range(FIRST * 3, FIRST * 3 + made)))
        self.assertEqual([(r["source"], r["count"]) for r in result.records if r["kind"] == "lost"], [("kernel", None)])
        self.check_account(doubts=1)
        self.assertEqual(self.session.stop(), (0, 0))

    def test_by_a_reader_that_is_killed(self):
        """As it stands when the one list has been cleared and not been written, and the other not been cleared."""
        reader = self.session.reader
        kept = self.own() | {self.consumer.pid}
        self.assertLessEqual(kept, self.listed())
        reader.signal(signal.SIGSTOP)
        fd = os.open(self.session.instance / "set_event_pid", os.O_WRONLY | os.O_APPEND)
        text = " ".join(str(n) for n in range(numbers_end()) if n not in kept).encode()
        self.assertEqual(os.write(fd, text), len(text))
        os.close(fd)
        os.close(os.open(self.session.instance / "set_event_notrace_pid", os.O_WRONLY | os.O_TRUNC))
        reader.signal(signal.SIGKILL)
        reader.wait()
        self.session.reader = self.session._start("reader", "--group", self.session.group.gr_name)
        self.assertIn("took over session", self.session.reader.err)
        self.await_listed(*self.own(), self.consumer.pid)
        self.check_account()
        self.assertEqual(self.session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
