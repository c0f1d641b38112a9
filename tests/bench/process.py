"""Processes of the bench: starting them, speaking with them by lines, and what they cost."""
import contextlib
import os
import pathlib
import re
import select
import signal
import subprocess
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("TRACEFAN_BUILD") or pathlib.Path(__file__).parents[2] / "build/release").resolve()
# For a program that hangs; nothing waits this long otherwise.
PATIENCE = 180


class Failed(Exception):
    """A run that did not come to its end; the message says why."""


class Disturbed(Exception):
    """A run whose figures mean nothing, because of what others did on this machine; it left nothing behind."""


class Absent(Exception):
    """A peer, or something of this machine, that isn't there; the message names it."""


def built(name):
    path = BUILD / name
    if not path.exists():
        raise Failed(f"{path} has not been built")
    return str(path)


def cpu_time(pid):
    """Nanoseconds of processor time of a running process, from its own clock: see clock_getcpuclockid(3)."""
    return time.clock_gettime_ns(~pid << 3 | 2)


class Child:
    """A program that is spoken with by lines. Its diagnostics go to a file, so that it never waits for us."""

    def __init__(self, words, env=None, **more):
        self.words = [str(w) for w in words]
        self._err = tempfile.TemporaryFile()
        more.setdefault("stdin", subprocess.PIPE)
        more.setdefault("stdout", subprocess.PIPE)
        self._popen = subprocess.Popen(self.words, stderr=self._err, env={**os.environ, **(env or {})}, **more)
        self.pid = self._popen.pid
        self.usage = None
        self._text = b""
        self._pidfd = os.pidfd_open(self.pid)
        Child.alive.add(self)

    alive = set()

    @property
    def err(self):
        self._err.seek(0)
        return self._err.read().decode(errors="replace").strip()

    def fail(self, what):
        return Failed(f"{os.path.basename(self.words[0])} {what}: {self.err or 'it said nothing'}")

    def tell(self, text):
        os.write(self._popen.stdin.fileno(), text.encode())

    def close_input(self):
        self._popen.stdin.close()

    def line(self, timeout=PATIENCE):
        """The next line of its output."""
        out, deadline = self._popen.stdout.fileno(), time.monotonic() + timeout
        while b"\n" not in self._text:
            if not select.select([out], [], [], max(0, deadline - time.monotonic()))[0]:
                raise self.fail("hangs")
            more = os.read(out, 65536)
            if not more:
                raise self.fail("ended")
            self._text += more
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()

    def rest(self, timeout=PATIENCE):
        """The lines up to the end of its output."""
        deadline = time.monotonic() + timeout
        with contextlib.suppress(Failed):
            while True:
                yield self.line(max(0, deadline - time.monotonic()))

    def running(self):
        return not select.select([self._pidfd], [], [], 0)[0]

    def send(self, number):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def wait(self, timeout=PATIENCE, good=(0,)):
        """Waits for the end. Its own time and that of the children it waited for, in ns, is then in `cpu`."""
        if not select.select([self._pidfd], [], [], timeout)[0]:
            self.send(signal.SIGKILL)
            self._reap()
            raise self.fail("hangs")
        status = self._reap()
        if good is not None and status not in good:
            raise self.fail(f"ended with status {status}")
        return self

    def _reap(self):
        _, status, self.usage = os.wait4(self.pid, 0)
        self._popen.returncode = os.waitstatus_to_exitcode(status)
        for file in (self._popen.stdin, self._popen.stdout):
            if file and not file.closed:
                file.close()
        os.close(self._pidfd)
        Child.alive.discard(self)
        return self._popen.returncode

    def end(self, number=signal.SIGTERM):
        """Ends it without asking how it went."""
        self.send(number)
        return self.wait(good=None)

    @property
    def cpu(self):
        return round((self.usage.ru_utime + self.usage.ru_stime) * 1e9)


def end_all():
    """After a failure."""
    for child in list(Child.alive):
        child.send(signal.SIGCONT)
        child.send(signal.SIGTERM)
    for child in list(Child.alive):
        with contextlib.suppress(Failed):
            child.wait(20, good=None)


def threads(pid):
    return [int(task.name) for task in pathlib.Path("/proc", str(pid), "task").iterdir()]


def switches(pid):
    """How often each thread of a process has been put on a processor."""
    counts = {}
    for thread in threads(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            text = pathlib.Path("/proc", str(pid), "task", str(thread), "status").read_text()
            counts[thread] = sum(int(n) for n in re.findall(r"ctxt_switches:\s*(\d+)", text))
    return counts


def switched(before, after):
    """How often between two counts; of a thread that ended meanwhile nothing is known but that it was woken for it."""
    ended = len(before.keys() - after.keys())
    return ended + sum(count - before.get(thread, 0) for thread, count in after.items())


def resident(pid):
    """(bytes in memory, the process's share of them), both without the shared segments of tracefan: the rings and
    the pool."""
    whole = share = 0
    own = True
    for line in pathlib.Path("/proc", str(pid), "smaps").read_text().splitlines():
        word, _, value = line.partition(":")
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            own = "/memfd:tracefan-" not in line
        elif own and word == "Rss":
            whole += int(value.split()[0]) << 10
        elif own and word == "Pss":
            share += int(value.split()[0]) << 10
    return whole, share


class Producer:
    """The work: processes that call getppid, which is traced, or getpgid of `numbers` numbers in turn."""

    NUMBER = 0x60000000

    def __init__(self, calls, processes=2, period=0, pin=False, numbers=0, turn=0):
        """`turn`: two of the processes work at a time, for so many calls each."""
        words = [built("bench_producer"), calls, processes]
        words += ["--period", period] if period else []
        words += ["--pin"] if pin else []
        words += ["--numbers", numbers] if numbers else []
        words += ["--active", 2, "--turn", turn] if turn else []
        self._child = Child(words)
        self.calls, self.processes = calls, processes
        self.pids = [int(word) for word in self._child.line().split()]

    def run(self):
        """Lets them work and waits for their end. Returns the mean ns of a call, by the clock."""
        self.start()
        return self.finish()

    def start(self):
        self._child.tell("\n")

    def finish(self):
        rows = [line.split() for line in self._child.rest()]
        self._child.wait()
        if len(rows) != self.processes:
            raise Failed("a producer did not come to its end")
        return sum(float(row[0]) for row in rows) / len(rows)
