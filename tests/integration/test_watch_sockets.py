#!/usr/bin/env python3
"""tracefan watch connect and listen against a program whose every socket and address is known."""
import contextlib
import os
import pathlib
import sys

import harness

SCRIPT = r"""
import ctypes, os, socket, sys, threading
folder = os.fsencode(sys.argv[1])
said = open(sys.argv[2], "w")

def say(*what):
    # Families are enumerations, whose repr() is no number.
    print(repr(tuple(int(x) if isinstance(x, int) else x for x in what)), file=said, flush=True)

def listen(family, address, backlog, by_thread=False):
    s = socket.socket(family)
    s.bind(address)
    if by_thread:
        thread = threading.Thread(target=lambda: s.listen(backlog))
        thread.start()
        thread.join()
    else:
        s.listen(backlog)
    say("listen", s.fileno(), family, s.getsockname()[:2] if family != socket.AF_UNIX else s.getsockname(), backlog)
    return s

def connect(family, address, kind=socket.SOCK_STREAM, told=None):
    s = socket.socket(family, kind)
    error = None
    try:
        s.connect(address)
    except OSError as e:
        error = e.errno
    say("connect", s.fileno(), family, told or address, error)
    return s

v4, v6, local = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX
names = [folder + b"/a b", folder + b"/two\nlines", folder + b"/\xff\xfe", folder + "/\u00e4".encode(), b"\0abstract \xfe\n" + folder,
         folder + b"/" + b"x" * (106 - len(folder))]
"""

LISTENING = r"""
kept = [listen(v4, ("127.0.0.1", 0), 5), listen(v6, ("::1", 0), 6)]
kept += [listen(local, name, i) for i, name in enumerate(names)]
kept += [listen(local, folder + b"/by thread", 9, by_thread=True)]
# Never bound: the kernel chooses the port afterwards.
s = socket.socket()
s.listen(3)
say("listen", s.fileno(), v4, ("0.0.0.0", None), 3)
"""

CONNECTING = r"""
s4, s6 = socket.socket(), socket.socket(v6)
s4.bind(("127.0.0.1", 0)), s6.bind(("::1", 0))
s4.listen(9), s6.listen(9)
port4, port6 = s4.getsockname()[1], s6.getsockname()[1]
kept = [connect(v4, ("127.0.0.1", port4)), connect(v6, ("::1", port6))]
# To IPv4 by an IPv6 socket, and where nobody listens.
kept += [connect(v6, ("::ffff:127.0.0.1", port4))]
s4.close()
kept += [connect(v4, ("127.0.0.1", port4)), connect(v6, ("::ffff:127.0.0.1", port4))]
kept += [connect(v4, ("127.0.0.1", 9), socket.SOCK_DGRAM), connect(v6, ("::1", 9), socket.SOCK_DGRAM)]
for name in names:
    s = socket.socket(local)
    s.bind(name)
    s.listen(1)
    kept += [s, connect(local, name)]
kept += [connect(local, folder + b"/nobody is here\n")]
# Without the C library's function.
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 42, "aarch64": 203}[os.uname().machine]
raw = bytes([2, 0]) + port6.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
s = socket.socket()
failed = libc.syscall(number, s.fileno(), raw, 16)
say("connect", s.fileno(), v4, ("127.0.0.1", port6), ctypes.get_errno() if failed else None)
"""

FAMILIES = {2: "inet", 10: "inet6", 1: "unix"}


def setUpModule():
    harness.require_event("syscalls", "sys_enter_connect")
    harness.require_event("sock", "inet_sock_set_state")
    with contextlib.suppress(OSError):
        harness.up_loopback()


def has_kprobes():
    return (harness.TRACEFS / "kprobe_events").exists()


class Sockets(harness.TestCase):
    def watch(self, what, body, *more):
        """What the script did by itself, and what was told of its process."""
        folder = pathlib.Path(self.folder)
        (folder / "script.py").write_text(SCRIPT + body)
        result = harness.run([harness.program("tracefan"), "watch", what, *more, "-w", folder / "out", "--", sys.executable,
                              folder / "script.py", folder, folder / "said"])
        self.check_ended(result)
        said = [eval(line) for line in (folder / "said").read_text().splitlines()]
        return said, (folder / "out").read_text()

    def records(self, what, out):
        records = harness.read_records(out)
        self.assertEqual(records[-1]["kind"], "summary")
        self.assertEqual(records[-1]["session"]["lost_kernel"], 0)
        comm = os.path.basename(os.path.realpath(sys.executable))[:15]
        return [r for r in records if r["kind"] == what and r["comm"] in (comm, os.path.basename(sys.executable)[:15])
                and r["fd"] > 2]

    @staticmethod
    def address(said):
        """(family, address, port) as a record has them."""
        family, address = said
        if FAMILIES[family] == "unix":
            return "unix", address if isinstance(address, bytes) else os.fsencode(address), None
        return FAMILIES[family], address[0].encode(), address[1]

    @staticmethod
    def told(record):
        return record["family"], harness.as_bytes(record["address"] or ""), record["port"]

    def test_listen(self):
        said, out = self.watch("listen", LISTENING, "-o", "json")
        records = self.records("listen", out)
        self.assertEqual([(r["fd"], *self.told(r), r["backlog"], r["error"]) for r in records],
                         [(fd, *self.address((family, address)), backlog, None) for _, fd, family, address, backlog in said])
        self.assertEqual(len(records), 10)
        for record in records:
            by = "kernel" if has_kprobes() or record["family"] != "unix" else "call"
            self.assertEqual((record["by"], record["address_cut"]), (by, False), record)

    def test_connect(self):
        said, out = self.watch("connect", CONNECTING, "-o", "json")
        records = self.records("connect", out)
        errors = [None if r["error"] is None else getattr(__import__("errno"), r["error"]) for r in records]
        self.assertEqual([(r["fd"], *self.told(r), error) for r, error in zip(records, errors)],
                         [(fd, *self.address((family, address)), error) for _, fd, family, address, error in said])
        self.assertEqual(len(records), 15)
        for record in records[:5] + records[-1:]:
            self.assertEqual(record["by"], "kernel", record)
        for record in records[5:-1]:
            self.assertEqual(record["by"], "kernel" if has_kprobes() else "call", record)

    def test_text(self):
        """From the kernel's text, to text: names stay on their line."""
        _, out = self.watch("listen", "listen(local, folder + b'/a\\n\\xff b', 4)", "-s", "text")
        line, = (line for line in out.splitlines() if self.folder in line)
        self.assertRegex(line, rf' listen fd=\d+ family=unix address="{self.folder}/a\\n\\xff b" by=\w+ backlog=4$')


if __name__ == "__main__":
    harness.main()
