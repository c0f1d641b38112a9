#!/usr/bin/env python3
"""The kernel's half of the filters: what nobody wants is not recorded, and nobody misses what he wants."""
import json
import os
import pathlib
import signal
import subprocess
import time

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


def session_status(session):
    result = harness.run([harness.program("tracefan"), "status", "--session", session.name, "-o", "json"])
    assert result.status == 0, result.err
    # Its consumers follow, a line each.
    return json.loads(result.out.splitlines()[0])


class AnySource:
    """What holds whether the router reads sub-buffers or lines."""

    def setUp(self):
        super().setUp()
        self.session = harness.Session(self.folder, "--source", self.SOURCE)
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
        before = session_status(self.session)["ledger"]["committed"]
        c.go()
        d.go()
        after = session_status(self.session)["ledger"]["committed"]
        # Some is always committed: what the session traces for itself.
        self.assertLess(after - before, 2 * COUNT)
        self.assertEqual(self.numbers(self.end(wants_a)), a.numbers)
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


class Pushdown(AnySource, harness.TestCase):
    SOURCE = "raw"

    def test_what_the_kernel_lacks_is_the_router_s(self):
        a, b = Producer(1 << 20), Producer(1 << 21)
        wants = self.consumer("set", "-f", f"common_pid in {{{a.pid}, {b.pid}}} && comm =~ \"^workload\" && pid < {(1 << 20) + 10}")
        a.go()
        b.go()
        self.assertEqual(self.numbers(self.end(wants)), list(range(1 << 20, (1 << 20) + 10)))
        self.assertEqual(self.session.stop(), (0, 0))

    def test_names_and_missing_fields(self):
        """Words with dots, in quotes or not, globs, and a field that only one of two events has."""
        name = f"x{os.getpid()}.sh"
        script = pathlib.Path(self.folder, name)
        script.write_text(f"#!/bin/sh\nexec {harness.program('workload_numbers')} {harness.cpus()[0]} {1 << 20} 10\n")
        script.chmod(0o755)
        exec_, exit_ = "sched:sched_process_exec", "sched:sched_process_exit"
        rows = {
            f'comm == {name}': {exec_: 1, exit_: 0},
            f'comm == "{name}"': {exec_: 1, exit_: 0},
            f'comm={name}': {exec_: 1, exit_: 0},
            f"comm ~ '{name[:-2]}*'": {exec_: 1, exit_: 0},
            f'comm ~ "?{name[1:]}" && comm != y.sh': {exec_: 1, exit_: 0},
            # Missing is false, and so is its negation: not a match by default.
            f'filename == "{script}"': {exec_: 1, exit_: 0},
            f'filename ~ "{self.folder}/*" || prio < -1': {exec_: 1, exit_: 0},
            f'!(filename ~ "*") || comm == "{name}" && filename ~ "*{name}"': {exec_: 1, exit_: 0},
        }
        for text, expected in rows.items():
            with self.subTest(text):
                result = harness.trace("-e", f"tracepoint:{exec_}", "-e", f"tracepoint:{exit_}", "-f", text, "-o", "json", "-w",
                                       f"{self.folder}/out", "--", script)
                self.check_ended(result)
                records = harness.read_records(pathlib.Path(self.folder, "out").read_text())
                counts = {p: sum(r["kind"] == "event" and r["probe"] == p for r in records) for p in expected}
                self.assertEqual(counts, expected)
        self.assertEqual(self.session.stop(), (0, 0))


class PushdownOfText(AnySource, harness.TestCase):
    """The kernel's half is made of the kernel's own event, whatever its lines show."""
    SOURCE = "text"

    def test_what_only_lines_have(self):
        a, b = Producer(1 << 20), Producer(1 << 21)
        wants = self.consumer("a", "-f", f'text =~ "pid: (0x)?1000" && common_pid == {a.pid}')
        self.assertEqual(self.filter_file.read_text().strip(), f"common_pid == {a.pid}")
        a.go()
        b.go()
        wanted = [n for n in a.numbers if f"{n:x}".startswith("1000")]
        self.assertEqual(self.numbers(self.end(wants)), wanted)
        self.assertEqual(self.session.stop(), (0, 0))


class KeptAway(harness.TestCase):
    """What the kernel's own counts say of the hits that it did not record."""

    COUNT, STEP = 1000, 0x9e3779b97f4a7c15

    def setUp(self):
        harness.require_file("uprobe_events", "uprobes")
        super().setUp()
        self.workload = harness.staged(self.folder, "workload_calls")
        self.probe = f"h=uprobe:{self.workload}:workload_call n={harness.argument(1)}:u64"

    def consumer(self, name, probe):
        gate = harness.Gate(self.folder, name)
        self.addCleanup(gate.close)
        process = self.session.trace("-e", probe, "-o", "json", uid=0, gate=gate)
        gate.wait(process)
        return process, gate

    def end(self, consumer):
        process, gate = consumer
        gate.open()
        result = process.wait()
        self.check_ended(result)
        return result

    def work(self):
        self.check_ended(harness.run([self.workload, self.COUNT]))

    def status(self):
        return session_status(self.session)["kept_away"]

    def check(self, source):
        self.session = harness.Session(self.folder, "--source", source)
        self.assertEqual(self.status(), {"hits": None, "probes": 0, "unknown": 0})
        odd = self.consumer("odd", f"{self.probe} if n & 1")
        self.assertEqual(self.status(), {"hits": 0, "probes": 1, "unknown": 0})
        self.work()
        half = self.COUNT // 2
        self.assertEqual(self.status(), {"hits": half, "probes": 1, "unknown": 0})
        # The kernel records for both now; nobody counts the hits of a tracepoint.
        first = self.consumer("first", f"{self.probe} if n == 0")
        tracepoint = self.consumer("tracepoint", f"tracepoint:{GETPGID} if common_pid == 1")
        self.work()
        self.assertEqual(self.status(), {"hits": 2 * half - 1, "probes": 1, "unknown": 1})
        text = harness.run([harness.program("tracefan"), "status", "--session", self.session.name]).out
        self.assertIn(f"  kept away by the kernel: {2 * half - 1} hits of 1 probe; not known of others: 1\n", text)
        probes = self.end(odd).summary["probes"]["h"]
        self.assertEqual((probes["delivered"], probes["kept_away"]), (2 * half, 2 * half - 1))
        self.assertIsNone(self.end(tracepoint).summary["probes"][GETPGID]["kept_away"])
        # What is recorded without a trace's being there counts as recorded.
        everything = self.consumer("everything", self.probe)
        self.work()
        self.assertEqual(self.status(), {"hits": 2 * half - 1, "probes": 1, "unknown": 0})
        for consumer in (first, everything):
            self.assertEqual(self.end(consumer).summary["probes"]["h"]["kept_away"], 2 * half - 1)
        self.assertEqual(self.session.stop(), (0, 0))

    def test_raw(self):
        self.check("raw")

    def test_text(self):
        self.check("text")

    def test_an_earlier_router_had_some(self):
        self.session = harness.Session(self.folder)
        odd = self.consumer("odd", f"{self.probe} if n & 1")
        self.work()
        self.session.router.signal(signal.SIGKILL)
        self.session.router.wait()
        self.session.router = self.session._start("router")
        deadline = time.monotonic() + harness.PATIENCE
        while '"kind":"gap"' not in odd[0].out:
            self.assertLess(time.monotonic(), deadline, odd[0].err)
            time.sleep(0.01)
        self.work()
        self.assertEqual(self.status(), {"hits": None, "probes": 0, "unknown": 1})
        self.assertIsNone(self.end(odd).summary["probes"]["h"]["kept_away"])
        self.assertEqual(self.session.stop(), (0, 0))


class Talker:
    """A program that says a line when it has got so far, and goes on when it is told to."""

    def __init__(self, words, **more):
        self.name = words[0]
        self.process = subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)

    def hear(self):
        return self.process.stdout.readline().strip()

    def tell(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        """Its last line, once it has nothing more to wait for."""
        out, _ = self.process.communicate(timeout=harness.PATIENCE)
        assert self.process.returncode == 0, f"{self.name} failed"
        return out

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Whose(harness.TestCase):
    """Filters on the process behind a thread."""

    OLD, NEW = 0x61000000, 0x62000000

    def program(self, first, **more):
        """workload_threads.c says which thread makes which of its three calls."""
        talker = Talker([self.workload, str(first)], **more)
        self.addCleanup(talker.kill)
        return talker

    def group(self):
        """A cgroup of our own, or None where there is no unified hierarchy to write to."""
        roots = [line.split()[1] for line in harness.read_lines(pathlib.Path("/proc/mounts")) if line.split()[2] == "cgroup2"]
        folder = pathlib.Path(roots[0], f"tracefan-{os.getpid()}") if roots else None
        try:
            if folder:
                folder.mkdir()
                self.addCleanup(folder.rmdir)
        except OSError:
            return None
        return folder

    def check(self, source):
        self.workload = harness.staged(self.folder, "workload_threads")
        group = self.group()
        old = self.program(self.OLD)
        session = harness.Session(self.folder, "--source", source)
        new = self.program(self.NEW, **harness.as_user(harness.USER_A, session.group.gr_gid))
        exe = os.readlink(f"/proc/{old.process.pid}/exe")
        all_old, all_new = ([first + i for i in range(3)] for first in (self.OLD, self.NEW))
        wanted = {
            f"tgid == {old.process.pid}": all_old,
            f"tid == {old.process.pid}": [self.OLD, self.OLD + 2],
            f"tgid == {new.process.pid} && tid != {new.process.pid}": [self.NEW + 1],
            f"uid == {harness.USER_A}": all_new,
            f"gid == {harness.USER_A} && uid != 0": all_new,
            f'exe == "{exe}" && uid == 0': all_old,
            f'!(exe == "{exe}")': [],
        }
        if group:
            wanted[f"cgroup == /{group.name}"] = [self.OLD + 2]
        consumers = {}
        for i, text in enumerate(wanted):
            gate = harness.Gate(self.folder, f"g{i}")
            self.addCleanup(gate.close)
            process = session.trace("-e", f"tracepoint:{GETPGID} if pid >= {self.OLD}", "-f", text, "-o", "json", gate=gate)
            gate.wait(process)
            consumers[text] = (process, gate)
        for talker in (old, new):
            talker.tell()
            self.assertEqual(talker.hear(), "called")
        if group:
            (group / "cgroup.procs").write_text(str(old.process.pid))
        for talker in (old, new):
            talker.end()
        for text, (process, gate) in consumers.items():
            gate.open()
            result = process.wait()
            self.check_ended(result)
            with self.subTest(text):
                self.assertEqual(sorted(e["args"]["pid"] for e in result.of(GETPGID)), wanted[text])
        self.assertEqual(session.stop(), (0, 0))

    def test_raw(self):
        self.check("raw")

    def test_text(self):
        self.check("text")


class Changes(harness.TestCase):
    """Filters that change while events flow. filter_changer.c and workload_paced.c say which numbers are whose."""

    FIRST, EXTRA = 1 << 24, 1 << 16

    def setUp(self):
        super().setUp()
        self.session = harness.Session(self.folder)
        self.changer = harness.staged(self.folder, "filter_changer")

    def start(self, words, **more):
        talker = Talker(words, **more)
        self.addCleanup(talker.kill)
        return talker

    def consumer(self, changes, producers):
        consumer = self.start([self.changer, self.session.name, changes, *(p.process.pid for p in producers)], **harness.as_user(harness.USER_A, self.session.group.gr_gid))
        self.assertEqual(consumer.hear(), "live")
        return consumer

    def producer(self, n):
        cpus = harness.cpus()
        return self.start([harness.program("workload_paced"), cpus[n % len(cpus)], self.FIRST * (n + 1), self.EXTRA])

    def test_nothing_is_missed_while_filters_change(self):
        changes = harness.scaled(1000)
        producers = [self.producer(0), self.producer(1)]
        constant, changer = self.consumer(0, producers), self.consumer(changes, producers)
        for talker in (*producers, changer):
            talker.tell()
        self.assertEqual(changer.hear(), "changed")
        made = [int(p.end()) for p in producers]
        reports = {name: json.loads(c.end()) for name, c in (("constant", constant), ("changer", changer))}
        for name, report in reports.items():
            with self.subTest(name):
                # What every filter accepts came once each, from the first call to the last.
                self.assertEqual(report["came"], made)
                self.assertEqual(report["beyond"], made)
                self.assertEqual(report["twice"], 0)
                self.assertEqual((report["lost"], report["lost_ring"]), (0, 0))
                self.assertEqual(report["decoded"], report["delivered"] + report["filtered"])
                self.assertEqual(report["delivered"], report["events"])
                # Each mark stands where it says: before it is by the old filter, behind it by the new one, which
                # from there on gets all that it takes.
                self.assertEqual((report["wrong"], report["missed"]), (0, 0))
                self.assertEqual((report["stray"], report["untimely"]), (0, 0))
                self.assertGreater(report["events"], sum(made))
        self.assertEqual((reports["constant"]["marks"], reports["changer"]["marks"]), (0, changes))
        self.assertEqual(self.session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
