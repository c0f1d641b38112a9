#!/usr/bin/env python3
"""The kernel's half of the filters: what nobody wants is not recorded, and nobody misses what he wants."""
import subprocess

import harness

GETPGID = "syscalls:sys_enter_getpgid"
COUNT = 2000


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Producer:
    """A process that makes numbered calls once it is let go; its pid is known before."""

    def __init__(self, first):
        self.first = first
        # The shell waits for the end of its standard input and becomes the workload.
        self.process = subprocess.Popen(
            ["sh", "-c", 'cat >&2; exec "$@"', "producer", harness.program("workload_numbers"),
             str(harness.cpus()[0]), str(first), str(COUNT)],
            stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)

    @property
    def pid(self):
        return self.process.pid

    @property
    def numbers(self):
        return list(range(self.first, self.first + COUNT))

    def go(self):
        self.process.stdin.close()
        assert self.process.wait() == 0


class Pushdown(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.session = harness.Session(self.folder)
        self.filter_file = self.session.instance / "events" / "syscalls" / "sys_enter_getpgid" / "filter"

    def consumer(self, name, *words):
        gate = harness.Gate(self.folder, name)
        self.addCleanup(gate.close)
        process = self.session.trace("-e", f"tracepoint:{GETPGID}", *words, "-o", "json", gate=gate)
        gate.wait(process)
        return process, gate

    def end(self, consumer):
        process, gate = consumer
        gate.open()
        result = process.wait()
        self.check_ended(result)
        self.check_no_loss(result)
        probe = result.summary["probes"][GETPGID]
        self.assertEqual(probe["decoded"], probe["delivered"] + probe["filtered"] + probe["lost_ring"])
        return result

    def numbers(self, result):
        return sorted(e["args"]["pid"] for e in result.of(GETPGID))

    def test_the_kernel_records_what_somebody_wants(self):
        a, b, c = Producer(1 << 20), Producer(1 << 21), Producer(1 << 22)
        wants_a = self.consumer("a", "-f", f"common_pid == {a.pid}")
        wants_b = self.consumer("b", "-f", f"common_pid == {b.pid}")
        narrow = self.filter_file.read_text().strip()
        self.assertIn(str(a.pid), narrow)
        self.assertIn(str(b.pid), narrow)
        for producer in (a, b, c):
            producer.go()
        result_b = self.end(wants_b)
        result_a = self.end(wants_a)
        self.assertEqual(self.numbers(result_a), a.numbers)
        self.assertEqual(self.numbers(result_b), b.numbers)
        # C's calls were never recorded: both saw A's and B's go by, and no others.
        for result in (result_a, result_b):
            self.assertEqual(result.summary["probes"][GETPGID]["decoded"], 2 * COUNT)
            self.assertEqual(result.summary["probes"][GETPGID]["filtered"], COUNT)
        self.assertEqual(self.session.stop(), (0, 0))

    def test_a_newcomer_gets_all_from_its_first_event_on(self):
        a, b, c, d = (Producer(1 << n) for n in range(20, 24))
        wants_a = self.consumer("a", "-f", f"common_pid == {a.pid}")
        narrow = self.filter_file.read_text()
        wants_all = self.consumer("all")
        self.assertEqual(self.filter_file.read_text().strip(), "none")
        for producer in (b, a):
            producer.go()
        result = self.end(wants_all)
        mine = [n for n in self.numbers(result) if n in range(1 << 20, 1 << 22)]
        self.assertEqual(mine, a.numbers + b.numbers if a.first < b.first else b.numbers + a.numbers)
        # The kernel narrows again once the newcomer has left.
        self.assertEqual(self.filter_file.read_text(), narrow)
        c.go()
        d.go()
        result = self.end(wants_a)
        self.assertEqual(self.numbers(result), a.numbers)
        self.assertLess(result.summary["probes"][GETPGID]["decoded"], 3 * COUNT)
        self.assertEqual(self.session.stop(), (0, 0))

    def test_what_the_kernel_lacks_is_the_router_s(self):
        a, b = Producer(1 << 20), Producer(1 << 21)
        wants = self.consumer("set", "-f", f"common_pid in {{{a.pid}, {b.pid}}} && comm =~ \"^workload\" && pid < {(1 << 20) + 10}")
        a.go()
        b.go()
        self.assertEqual(self.numbers(self.end(wants)), list(range(1 << 20, (1 << 20) + 10)))
        self.assertEqual(self.session.stop(), (0, 0))

    def test_a_wrong_filter_changes_nothing(self):
        a = Producer(1 << 20)
        wants = self.consumer("a", "-f", f"common_pid == {a.pid}")
        before = self.filter_file.read_text()
        wrong = harness.trace("--session", self.session.name, "-e", f"tracepoint:{GETPGID}", "-f", "pid === 3", "-d", 5,
                              uid=harness.USER_B, groups=(self.session.group.gr_gid,), tracefan=self.session.tracefan)
        self.check_ended(wrong, 2)
        self.assertIn("^", wrong.err)
        self.assertEqual(self.filter_file.read_text(), before)
        a.go()
        self.assertEqual(self.numbers(self.end(wants)), a.numbers)
        self.assertEqual(self.session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
