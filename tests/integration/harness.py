"""What the integration tests share: running tracefan's programs, other users, reading the output, and the
proof that nothing of ours is left behind.

A test file is a program: unittest cases and, at its end, harness.main(). Exit status 77 tells ctest that every
case was skipped, with the reasons on standard error. The environment says where things are:

    TRACEFAN_BUILD     the folder of the built programs
    TRACEFAN_TRACEFS   where tracefs is mounted (default /sys/kernel/tracing)
    TRACEFAN_GUEST     set in emulated guests, which a test may treat as its own
    TRACEFAN_SCALE     how much of the usual amount of events (default 1; less in emulated guests)
"""
import contextlib
import ctypes
import fcntl
import grp
import json
import os
import pathlib
import platform
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ.get("TRACEFAN_BUILD", "build/dev")).resolve()
TRACEFS = pathlib.Path(os.environ.get("TRACEFAN_TRACEFS", "/sys/kernel/tracing"))
SCALE = float(os.environ.get("TRACEFAN_SCALE", "1"))
SESSIONS = pathlib.Path("/run/tracefan")

# Users that own nothing and are nobody's. The router runs as one of its own.
USER_A, USER_B = 47101, 47102
# For a program that hangs; no test waits this long otherwise.
PATIENCE = 120 / min(SCALE, 1)


def in_guest():
    return "TRACEFAN_GUEST" in os.environ


def scaled(count):
    return max(1, int(count * SCALE))


# ---- what this machine has ----

def require_root():
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root")


def require_tracefs():
    require_root()
    if not (TRACEFS / "instances").is_dir():
        raise unittest.SkipTest(f"tracefs isn't mounted at {TRACEFS}")


def require_event(system, event):
    require_tracefs()
    if not (TRACEFS / "events" / system / event / "format").exists():
        raise unittest.SkipTest(f"this kernel has no event {system}:{event}")


def require_file(name, why):
    require_tracefs()
    if not (TRACEFS / name).exists():
        raise unittest.SkipTest(f"this kernel has no {why} (no {name})")


def argument(n):
    """The kernel's name of the register that holds a function's n-th argument, from 1 on."""
    registers = {"x86_64": ["%di", "%si", "%dx", "%cx", "%r8", "%r9"], "aarch64": [f"%x{i}" for i in range(6)]}
    if platform.machine() not in registers:
        raise unittest.SkipTest(f"the calling convention of {platform.machine()} isn't known to this test")
    return registers[platform.machine()][n - 1]


def cpus():
    return sorted(os.sched_getaffinity(0))


def up_loopback():
    """A guest's is down."""
    SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        name, flags = struct.unpack("16sh", fcntl.ioctl(s, SIOCGIFFLAGS, struct.pack("16sh", b"lo", 0)))
        if not flags & IFF_UP:
            fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh", name, flags | IFF_UP))


def a_group():
    """A group that users of a session can be put into."""
    for name in ("tracefan", "users", "nogroup"):
        with contextlib.suppress(KeyError):
            return grp.getgrnam(name)
    raise unittest.SkipTest("this machine has none of the groups that the test knows")


# ---- running programs ----

def program(name):
    path = BUILD / name
    if not path.exists():
        raise AssertionError(f"{path} has not been built")
    return str(path)


def staged(folder, name):
    """A copy of a program where every user can reach it: the build folder may lie in somebody's home."""
    target = pathlib.Path(folder) / name
    shutil.copy2(program(name), target)
    target.chmod(0o755)
    for library in BUILD.glob("libtracefan.so*"):
        if not (target.parent / library.name).exists():
            shutil.copy2(library, target.parent / library.name)
    return str(target)


@contextlib.contextmanager
def shared_folder():
    """A folder that every user can reach and write to."""
    with tempfile.TemporaryDirectory(prefix="test-") as folder:
        os.chmod(folder, 0o777)
        yield folder


def as_user(uid, *groups):
    """What makes run() and Process() start a program as an unprivileged user."""
    return {"user": uid, "group": uid, "extra_groups": list(groups)}


class Result:
    """What a tracefan command said: its exit status, the lines of its JSON, and its diagnostics."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err
        self._records = None

    @property
    def records(self):
        if self._records is None:
            self._records = read_records(self.out)
        return self._records

    @property
    def events(self):
        return [r for r in self.records if r["kind"] == "event"]

    @property
    def summary(self):
        last = self.records[-1]
        assert last["kind"] == "summary", f"the last line is no summary: {last}"
        return last

    def of(self, probe):
        return [e for e in self.events if e["probe"] == probe]


def not_json(word):
    raise ValueError(f"{word} isn't JSON")


def read_records(text):
    """Every line must be an object by itself, in strict JSON."""
    records = []
    for line in text.splitlines():
        try:
            record = json.loads(line, parse_constant=not_json)
        except ValueError as error:
            raise AssertionError(f"not JSON: {line!r}: {error}") from None
        assert isinstance(record, dict) and "kind" in record, f"not a record: {line!r}"
        records.append(record)
    return records


def as_bytes(text):
    """The bytes of a JSON string: U+EF80 to U+EFFF stand for single bytes that were not UTF-8."""
    return b"".join(bytes([ord(c) - 0xef00]) if 0xef80 <= ord(c) <= 0xefff else c.encode() for c in text)


class Process:
    """A program in the background. Its output goes to files, so that it never waits for the test, unless the test
    gives it a descriptor for it."""

    def __init__(self, words, env=None, **more):
        self.words = [str(w) for w in words]
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        more = {"stdin": subprocess.DEVNULL, "stdout": self._out, "stderr": self._err, **more}
        self._popen = subprocess.Popen(self.words, env={**os.environ, **(env or {})}, **more)
        self.pid = self._popen.pid
        Process.alive[self.pid] = self
        Process.started.add(self.pid)

    alive, started = {}, set()

    def running(self):
        return self._popen.poll() is None

    def signal(self, number):
        self._popen.send_signal(number)

    def wait(self, timeout=None):
        """Waits for the end; a program that hangs is killed, which fails the test."""
        try:
            self._popen.wait(timeout or PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{' '.join(self.words)} hangs; it said: {self.read(self._err)}") from None
        Process.alive.pop(self.pid, None)
        return Result(self._popen.returncode, self.read(self._out), self.read(self._err))

    def kill(self):
        if self.running():
            self._popen.kill()
        self._popen.wait()
        Process.alive.pop(self.pid, None)

    @staticmethod
    def read(file):
        # The program shares the file's offset, so it must not be moved.
        size = os.fstat(file.fileno()).st_size
        return os.pread(file.fileno(), size, 0).decode(errors="surrogateescape")

    @property
    def out(self):
        return self.read(self._out)

    @property
    def err(self):
        return self.read(self._err)


class Talker(Process):
    """A program that says lines, and waits for its input to go on."""

    def __init__(self, words, **more):
        said, say = os.pipe()
        go, self.hold = os.pipe()
        super().__init__(words, stdin=go, stdout=say, **more)
        os.close(go)
        os.close(say)
        self.lines = open(said)

    def hear(self):
        readable, _, _ = select.select([self.lines], [], [], PATIENCE)
        assert readable, f"{self.words} says nothing: {self.err}"
        return self.lines.readline().rstrip("\n")

    def tell(self):
        os.write(self.hold, b"\n")

    def finish(self):
        """What it says when its input has ended."""
        os.close(self.hold)
        line = self.hear()
        result = self.wait()
        self.lines.close()
        assert result.status == 0, (self.words, result.status, result.err)
        return json.loads(line)

    def kill(self):
        super().kill()
        os.close(self.hold)
        self.lines.close()


def run(words, timeout=None, **more):
    return Process(words, **more).wait(timeout)


def trace(*words, uid=None, groups=(), tracefan=None, **more):
    """Runs tracefan trace, as root or as another user."""
    if uid is not None:
        more.update(as_user(uid, *groups))
    return run([tracefan or program("tracefan"), "trace", *words], **more)


class Gate:
    """A command for `trace -- COMMAND` that says when it was started, which is when the probes are live, and
    ends when the test lets it."""

    def __init__(self, folder, name="gate"):
        self.folder = pathlib.Path(folder)
        self.ready, self.go = self.folder / f"{name}.ready", self.folder / f"{name}.go"
        for fifo in (self.ready, self.go):
            os.mkfifo(fifo)
            fifo.chmod(0o666)
        # Both ends, so that neither side's open waits and no end of file comes before its time.
        self._ready = os.open(self.ready, os.O_RDWR | os.O_CLOEXEC)
        self._go = os.open(self.go, os.O_RDWR | os.O_CLOEXEC)
        self.words = ["sh", "-c", 'exec 3< "$2"; echo > "$1"; read -r line <&3', "gate", str(self.ready), str(self.go)]

    def wait(self, process):
        """Waits until the command was started by `process`, which must not end before."""
        pidfd = os.pidfd_open(process.pid)
        try:
            readable, _, _ = select.select([self._ready, pidfd], [], [], PATIENCE)
        finally:
            os.close(pidfd)
        if self._ready not in readable:
            result = process.wait(1) if readable else None
            raise AssertionError(f"the command was not started: {result.err if result else process.err}")
        os.read(self._ready, 16)

    def open(self):
        os.write(self._go, b"\n")

    def close(self):
        os.close(self._ready)
        os.close(self._go)


class Notify:
    """The supervisor's end of sd_notify(3)."""

    def __init__(self, folder, name):
        self.path = pathlib.Path(folder) / name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.bind(str(self.path))
        self.path.chmod(0o666)

    def wait_ready(self, process):
        pidfd = os.pidfd_open(process.pid)
        try:
            while True:
                readable, _, _ = select.select([self._socket, pidfd], [], [], PATIENCE)
                if self._socket not in readable:
                    raise AssertionError(f"{process.words[0]} did not get ready: {process.err}")
                if b"READY=1" in self._socket.recv(4096).split(b"\n"):
                    return
        finally:
            os.close(pidfd)

    def close(self):
        self._socket.close()


class Session:
    """A session run by hand: the two daemons as an operator would start them, consumers from anywhere."""

    count = 0

    def __init__(self, folder, *reader_words):
        Session.count += 1
        self.name = f"test-{os.getpid()}-{Session.count}"
        self.group = a_group()
        self.tracefan = staged(folder, "tracefan")
        self._notify = {d: Notify(folder, f"{d}-{Session.count}.notify") for d in ("reader", "router")}
        self.reader = self._start("reader", "--group", self.group.gr_name, *reader_words)
        self.router = self._start("router")

    def _start(self, daemon, *words):
        notify = self._notify[daemon]
        process = Process([program(f"tracefan-{daemon}"), "--session", self.name, *words],
                          env={"NOTIFY_SOCKET": str(notify.path)})
        notify.wait_ready(process)
        return process

    @property
    def instance(self):
        return TRACEFS / "instances" / f"tracefan-{self.name}"

    def trace(self, *words, uid=USER_A, gate=None):
        """A consumer in the background, in the session's group."""
        command = ["--", *gate.words] if gate else []
        return Process([self.tracefan, "trace", "--session", self.name, *words, *command],
                       **as_user(uid, self.group.gr_gid))

    def stop(self):
        """Ends the session as an operator does, by SIGTERM to the reader; returns both exit statuses."""
        if self.reader.running():
            self.reader.signal(signal.SIGTERM)
        statuses = self.reader.wait().status, self.router.wait().status
        for notify in self._notify.values():
            notify.close()
        return statuses


# ---- nothing is left behind ----

def become_subreaper():
    """What our programs leave running becomes our child, and can be found."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parents():
    """{pid: its parent} of all processes."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                stat = pathlib.Path("/proc", entry, "stat").read_text(errors="replace")
                found[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    return found


def descends(pid, ancestor, parent_of):
    while pid and pid != ancestor:
        pid = parent_of.get(pid, 0)
    return pid == ancestor


def others_trace():
    """Whether somebody else on this machine runs tracefan's programs or tests now."""
    parent_of = parents()
    for pid in parent_of:
        with contextlib.suppress(OSError):
            command = pathlib.Path("/proc", str(pid), "cmdline").read_bytes()
            if b"tracefan" in command and not descends(pid, os.getpid(), parent_of) and not descends(os.getpid(), pid, parent_of):
                return True
    return False


def read_lines(path):
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def list_folder(path, prefix=""):
    try:
        return [n for n in os.listdir(path) if n.startswith(prefix)]
    except OSError:
        return []


def traces_of_ours():
    """Everything in the system that carries our name, as (what, name)."""
    found = {("instance", n) for n in list_folder(TRACEFS / "instances", "tracefan-")}
    for events in ("uprobe_events", "kprobe_events", "dynamic_events"):
        found |= {("probe", line.split()[0]) for line in read_lines(TRACEFS / events) if ":tracefan" in line.split()[0]}
    found |= {("session", n) for n in list_folder(SESSIONS)}
    # Where a user who isn't root keeps the sockets of private sessions.
    found |= {("folder", f"{u}/{n}") for u in list_folder(tempfile.gettempdir(), "tracefan-") if u[9:].isdigit()
              for n in list_folder(pathlib.Path(tempfile.gettempdir(), u))}
    return found


# A session that a test makes, or a program for itself, is called WORD-PID and more; its probes' group, tracefan_WORD_PID and
# more. Behind that stand numbers that may look like anybody's pid.
OWNERS = {
    "instance": re.compile(r"tracefan-[a-z]+-(\d+)(?!\d)"),
    "probe": re.compile(r"\w+:tracefan_[a-z]+_(\d+)[_/]"),
    "session": re.compile(r"[a-z]+-(\d+)(?!\d)"),
    "folder": re.compile(r"tracefan-\d+/[a-z]+-(\d+)(?!\d)"),
}


def owner(what, name):
    """The pid of who made what carries this name; None: the name doesn't say."""
    match = OWNERS[what].match(name)
    return int(match[1]) if match else None


class Leftovers:
    """What our programs left behind since this object was made. While others trace on the machine, only what carries
    our pid (as our sessions' names do) or our programs' (as the names of private sessions do) is known to be ours."""

    def __init__(self):
        self.before = traces_of_ours()

    def find(self):
        left = sorted(traces_of_ours() - self.before)
        if left and others_trace():
            ours = {os.getpid(), *Process.started}
            left = [(what, name) for what, name in left if owner(what, name) in ours]
        found = [f"{what} {name}" for what, name in left]
        for pid, parent in parents().items():
            if parent == os.getpid() and pid not in Process.alive and not self._reaped(pid):
                words = read_lines(pathlib.Path("/proc", str(pid), "cmdline"))
                found.append(f"process {pid} {' '.join(words)}".replace("\0", " ").strip())
        return found

    @staticmethod
    def _reaped(pid):
        try:
            return os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            return True

    def settle(self, seconds=10):
        """What is still there after the kernel had its time: a pipe is let go a moment after its process. There
        is nothing to be woken by when a folder of tracefs goes, so this looks again."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.find()
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.02)


class TestCase(unittest.TestCase):
    """A case after which nothing of ours may be left: no instance, probe, socket, folder or process."""

    maxDiff = 4000

    def run(self, result=None):
        self._leftovers = Leftovers()
        return super().run(result)

    def setUp(self):
        # Registered first, so it runs last.
        self.addCleanup(self._check_leftovers)
        self.addCleanup(self._end_processes)
        self.folder = self.enterContext(shared_folder()) if hasattr(self, "enterContext") else self._enter_folder()

    def _enter_folder(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        return stack.enter_context(shared_folder())

    def _end_processes(self):
        """A test that failed half way has programs running: they get the chance to clean up."""
        for process in list(Process.alive.values()):
            process.signal(signal.SIGTERM)
            with contextlib.suppress(AssertionError):
                process.wait(20)

    def _check_leftovers(self):
        self.assertEqual(self._leftovers.settle(), [], "left behind")

    # What holds for the output of every run.

    def check_ended(self, result, status=0):
        self.assertEqual(result.status, status, result.err)

    def check_names(self, events, source, name):
        """All by threads of this name. The text source has the name that the kernel wrote down last, which may be one from
        before the program was executed, or none."""
        if source == "raw":
            self.assertEqual({e["comm"] for e in events}, {name})

    def check_order(self, events):
        times = [e["time"] for e in events]
        self.assertEqual([], [i for i in range(1, len(times)) if times[i] < times[i - 1]], "events out of order")

    def check_balance(self, result):
        """The ledger's columns add up, and say what the output shows."""
        session = result.summary["session"]
        self.assertEqual(session["committed"], session["decoded"] + session["undecodable"] + session["lost_kernel"],
                         session)
        for name, probe in result.summary["probes"].items():
            self.assertEqual(probe["decoded"], probe["delivered"] + probe["filtered"] + probe["lost_ring"], (name, probe))
            self.assertEqual(probe["shown"], len(result.of(name)), name)
            self.assertLessEqual(probe["shown"], probe["delivered"], name)

    def check_no_loss(self, result):
        # A gap record says that the router was restarted; one with count 0, that it cost nothing.
        self.assertEqual([], [r for r in result.records if r["kind"] == "lost" or (r["kind"] == "gap" and r["count"] != 0)])
        self.assertEqual(result.summary["session"]["lost_kernel"], 0)
        self.assertEqual(result.summary["session"]["undecodable"], 0)
        for name, probe in result.summary["probes"].items():
            self.assertEqual(probe["lost_ring"], 0, name)


class CountingResult(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def main():
    """Runs the file's cases. Nothing but skipped ones: 77, which ctest knows as "skipped"."""
    become_subreaper()
    runner = unittest.TextTestRunner(verbosity=2, resultclass=CountingResult)
    result = unittest.main(module="__main__", testRunner=runner, exit=False).result
    for case, reason in result.skipped:
        print(f"skipped: {case}: {reason}", file=sys.stderr)
    if not result.wasSuccessful():
        sys.exit(1)
    if result.passed == 0 and not result.skipped:
        sys.exit("no case ran")
    sys.exit(0 if result.passed else 77)
