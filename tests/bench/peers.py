"""What people use today: each peer on the same work, in an instance of its own where it has any."""
import contextlib
import errno
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import process
from process import Absent, Child, Disturbed, Failed, built

TRACEFS = pathlib.Path(os.environ.get("TRACEFAN_TRACEFS", "/sys/kernel/tracing"))
EVENT = "syscalls:sys_enter_getppid"


def installed(name):
    if not shutil.which(name):
        raise Absent(f"{name} isn't installed")
    return name


class Instance:
    """A tracefs instance in which the event is enabled."""

    count = 0

    def __init__(self, buffer_size=0):
        Instance.count += 1
        self.folder = TRACEFS / "instances" / f"tracefan-bench-{os.getpid()}-peer-{Instance.count}"
        self.folder.mkdir()
        self.write("trace_clock", "mono")
        if buffer_size:
            self.write("buffer_size_kb", buffer_size >> 10)
        self.enable(True)

    def write(self, name, value):
        (self.folder / name).write_text(f"{value}\n")

    def enable(self, on):
        self.write("events/" + EVENT.replace(":", "/") + "/enable", int(on))

    def raw_files(self):
        return sorted(self.folder.glob("per_cpu/cpu*/trace_pipe_raw"))

    def remove(self):
        self.enable(False)
        remove_instance(self.folder)


def remove_instance(folder):
    """The kernel holds it for a moment after its last file is closed."""
    for _ in range(500):
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            time.sleep(0.02)
    raise Failed(f"{folder} can't be removed")


@contextlib.contextmanager
def instance(buffer_size=0):
    made = Instance(buffer_size)
    try:
        yield made
    finally:
        made.remove()


class Gated:
    """A tool that records as long as a command of its runs. The command reads a fifo, so it is known when it was
    started, which is when the tool records, and it ends when the fifo is closed.

    A tool that goes through all events of the kernel fails when somebody removes one meanwhile; `clean` removes what it
    leaves then."""

    def __init__(self, words, env=None, out=subprocess.DEVNULL, quote=lambda words: words, clean=lambda: None):
        self._clean = clean
        self._folder = tempfile.TemporaryDirectory(prefix="bench-")
        fifo = os.path.join(self._folder.name, "gate")
        os.mkfifo(fifo)
        self.child = Child([*words, *quote([shutil.which("cat"), fifo])], env=env, stdin=subprocess.DEVNULL, stdout=out)
        self._gate = self._open(fifo)

    def _open(self, fifo):
        deadline = time.monotonic() + process.PATIENCE
        while self.child.running() and time.monotonic() < deadline:
            try:
                return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
            time.sleep(0.01)
        self.child.end()
        raise self._disturbed(self.child.fail("did not begin to record"))

    def _disturbed(self, error):
        self._folder.cleanup()
        self._clean()
        return Disturbed(error)

    def end(self):
        """Returns the ns of its processor time."""
        os.close(self._gate)
        try:
            self.child.wait()
        except Failed as error:
            raise self._disturbed(error) from error
        self._folder.cleanup()
        return self.child.cpu


def trace_cmd(file):
    """It insists on the function tracer's controls, which some kernels refuse."""
    installed("trace-cmd")
    name = f"tracefan-bench-{os.getpid()}-trace-cmd"
    return Gated(["trace-cmd", "record", "-B", name, "-e", EVENT, "-o", file],
                 env={"LD_PRELOAD": built("libbench_ftrace_refused.so")},
                 clean=lambda: remove_instance(TRACEFS / "instances" / name))


def perf(file):
    installed("perf")
    return Gated(["perf", "record", "-q", "-a", "-e", EVENT, "-o", file])


def bpftrace(out=subprocess.DEVNULL):
    installed("bpftrace")
    program = "tracepoint:" + EVENT + ' { printf("%llu\\n", nsecs) }'
    return Gated(["bpftrace", "-q", "-B", "none", "-e", program], out=out, quote=lambda words: ["-c", " ".join(words)])


class Cat:
    """cat trace_pipe, with an end like a Gated's."""

    def __init__(self, made, out=subprocess.DEVNULL):
        self.child = Child(["cat", made.folder / "trace_pipe"], stdin=subprocess.DEVNULL, stdout=out)

    def end(self):
        return self.child.end(signal.SIGTERM).cpu
