#!/usr/bin/env python3
"""What the running processes are and hold: read from /proc, where the kernel says it, and held against docs/trust.md's
tables."""
import errno
import os
import pathlib
import platform
import re
import signal
import types

import harness

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "trust.md"
NETLINK, LISTENING = "netlink", 0x10000


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getpgid")


def table(heading):
    """The rows of the first table under a heading, without its head, as lists of cells."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)[1]
    lines = re.search(r"((?:^\|.*\n)+)", section, re.M)[1].splitlines()
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines]
    return [rows[0]] + rows[2:]


def sockets():
    """{inode: what it is}, for all sockets of this network namespace."""
    found = {}
    for line in harness.read_lines(pathlib.Path("/proc/net/unix"))[1:]:
        words = line.split()
        state = "listening" if int(words[3], 16) & LISTENING else "connected"
        name = f" {os.path.basename(words[7])}" if len(words) > 7 else ""
        found[words[6]] = f"socket: {state}{name}"
    for line in harness.read_lines(pathlib.Path("/proc/net/netlink"))[1:]:
        found[line.split()[9]] = f"socket: {NETLINK}"
    return found


class Confinement(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.session = harness.Session(self.folder)
        self.gate = harness.Gate(self.folder)
        self.addCleanup(self.gate.close)
        # With a consumer and an enabled probe, so that nothing is still to be opened.
        self.consumer = self.session.trace("-e", "tracepoint:syscalls:sys_enter_getpgid", "-q", gate=self.gate)
        self.gate.wait(self.consumer)
        self.processes = {"reader": self.session.reader, "helper": self.helper(), "router": self.session.router,
                          "consumer": self.consumer}

    def helper(self):
        """The reader's one child."""
        children = [pid for pid, parent in harness.parents().items() if parent == self.session.reader.pid]
        self.assertEqual(len(children), 1)
        return types.SimpleNamespace(pid=children[0])

    def end(self):
        self.gate.open()
        self.check_ended(self.consumer.wait())
        self.assertEqual(self.session.stop(), (0, 0))

    # ---- identity ----

    @staticmethod
    def status(process):
        lines = harness.read_lines(pathlib.Path("/proc", str(process.pid), "status"))
        return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}

    @staticmethod
    def threads(process):
        """How many it has, but for those that the kernel adds for io_uring."""
        folder = pathlib.Path("/proc", str(process.pid), "task")
        names = [line for task in os.listdir(folder) for line in harness.read_lines(folder / task / "comm")]
        return [str(sum(not name.startswith("iou-") for name in names))]

    def check_field(self, field, values, expected, session):
        if expected == "none":
            self.assertEqual(values, [])
        elif expected == "its own":
            self.assertEqual(len(set(values)), 1)
            self.assertNotEqual(values[0], "0")
        elif expected == "the user's":
            self.assertIn(field, ("Groups", "CapBnd", "NoNewPrivs", "Seccomp", "Threads", "Uid", "Gid"))
            if field in ("Uid", "Gid"):
                self.assertEqual(set(values), {str(harness.USER_A)})
            elif field == "Groups":
                self.assertEqual(values, [str(session.group.gr_gid)])
        else:
            self.assertEqual({int(v, 16) for v in values}, {int(expected, 16)})

    def test_identity(self):
        head, *rows = table("Identity")
        self.assertEqual(head, ["field", *self.processes])
        self.assertGreaterEqual({row[0] for row in rows}, {"Uid", "Gid", "Groups", "CapEff", "CapPrm", "NoNewPrivs", "Seccomp"})
        for name, process in self.processes.items():
            status = {**self.status(process), "Threads": self.threads(process)}
            for row in rows:
                with self.subTest(process=name, field=row[0]):
                    self.check_field(row[0], status[row[0]], row[head.index(name)], self.session)
        self.end()

    # ---- descriptors ----

    def pattern(self, text):
        """A row's name as an expression: TRACEFS, DIR, NAME and N stand for what they are here."""
        words = {"TRACEFS": re.escape(str(harness.TRACEFS)), "DIR": re.escape(str(harness.SESSIONS)),
                 "NAME": re.escape(self.session.name), "N": r"\d+"}
        return re.compile(re.sub(r"TRACEFS|DIR|NAME|(?<=cpu)N", lambda m: words[m[0]], re.escape(text).replace("\\-", "-")))

    def descriptors(self, process):
        """(what it is, how it is open) of each descriptor, standard ones aside."""
        folder, named = pathlib.Path("/proc", str(process.pid), "fd"), sockets()
        for fd in os.listdir(folder):
            target = os.readlink(folder / fd)
            if int(fd) < 3:
                continue
            flags = next(int(line.split()[1], 8) for line in harness.read_lines(folder.parent / "fdinfo" / fd)
                         if line.startswith("flags:"))
            mode = "path" if flags & os.O_PATH else "write" if flags & os.O_ACCMODE != os.O_RDONLY else "read"
            kind = re.fullmatch(r"(socket|pipe):\[(\d+)\]", target)
            if kind and kind[1] == "socket":
                target, mode = named.get(kind[2], target), "-"
            elif kind:
                target = "pipe"
            yield re.sub(r"^/memfd:(.*) \(deleted\)$", r"memfd:\1", target), mode

    def test_descriptors(self):
        head, *rows = table("Descriptors")
        self.assertEqual(head[:3], ["process", "descriptor", "mode"])
        for name, process in self.processes.items():
            allowed = [(self.pattern(row[1]), row[2]) for row in rows if row[0] == name]
            found = list(self.descriptors(process))
            self.assertGreater(len(found), 1, name)
            # What may be written may be read.
            foreign = [d for d in found if not any(p.fullmatch(d[0]) and (d[1] == mode or (d[1], mode) == ("read", "write"))
                                                   for p, mode in allowed)]
            self.assertEqual(foreign, [], f"{name} holds what docs/trust.md does not list")
        self.end()

    # ---- memory ----

    @staticmethod
    def mappings(process):
        """(permissions, what is mapped) of each."""
        for line in harness.read_lines(pathlib.Path("/proc", str(process.pid), "maps")):
            words = line.split(maxsplit=5)
            yield words[1], re.sub(r"^/memfd:(.*) \(deleted\)$", r"memfd:\1", words[5] if len(words) > 5 else "")

    def test_writable_shared_mappings(self):
        head, *rows = table("Writable shared mappings")
        self.assertEqual(head[:2], ["process", "mapping"])
        for name, process in self.processes.items():
            found = list(self.mappings(process))
            shared = {what for permissions, what in found if permissions[1] == "w" and permissions[3] == "s"}
            self.assertEqual(shared - {row[1] for row in rows if row[0] == name}, set(), name)
            self.assertEqual([m for m in found if "wx" in m[0]], [], f"{name} can write code")
        # The tables speak of what there is.
        self.assertIn("memfd:tracefan-pool", {what for permissions, what in self.mappings(self.session.reader)})
        self.end()


class FromInside(harness.TestCase):
    """What somebody can do who has taken over a running process: it is made to issue system calls."""
    OPENAT, SOCKET, EXECVE, PTRACE, GETPID = 257, 41, 59, 101, 39
    HERE, READ, WRITE = "-100", os.O_RDONLY, os.O_WRONLY

    def setUp(self):
        super().setUp()
        if platform.machine() != "x86_64":
            self.skipTest("the numbers of the calls are those of x86-64")
        self.session = harness.Session(self.folder)

    def inject(self, process, *words):
        result = harness.run([harness.program("inject_call"), process.pid, *words])
        self.check_ended(result)
        return result.out.strip()

    def refused_to_the_router(self, name, *words):
        with self.subTest(call=name):
            said = self.inject(self.session.router, *words)
            self.assertEqual(said, f"killed by signal {signal.SIGSYS.value}")
            router = self.session.router.wait()
            self.assertEqual(router.status, -signal.SIGSYS)
            self.assertIn(f"is {name}, called", router.err)
            self.session.router = self.session._start("router")

    def test_the_router(self):
        self.assertRegex(self.inject(self.session.router, self.GETPID), r"returned \d+")
        self.refused_to_the_router("openat", self.OPENAT, self.HERE, "@/etc/passwd", self.READ)
        # In a guest a router takes seconds to start again, and the table is the same.
        if harness.SCALE >= 1:
            self.refused_to_the_router("openat", self.OPENAT, self.HERE, f"@{harness.TRACEFS}/uprobe_events", self.WRITE)
            self.refused_to_the_router("ptrace", self.PTRACE, 16, os.getpid())
            self.refused_to_the_router("execve", self.EXECVE, "@/bin/true", 0, 0)
        self.refused_to_the_router("socket", self.SOCKET, 1, 5, 0)
        self.assertEqual(self.session.stop(), (0, 0))

    def test_the_reader(self):
        reader, refused = self.session.reader, f"returned {-errno.EACCES}"
        self.assertEqual(self.inject(reader, self.GETPID), f"returned {reader.pid}")
        secret = pathlib.Path(self.folder, "secret")
        secret.touch(mode=0o600)
        if self.has_landlock():
            for path, flags in ((secret, self.READ), (f"{harness.TRACEFS}/tracing_on", self.WRITE),
                                (f"{harness.TRACEFS}/trace_pipe", self.READ), ("/proc/sys/kernel/hostname", self.WRITE)):
                with self.subTest(path=path):
                    self.assertEqual(self.inject(reader, self.OPENAT, self.HERE, f"@{path}", flags), refused)
        self.assertRegex(self.inject(reader, self.OPENAT, self.HERE, f"@{harness.TRACEFS}/available_events", self.READ),
                         r"returned \d+")
        self.assertEqual(self.inject(reader, self.SOCKET, 1, 5, 0), f"killed by signal {signal.SIGSYS.value}")
        self.assertIn("is socket, called", reader.wait().err)
        # It would wait for another reader.
        self.session.router.kill()
        self.check_ended(harness.run([harness.program("tracefan-reader"), "--session", self.session.name, "--remove"]))

    def has_landlock(self):
        """A daemon that goes on without says so."""
        return "without landlock" not in self.session.reader.err


if __name__ == "__main__":
    harness.main()
