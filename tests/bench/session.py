"""tracefan's side: a session as an operator would run it, and its consumers."""
import contextlib
import os
import select
import signal
import socket
import tempfile
import time

import peers
import process
from process import Child, Disturbed, built, cpu_time

EVENT = "tracepoint:syscalls:sys_enter_getppid"
NUMBERED = "tracepoint:syscalls:sys_enter_getpgid"
RING = 64 << 20


class Consumer:
    """A bench_consumer that has attached. `connections`: for each the probes, as its first page says. `unseen`: it is
    kept out of the trace, which takes the kernel a while for each connection."""

    def __init__(self, session, events, connections=((EVENT,),), ring=RING, ages=False, unseen=True):
        words = [built("bench_consumer"), "--session", session.name,
                 "--ring", ring, "--count", events]
        self.child = Child(words + (["--ages"] if ages else []) + ([] if unseen else ["--include-self"]))
        for probes in connections:
            for i, probe in enumerate(probes):
                self.child.tell(("+" if i and probe[0] != "-" else "") + probe + "\n")
        self.child.tell("\n")
        if self.child.line() != "ready":
            raise self.child.fail("did not attach")

    def result(self):
        """Waits for its events: (events, lost, when it had them, ns of its processor time since it was ready)."""
        events, lost, when, cpu, _ = (int(word) for word in self.child.line().split())
        return events, lost, when, cpu

    def ages(self, count):
        return [int(self.child.line()) for _ in range(count)]

    def close(self):
        """Its connections go with it."""
        self.child.close_input()
        self.child.wait()
        return self.child.cpu


class Session:
    """Reader and router."""

    count = 0

    def __init__(self, *reader_words, under=None):
        """`under`: words to put before a daemon's command line, by its name."""
        Session.count += 1
        self._under = under or {}
        self.name = f"bench-{os.getpid()}-{Session.count}"
        self.instance = peers.TRACEFS / "instances" / f"tracefan-{self.name}"
        self._folder = tempfile.TemporaryDirectory(prefix="bench-")
        os.chmod(self._folder.name, 0o755)
        self.reader = self._start("reader", *reader_words)
        self.router = self._start("router")

    def _start(self, daemon, *words):
        path = os.path.join(self._folder.name, f"{daemon}.notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path)
            os.chmod(path, 0o666)
            child = Child([*self._under.get(daemon, ()), built(f"tracefan-{daemon}"), "--session", self.name, *words],
                          env={"NOTIFY_SOCKET": path})
            deadline = time.monotonic() + process.PATIENCE
            while child.running() and time.monotonic() < deadline:
                if select.select([notify], [], [], 0.2)[0] and b"READY=1" in notify.recv(4096):
                    return child
        raise child.fail("did not get ready")

    @contextlib.contextmanager
    def halted(self):
        """While this lasts, events stay in the kernel's ring."""
        self.reader.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self.reader.send(signal.SIGCONT)

    def mute(self, on=True):
        """While this is on its instance takes no event: neither the names of new threads, which a session traces for
        itself, nor what others on the machine make of the work's. Not for the text source, which can't speak with its
        router then."""
        (self.instance / "tracing_on").write_text("0\n" if on else "1\n")

    def wait_alone(self, seconds):
        """Until the kernel has let the last worker of the reader's ring go, which it does some seconds after its last
        request; at most so long, and at least for what is under way to come to its end."""
        deadline = time.monotonic() + seconds
        time.sleep(0.5)
        while len(process.threads(self.reader.pid)) > 1 and time.monotonic() < deadline:
            time.sleep(0.1)

    def wait_enabled(self, consumer):
        """Waits until somebody's probe is live; nothing tells that but the kernel."""
        enable = self.instance / "events" / peers.EVENT.replace(":", "/") / "enable"
        while enable.read_text()[0] == "0":
            if not consumer.running():
                consumer.wait()
                raise Disturbed("all events were somebody else's, before the work began")
            time.sleep(0.01)

    def spent(self):
        """ns of processor time so far: of the reader, of the router."""
        return cpu_time(self.reader.pid), cpu_time(self.router.pid)

    def stop(self):
        """Ends it as an operator does; returns the ns of processor time of both."""
        self.reader.send(signal.SIGTERM)
        self.reader.wait()
        self.router.wait()
        self._folder.cleanup()
        return self.reader.cpu + self.router.cpu


@contextlib.contextmanager
def session(*reader_words, under=None):
    """A session that ends with the block; whoever wants its costs stops it by themselves."""
    running = Session(*reader_words, under=under)
    try:
        yield running
    finally:
        if running.reader.usage is None:
            running.stop()


def check_lost(lost):
    """The kernel's ring has room for the work's own, and the consumer's, if it isn't kept from the processors."""
    if lost:
        raise Disturbed(f"{lost} events were lost on the way")
