#!/usr/bin/env python3
"""A reader that is killed, and another one that takes over: the router and its consumers go on, and what the dead one had
taken out of the kernel and not published is told, to the event."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import time
import unittest

import harness

GETPGID = "syscalls:sys_enter_getpgid"
COUNT = harness.scaled(20000)
# Numbers of our own: others on the machine may make the same calls.
FIRST = (1 << 25) + os.getpid() % 64 * (1 << 18)


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


class Adoption(harness.TestCase):
    words = ()

    def start(self, *words):
        self.words = words
        self.session = harness.Session(self.folder, *words)

    def kill(self):
        self.session.reader.signal(signal.SIGKILL)
        self.session.reader.wait()

    def take_over(self):
        self.session.reader = self.session._start("reader", "--group", self.session.group.gr_name, *self.words)
        self.assertIn("took over session", self.session.reader.err)

    def consumer(self, name, *words, **more):
        gate = harness.Gate(self.folder, name)
        self.addCleanup(gate.close)
        process = self.session.trace(*words, "-o", "json", gate=gate, **more)
        gate.wait(process)
        return process, gate

    def work(self, first, count):
        subprocess.run([harness.program("workload_numbers"), str(harness.cpus()[-1]), str(first), str(count)], check=True)

    def await_events(self, process, count):
        """Until a consumer has told so many."""
        deadline = time.monotonic() + harness.PATIENCE
        while process.out.count('"kind":"event"') < count:
            self.assertTrue(process.running() and time.monotonic() < deadline, process.err)
            time.sleep(0.05)

    def end(self, consumer):
        process, gate = consumer
        gate.open()
        result = process.wait()
        self.check_ended(result)
        return result

    def numbers(self, result, wanted):
        return [e["args"]["pid"] for e in result.of(GETPGID) if e["args"]["pid"] in wanted]

    def listed(self):
        """The definitions of dynamic probes."""
        return [line for name in ("uprobe_events", "kprobe_events") for line in harness.read_lines(harness.TRACEFS / name)]

    def ours(self):
        group = f"tracefan_{re.sub('[^A-Za-z0-9]', '_', self.session.name)}_"
        return [line for line in self.listed() if f":{group}" in line]

    def test_everything_goes_on(self):
        self.start()
        program = harness.staged(self.folder, "workload_calls")
        wanted = range(FIRST, FIRST + 3 * COUNT)
        everything = self.consumer("everything", "-e", f"tracepoint:{GETPGID}", "-e", f"calls=uprobe:{program}:main", uid=0)
        some = self.consumer("some", "-e", f"tracepoint:{GETPGID}", "-f", f"pid < {FIRST + 50} || pid >= {wanted[-50]}")
        before = self.ours()
        self.assertEqual(len(before), 1, before)
        self.work(FIRST, COUNT)
        # What has come was published; what the reader is just taking out of the kernel dies with it.
        self.await_events(everything[0], COUNT)
        self.kill()
        # Nobody drains, and the kernel goes on.
        self.work(FIRST + COUNT, COUNT)
        subprocess.run([program, str(harness.cpus()[0])], stdout=subprocess.DEVNULL)
        self.take_over()
        self.assertEqual(self.ours(), before)
        self.work(FIRST + 2 * COUNT, COUNT)
        subprocess.run([program, str(harness.cpus()[0])], stdout=subprocess.DEVNULL)
        # One who comes now shares the probe that was taken over.
        late = self.consumer("late", "-e", f"calls=uprobe:{program}:main", uid=0)
        self.assertEqual(self.ours(), before)
        subprocess.run([program, str(harness.cpus()[0])], stdout=subprocess.DEVNULL)
        results = [self.end(c) for c in (everything, some, late)]
        for result in results:
            self.assertLessEqual({r["source"] for r in result.records if r["kind"] == "lost"}, {"reader"})
            self.check_order(result.events)
            self.check_balance(result)
            # For a consumer that is attached the reader's death is nothing at all.
            self.assertEqual([r for r in result.records if r["kind"] == "gap"], [])
        self.assertEqual(self.numbers(results[0], wanted), list(wanted))
        self.assertEqual(self.numbers(results[1], wanted), [*wanted[:50], *wanted[-50:]])
        self.assertEqual([len(r.of("calls")) for r in (results[0], results[2])], [3, 1])
        self.assertEqual(self.session.stop(), (0, 0))
        self.assertEqual(self.ours(), [])

    def steal(self):
        """Takes events out of the kernel, as a reader does that dies before it has published them."""
        size = os.sysconf("SC_PAGESIZE")
        with contextlib.suppress(OSError):
            size = int((self.session.instance / "buffer_subbuf_size_kb").read_text()) * 1024
        taken = 0
        for cpu in harness.cpus():
            fd = os.open(self.session.instance / "per_cpu" / f"cpu{cpu}" / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
            with contextlib.suppress(BlockingIOError):
                for _ in range(3):
                    taken += bool(os.read(fd, size))
            os.close(fd)
        return taken

    def read_events(self):
        """How many events were taken out of the kernel's ring."""
        return sum(int(re.search(r"read events: (\d+)", (self.session.instance / "per_cpu" / f"cpu{cpu}" / "stats").read_text())[1])
                   for cpu in harness.cpus())

    def test_what_the_dead_one_took_is_told(self):
        self.start()
        wanted = range(FIRST, FIRST + COUNT)
        consumer = self.consumer("consumer", "-e", f"tracepoint:{GETPGID}")
        bystander = self.consumer("bystander", "-e", "tracepoint:sched:sched_process_exit")
        self.session.reader.signal(signal.SIGSTOP)
        stat = pathlib.Path("/proc", str(self.session.reader.pid), "stat")
        while stat.read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.01)
        self.work(FIRST, COUNT)
        before = self.read_events()
        self.assertGreater(self.steal(), 0)
        stolen = self.read_events() - before
        self.kill()
        self.take_over()
        # The next router knows what was told, and does not tell it again.
        result = self.end(consumer)
        lost = [r for r in result.records if r["kind"] == "lost"]
        self.assertEqual([(r["source"], r["count"]) for r in lost], [("reader", stolen)])
        came = self.numbers(result, wanted)
        missing = sorted(set(wanted) - set(came))
        self.assertEqual(len(came), len(set(came)))
        self.assertTrue(0 < len(missing) <= stolen, (len(missing), stolen))
        self.check_order(result.events)
        self.check_balance(result)
        self.assertEqual(result.summary["session"]["lost_kernel"], stolen)
        self.session.router.signal(signal.SIGKILL)
        self.session.router.wait()
        self.session.router = self.session._start("router")
        while '"kind":"gap"' not in bystander[0].out:
            self.assertTrue(bystander[0].running(), bystander[0].err)
            time.sleep(0.01)
        result = self.end(bystander)
        self.assertEqual([(r["source"], r["count"]) for r in result.records if r["kind"] == "lost"], [("reader", stolen)])
        session = result.summary["session"]
        self.assertEqual(session["committed"], session["decoded"] + session["undecodable"] + session["lost_kernel"], session)
        self.assertEqual(session["lost_kernel"], stolen)
        self.assertEqual(self.session.stop(), (0, 0))

    def test_text(self):
        self.start("--source", "text")
        wanted = range(FIRST, FIRST + 2 * 1000)
        consumer = self.consumer("consumer", "-e", f"tracepoint:{GETPGID}")
        self.work(FIRST, 1000)
        self.kill()
        self.work(FIRST + 1000, 1000)
        self.take_over()
        result = self.end(consumer)
        lost = sum(r["count"] for r in result.records if r["kind"] == "lost")
        came = self.numbers(result, wanted)
        self.assertEqual(len(came), len(set(came)))
        # What had been read by the worker that died with the reader.
        self.assertLessEqual(len(wanted) - len(came), lost)
        self.check_balance(result)
        self.assertEqual(self.session.stop(), (0, 0))

    @staticmethod
    def lay(instance, size):
        """Has the kernel note a marker of so many bytes, and more lines than one read takes, of one length each."""
        (instance / "trace_marker").write_text("x" * size)
        for number in range(FIRST, FIRST + 300):
            with contextlib.suppress(ProcessLookupError):
                os.getpgid(number)

    @staticmethod
    def text(instance):
        """The lines that a read of trace_pipe will bring."""
        return [line for line in (instance / "trace").read_text().splitlines(keepends=True) if not line.startswith("#")]

    def measure(self):
        """After how many bytes of text, begun by such a marker, a read ends before a newline for which there was room in the
        kernel's buffer and not in its answer; and the length of a line."""
        instance = harness.TRACEFS / "instances" / f"test-{os.getpid()}-lines"
        instance.mkdir()
        self.addCleanup(instance.rmdir)
        (instance / "set_event_pid").write_text(str(os.getpid()))
        (instance / "events" / GETPGID.replace(":", "/") / "enable").write_text("1")
        width = 100
        size = 1
        while size <= width:
            (instance / "trace").write_text("")
            self.lay(instance, size)
            width = len(self.text(instance)[-1])
            with open(instance / "trace_pipe", "rb", buffering=0) as pipe:
                first = pipe.read(8192)
            if not first.endswith(b"\n"):
                return len(first) + 1, width
            size += 1
        self.skipTest("this kernel hands out whole lines")

    def test_text_that_is_handed_out_in_part(self):
        """The kernel has counted an event as read whose newline comes with the next read, and the account is asked for between."""
        end, width = self.measure()
        self.start("--source", "text")
        consumer = self.consumer("consumer", "-e", f"tracepoint:{GETPGID}")
        self.kill()
        # Behind what others did meanwhile.
        before = len("".join(self.text(self.session.instance)))
        (self.session.instance / "trace_marker").write_text("x")
        marker = len(self.text(self.session.instance)[-1])
        self.lay(self.session.instance, 1 + (end - before - 2 * marker) % width)
        self.take_over()
        result = self.end(consumer)
        self.check_balance(result)
        came = self.numbers(result, range(FIRST, FIRST + 300))
        self.assertEqual(len(came), len(set(came)))
        self.assertLessEqual(300 - len(came), sum(r["count"] for r in result.records if r["kind"] == "lost"))
        self.assertEqual(self.session.stop(), (0, 0))

    @unittest.skipUnless(os.environ.get("TRACEFAN_KILLS") == "full", "takes half a minute: with TRACEFAN_KILLS=full")
    def test_nobody_takes_over(self):
        self.start()
        process, gate = self.consumer("consumer", "-e", f"tracepoint:{GETPGID}")
        self.kill()
        self.assertEqual(self.session.router.wait().status, 1)
        gate.open()
        result = process.wait()
        self.assertEqual([r["message"] for r in result.records if r["kind"] == "end"], [f"the session's reader is gone; start it again with: tracefan session start {self.session.name}"])
        # Nobody lives who could hand the session on.
        result = harness.run([harness.program("tracefan-reader"), "--session", self.session.name, "--remove"])
        self.assertEqual(result.status, 0, result.err)

    def test_nothing_of_others_is_touched(self):
        foreign = harness.TRACEFS / "instances" / f"{os.getpid()}-not-ours"
        self.start()
        similar = harness.TRACEFS / "instances" / f"{self.session.instance.name}-x"
        event = f"foreign_{os.getpid()}"
        program = harness.staged(self.folder, "workload_calls")
        consumer = self.consumer("consumer", "-e", f"calls=uprobe:{program}:main", uid=0)
        own, = self.ours()
        group = own.partition(":")[2].partition("/")[0]
        place = own.split()[1].rpartition(":")[2]
        definitions = {f"{event}/main": f"p:{event}/main {program}:{place}",
                       # In our group, and no name of ours.
                       f"{group}/theirs": f"p:{group}/theirs {program}:{place}"}
        for path in (foreign, similar):
            path.mkdir()
            self.addCleanup(path.rmdir)
        for name, line in definitions.items():
            self.command(line)
            self.addCleanup(self.command, f"-:{name}")
        (similar / "events" / event / "enable").write_text("1")
        self.addCleanup((similar / "events" / event / "enable").write_text, "0")
        # One that a reader had defined and not noted when it died.
        orphan = re.sub(r"_[0-9a-f]{16}_", "_0123456789abcdef_", own.split()[0].partition("/")[2])
        self.command(f"p:{group}/{orphan} {program}:{place}")
        # Others may define probes meanwhile.
        known = lambda: [line for line in self.listed() if f":{event}/" in line or f":{group}/" in line]
        before = [line for line in known() if "0123456789abcdef" not in line]
        self.assertEqual(len(before), 3, before)
        self.kill()
        self.take_over()
        self.assertEqual(known(), before)
        self.assertEqual((similar / "events" / event / "enable").read_text(), "1\n")
        self.assertTrue(foreign.is_dir())
        # All killed: the next start removes what is ours.
        for daemon in (self.session.router, self.session.reader):
            daemon.signal(signal.SIGKILL)
            daemon.wait()
        consumer[1].open()
        self.assertNotEqual(consumer[0].wait().status, 0)
        self.session.reader = self.session._start("reader", "--group", self.session.group.gr_name)
        self.session.router = self.session._start("router")
        self.assertIn("which an earlier reader left behind", self.session.reader.err)
        self.assertEqual([line for line in self.ours()], [line for line in before if f"{group}/theirs" in line])
        self.assertEqual((similar / "events" / event / "enable").read_text(), "1\n")
        self.assertEqual(self.session.stop(), (0, 0))

    @staticmethod
    def command(line):
        """One more line in uprobe_events, where nothing can be sought."""
        fd = os.open(harness.TRACEFS / "uprobe_events", os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, line.encode())
        finally:
            os.close(fd)

    def test_a_second_start_says_who_holds_the_session(self):
        self.start()
        result = harness.run([harness.program("tracefan-reader"), "--session", self.session.name])
        self.assertEqual(result.status, 7, result.err)
        self.assertIn(f"held by another reader, process {self.session.reader.pid}", result.err)
        result = harness.run([harness.program("tracefan-router"), "--session", self.session.name])
        self.assertEqual(result.status, 7, result.err)
        self.assertEqual(self.session.stop(), (0, 0))

    def ask_for_the_session(self, user):
        """What the router answers to a user who says that it is the session's next reader: an exit status."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as router:
            os.setegid(self.session.group.gr_gid)
            os.seteuid(user)
            try:
                router.connect(str(harness.SESSIONS / self.session.name / "consumers.sock"))
            finally:
                os.seteuid(0)
                os.setegid(0)
            router.send(struct.pack("=HHIQQ", 64, 1, 24, 7, 0))
            kind, version, size, cookie, status = struct.unpack("=HHIQI", router.recv(4096)[:20])
            self.assertEqual((kind, version, size, cookie), (64 | 0x8000, 1, 576, 7))
            self.assertEqual(router.recv(4096), b"")
        return status

    def test_only_who_could_read_the_kernel_takes_over(self):
        self.start()
        self.assertEqual(self.ask_for_the_session(harness.USER_A), 3)
        self.kill()
        self.assertEqual(self.ask_for_the_session(harness.USER_A), 3)
        self.take_over()
        self.assertEqual(self.session.stop(), (0, 0))

    @staticmethod
    def state(pid):
        """X: it is gone."""
        lines = harness.read_lines(pathlib.Path("/proc", str(pid), "stat"))
        return lines[0].rpartition(")")[2].split()[0] if lines else "X"

    def test_the_command_starts_what_is_missing(self):
        name = f"test-{os.getpid()}-command"
        start = [harness.program("tracefan"), "session", "start", name]

        def pids():
            result = harness.run([harness.program("tracefan"), "status", "--session", name, "-o", "json"])
            self.check_ended(result)
            found = json.loads(result.out.splitlines()[0])
            return found["reader_pid"], found["router_pid"]

        self.check_ended(harness.run(start))
        try:
            before = pids()
            for daemon in (0, 1):
                os.kill(before[daemon], signal.SIGKILL)
                deadline = time.monotonic() + harness.PATIENCE
                # Its sockets are closed by the time that it is a zombie, and not yet when its memory is gone.
                while self.state(before[daemon]) not in "ZX":
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.01)
                self.check_ended(harness.run(start))
                after = pids()
                self.assertNotEqual(after[daemon], before[daemon])
                self.assertEqual(after[1 - daemon], before[1 - daemon])
                before = after
            # Nothing is missing: who holds it is said.
            result = harness.run(start)
            self.assertEqual(result.status, 7, result.err)
            self.assertIn(f"process {before[0]}", result.err)
            self.assertEqual(pids(), before)
        finally:
            self.check_ended(harness.run([harness.program("tracefan"), "session", "stop", name]))

    def test_who_asks_while_there_is_no_reader_waits(self):
        self.start()
        self.kill()
        process = self.session.trace("-e", f"tracepoint:{GETPGID}", "-n", "1", "-o", "json")
        self.take_over()
        deadline = time.monotonic() + harness.PATIENCE
        while process.running():
            os.getpgid(0)
            self.assertLess(time.monotonic(), deadline, process.err)
            time.sleep(0.01)
        self.check_ended(process.wait())
        self.assertEqual(self.session.stop(), (0, 0))

    def test_a_router_that_is_told_to_go_does_not_wait(self):
        self.start()
        consumer = self.consumer("consumer", "-e", f"tracepoint:{GETPGID}")
        self.kill()
        self.session.router.signal(signal.SIGTERM)
        self.assertEqual(self.session.router.wait().status, 0)
        consumer[1].open()
        result = consumer[0].wait()
        self.assertIn("end", [r["kind"] for r in result.records])
        # Nobody lives who could hand the session on.
        self.session.reader = self.session._start("reader", "--group", self.session.group.gr_name)
        self.session.router = self.session._start("router")
        self.assertNotIn("took over", self.session.reader.err)
        self.assertEqual(self.session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
