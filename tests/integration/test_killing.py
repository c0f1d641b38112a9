#!/usr/bin/env python3
"""Routers and readers that are killed again and again under 100,000 events a second, and consumers that leave nothing behind
when they are. TRACEFAN_KILLS=full is a hundred routers, twenty readers and a thousand consumers."""
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import harness

FULL = os.environ.get("TRACEFAN_KILLS") == "full"
ROUTERS, READERS, CONSUMERS = (100, 20, 1000) if FULL else (8, 5, max(5, harness.scaled(50)))
RATE = harness.scaled(100_000)
RING = 256 << 20
# Numbers of our own: others on the machine may run the same program.
FIRST = (1 << 24) + os.getpid() % 64 * (1 << 24)
MOST = 1 << 27


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Conversation(harness.Process):
    """A program that says what it has come to by lines, and goes on until its input ends."""

    def __init__(self, words, **more):
        go, self._hold = os.pipe()
        said, say = os.pipe()
        super().__init__(words, stdin=go, stdout=say, **more)
        os.close(go)
        os.close(say)
        self.lines = open(said)

    def line(self):
        line = self.lines.readline().strip()
        if not line:
            raise AssertionError(f"{self.words[0]} has ended: {self.wait().err}")
        return line

    def finish(self):
        """Its last words, without the lines that came before them."""
        os.close(self._hold)
        rest = self.lines.read().splitlines()
        self.lines.close()
        return self.wait(), rest[-1] if rest else ""


class Killing(harness.TestCase):
    def start(self, *words):
        self.words = ("--buffer", "64M", *words)
        self.session = harness.Session(self.folder, *self.words)
        self.number_consumer = harness.staged(self.folder, "number_consumer")

    def consumer(self, ring=RING):
        process = Conversation([self.number_consumer, self.session.name, FIRST, MOST, f"ring={ring}", "tell"],
                               **harness.as_user(harness.USER_A, self.session.group.gr_gid))
        self.assertEqual(process.line(), "live")
        return process

    def work(self):
        process = Conversation([harness.program("workload_rate"), harness.cpus()[-1], FIRST, RATE])
        self.assertEqual(process.line(), "going")
        return process

    def finish(self, consumers, work):
        """Every consumer's report, and the number of events that there were."""
        result, made = work.finish()
        self.assertEqual(result.status, 0, result.err)
        reports = []
        for consumer in consumers:
            result, report = consumer.finish()
            self.assertEqual(result.status, 0, (result.err, self.session.router.err, self.session.reader.err))
            reports.append(json.loads(report))
        return reports, int(made)

    def check_session(self, report):
        session, trace = report.pop("session"), report.pop("trace")
        report["lost_ring"] = trace["lost_ring"]
        del report["told"], report["uncounted"]
        self.assertEqual(session["committed"], session["decoded"] + session["undecodable"] + session["lost_kernel"], session)
        self.assertEqual(session["lost_kernel"], report["lost"])
        # Where the processor is emulated, it may stand still in the middle of an event.
        self.assertLessEqual(report.pop("late"), report["came"] // 1000 if harness.in_guest() else 0)

    def takeovers(self):
        return self.session.router.err.count("another reader has taken over")

    def await_takeover(self, before):
        deadline = time.monotonic() + harness.PATIENCE
        while self.takeovers() == before:
            self.assertTrue(self.session.router.running() and time.monotonic() < deadline, self.session.router.err)
            time.sleep(0.01)

    def test_readers(self):
        self.start()
        consumers = [self.consumer() for _ in range(2)]
        work = self.work()
        began = time.monotonic()
        for i in range(READERS):
            # Whatever it is at when it dies.
            time.sleep(random.uniform(0, 0.2))
            self.session.reader.signal(signal.SIGKILL)
            self.session.reader.wait()
            before = self.takeovers()
            self.session.reader = self.session._start("reader", "--group", self.session.group.gr_name, *self.words)
            # Those that die before they have taken over don't make the router wait for longer than one would.
            if i % 4 == 3:
                self.await_takeover(before)
        seconds = time.monotonic() - began
        reports, made = self.finish(consumers, work)
        print(f"readers killed: {READERS}, events: {made} in {seconds:.1f} s, consumers: {reports}")
        for report in reports:
            self.check_session(report)
            # What was lost may have been of others who make such calls, or of the session's own events.
            self.assertGreaterEqual(report["came"] + report["lost"], made)
            self.assertEqual([report[k] for k in ("twice", "disordered", "gaps", "lost_ring")], [0] * 4)
        self.assertEqual(self.session.stop(), (0, 0))

    def restart_router(self, consumers):
        self.session.router.signal(signal.SIGKILL)
        self.session.router.wait()
        self.session.router = self.session._start("router")
        for consumer in consumers:
            # What readers took with them may be told before.
            while consumer.line() != "gap":
                pass

    def test_both_in_turn(self):
        """A router that dies at whatever stage of another reader's taking over."""
        self.start()
        consumers = [self.consumer() for _ in range(2)]
        work = self.work()
        for _ in range(READERS):
            self.session.reader.signal(signal.SIGKILL)
            self.session.reader.wait()
            self.session.reader = self.session._start("reader", "--group", self.session.group.gr_name, *self.words)
            time.sleep(random.uniform(0, 0.1))
            self.restart_router(consumers)
        reports, made = self.finish(consumers, work)
        print(f"readers and routers killed: {READERS} each, events: {made}, consumers: {reports}")
        for report in reports:
            self.check_session(report)
            self.assertGreaterEqual(report["came"] + report["lost"], made)
            self.assertEqual([report[k] for k in ("twice", "disordered", "gaps", "lost_ring")], [0, 0, READERS, 0])
        self.assertEqual(self.session.stop(), (0, 0))

    def test_what_a_router_had_no_room_to_tell(self):
        """A consumer that stands still while its router loses events for want of room, and dies before it can say so."""
        def numbers(first, count):
            return subprocess.Popen([harness.program("workload_numbers"), str(harness.cpus()[-1]), str(first), str(count)])

        self.start()
        slow, quick = self.consumer(64 << 10), self.consumer()
        slow.signal(signal.SIGSTOP)
        # Several times what the small ring holds; some of it is told while the router lives.
        many, few = 20000, 100
        work = numbers(FIRST, many)
        time.sleep(random.uniform(0, 0.2))
        self.session.router.signal(signal.SIGKILL)
        self.session.router.wait()
        self.assertEqual(work.wait(), 0)
        slow.signal(signal.SIGCONT)
        self.session.router = self.session._start("router")
        self.assertEqual([c.line() for c in (slow, quick)], ["gap"] * 2)
        self.assertEqual(numbers(FIRST + many, few).wait(), 0)
        reports = []
        for consumer in (slow, quick):
            result, report = consumer.finish()
            self.check_ended(result)
            reports.append(json.loads(report))
        print(f"told by nobody but the dead router's ring, and later: {reports[0]['lost']} of {many + few}")
        for report in reports:
            self.assertEqual(report["came"] + report["lost"], many + few)
            self.assertEqual([report[k] for k in ("twice", "disordered")], [0, 0])
        self.assertEqual(reports[1]["lost"], 0)
        self.assertEqual(self.session.stop(), (0, 0))

    def test_routers(self):
        self.start()
        consumers = [self.consumer() for _ in range(2)]
        work = self.work()
        began = time.monotonic()
        for _ in range(ROUTERS):
            # Whatever it is at when it dies.
            time.sleep(random.uniform(0, 0.1))
            self.session.router.signal(signal.SIGKILL)
            self.session.router.wait()
            self.session.router = self.session._start("router")
            self.assertEqual([c.line() for c in consumers], ["gap"] * len(consumers))
        seconds = time.monotonic() - began
        reports, made = self.finish(consumers, work)
        print(f"routers killed: {ROUTERS}, events: {made} in {seconds:.1f} s, consumers: {reports}")
        for report in reports:
            self.check_session(report)
            self.assertEqual(report, {"came": made, "twice": 0, "disordered": 0, "lost": 0, "gaps": ROUTERS, "lost_ring": 0})
        self.assertEqual(self.session.stop(), (0, 0))


class Leak(harness.TestCase):
    """What a process holds. Memory of its own, without what it shares with consumers."""

    @staticmethod
    def holds(process):
        folder = pathlib.Path("/proc", str(process.pid))
        status = (folder / "status").read_text()
        return {"descriptors": len(os.listdir(folder / "fd")), "maps": len(harness.read_lines(folder / "maps")),
                "memory": int(re.search(r"RssAnon:\s*(\d+)", status)[1])}

    def probes(self):
        """Of this session, by the kernel."""
        ours = f"tracefan_{re.sub('[^A-Za-z0-9]', '_', self.session.name)}_"
        return [line for name in ("uprobe_events", "kprobe_events")
                for line in harness.read_lines(harness.TRACEFS / name) if ours in line]

    def settled(self, wanted):
        """What the daemons hold once they are through with the dead. A process can't be waited for by what it holds,
        so this looks again."""
        deadline = time.monotonic() + harness.PATIENCE
        while True:
            found = {p: self.holds(getattr(self.session, p)) for p in ("reader", "router")}
            if not self.probes() and all(found[p]["descriptors"] <= wanted.get(p, 1 << 20) for p in found):
                return found
            self.assertLess(time.monotonic(), deadline, (found, wanted, self.probes()))
            time.sleep(0.05)

    def kill_some(self, count):
        target = harness.program("workload_calls")
        symbol = "main"
        for i in range(count):
            words = ["-e", f"uprobe:{target}:{symbol}", "-e", "tracepoint:sched:sched_process_exit"]
            gate = harness.Gate(self.folder, f"gate-{i}") if i % 2 else None
            process = self.session.trace(*words, uid=0, gate=gate)
            if gate:
                gate.wait(process)
                process.kill()
                gate.open()
                gate.close()
                gate.ready.unlink()
                gate.go.unlink()
            else:
                # At whatever stage of its coming.
                time.sleep(random.uniform(0, 0.08))
                process.kill()

    def test_consumers(self):
        self.session = harness.Session(self.folder)
        idle = {p: self.holds(getattr(self.session, p))["descriptors"] for p in ("reader", "router")}
        # So that what grows to its size once has done so: the router remembers some thousand threads that ended.
        subprocess.run(["sh", "-c", f"i=0; while [ $i -lt {harness.scaled(4500)} ]; do /bin/true; i=$((i + 1)); done"], check=True)
        self.kill_some(20)
        before = self.settled(idle)
        self.kill_some(CONSUMERS)
        after = self.settled(idle)
        print(f"consumers killed: {CONSUMERS}, before: {before}, after: {after}, probes: {self.probes()}")
        for name in before:
            self.assertEqual(after[name]["descriptors"], before[name]["descriptors"], name)
            # One more, of malloc(3)'s.
            self.assertLessEqual(after[name]["maps"], before[name]["maps"] + 1, name)
            # KiB. The router knows all threads of the machine, which may be more than before.
            self.assertLessEqual(after[name]["memory"], before[name]["memory"] + 96 + CONSUMERS // 2, name)
        self.assertEqual(self.session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
