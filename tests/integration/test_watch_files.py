#!/usr/bin/env python3
"""tracefan watch files against programs whose every operation in the folder is known."""
import json
import os
import pathlib
import signal
import sys
import time

import harness

SCRIPT = r"""
import ctypes, os, socket, stat, sys, threading, time
folder, said = os.fsencode(sys.argv[1]), open(sys.argv[2], "w")
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100

def say(op, path, **more):
    fields = {"op": op, "path": path, **more}
    print(repr(fields), file=said, flush=True)

def at(name):
    return folder + b"/" + name

def fails(function, *args, **more):
    try:
        function(*args, **more)
    except OSError:
        return
    raise AssertionError("that worked")

def create(name, flags=os.O_WRONLY | os.O_CREAT, dir_fd=None, path=None, new="guessed"):
    os.close(os.open(name, flags, 0o600, dir_fd=dir_fd))
    if new:
        say("create", path or name, new=new)

# Until the watch has told it: what it finds in a folder that it looks at later is not new to it.
def until_told(text):
    out, deadline = os.path.join(os.path.dirname(sys.argv[2]), "out"), time.monotonic() + 60
    while text not in open(out, "rb").read():
        assert time.monotonic() < deadline, text
        time.sleep(0.01)
"""

# Every operation, by absolute names of any bytes.
OPERATIONS = r"""
for name in [b"plain", b"a b", b"two\nlines", b"\xff\xfe", "\u00e4\u20ac".encode(), b"x" * 200, b"-"]:
    p, q = at(name), at(b"to " + name[:100])
    create(p)
    # What is there already isn't made.
    create(p, new=None)
    os.chmod(p, 0o644)
    say("attrib", p, attribute="mode")
    os.chown(p, 1, 1)
    say("attrib", p, attribute="owner")
    os.utime(p, (1, 1))
    say("attrib", p, attribute="times")
    os.rename(p, q)
    say("rename", p, to=q)
    os.link(q, p)
    say("link", q, to=p)
    os.unlink(q)
    say("delete", q)
    os.symlink(b"any " + name[:100], q)
    say("symlink", q, target=b"any " + name[:100])
    os.unlink(q)
    say("delete", q)
    os.mkdir(q)
    say("mkdir", q)
    os.rmdir(q)
    say("rmdir", q)
    os.mkfifo(q)
    say("mknod", q)
    os.remove(q)
    say("delete", q)
    os.mknod(q, stat.S_IFREG | 0o600)
    say("mknod", q)
    create(p + b"'", os.O_WRONLY | os.O_CREAT | os.O_EXCL, new="proven")
# What fails is not told.
fails(os.open, at(b"plain"), os.O_CREAT | os.O_EXCL)
fails(os.mkdir, at(b"plain"))
fails(os.mkdir, at(b"nowhere/x"))
fails(os.unlink, at(b"nowhere"))
fails(os.rmdir, at(b"plain"))
fails(os.rename, at(b"nowhere"), at(b"x"))
fails(os.link, at(b"nowhere"), at(b"x"))
fails(os.symlink, b"x", at(b"plain"))
fails(os.chmod, at(b"nowhere"), 0)
fails(os.mkfifo, at(b"plain"))
# Nor is what happens elsewhere, or in a folder whose name only begins like this one.
os.mkdir(folder + b"2")
os.rmdir(folder + b"2")
"""

# Relative to current folders, which are handed down, and to descriptors, which are doubled.
RELATIVE = r"""
os.mkdir(at(b"sub"))
say("mkdir", at(b"sub"))
os.chdir(folder)
create(b"here", path=at(b"here"))
os.chdir(b"sub")
create(b"../there", path=at(b"there"))
os.mkdir(b".//in/")
say("mkdir", at(b"sub/in"))
create(b"./in//here", path=at(b"sub/in/here"))
thread = threading.Thread(target=lambda: os.chdir(b".."))
thread.start(), thread.join()
create(b"again", path=at(b"again"))
os.chdir(b"sub")
if os.fork() == 0:
    # Gone before anybody could ask it.
    os.mkdir(b"child")
    say("mkdir", at(b"sub/child"))
    os.chdir(b"child")
    if os.fork() == 0:
        os.mkdir(b"grandchild")
        say("mkdir", at(b"sub/child/grandchild"))
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
os.rmdir(b"child/grandchild")
say("rmdir", at(b"sub/child/grandchild"))
fd = os.open(folder, os.O_RDONLY)
create(b"by fd", dir_fd=fd, path=at(b"by fd"))
twice = os.dup(fd)
os.close(fd)
os.mkdir(b"m", dir_fd=twice)
say("mkdir", at(b"m"))
inner = os.open(b"m", os.O_RDONLY | os.O_DIRECTORY, dir_fd=twice)
assert inner == fd
os.rename(b"here", b"moved", src_dir_fd=twice, dst_dir_fd=inner)
say("rename", at(b"here"), to=at(b"m/moved"))
os.chmod(b"moved", 0o600, dir_fd=inner)
say("attrib", at(b"m/moved"), attribute="mode")
os.link(b"moved", b"linked", src_dir_fd=inner, dst_dir_fd=inner)
say("link", at(b"m/moved"), to=at(b"m/linked"))
os.symlink(b"anywhere", b"sym", dir_fd=inner)
say("symlink", at(b"m/sym"), target=b"anywhere")
os.unlink(b"sym", dir_fd=inner)
say("delete", at(b"m/sym"))
file = os.open(b"moved", os.O_RDWR, dir_fd=inner)
os.fchmod(file, 0o640)
say("attrib", at(b"m/moved"), attribute="mode")
os.utime(file)
say("attrib", at(b"m/moved"), attribute="times")
os.fchdir(inner)
os.unlink(b"linked")
say("delete", at(b"m/linked"))
os.rmdir(b"child", dir_fd=os.open(b"../sub", os.O_PATH))
say("rmdir", at(b"sub/child"))
"""

# Files come and go with their folders, and by a link from elsewhere.
FOLDERS = r"""
outside = folder + b" outside"
create(at(b"old/known"), new=None)
os.rename(at(b"old"), at(b"new"))
say("rename", at(b"old"), to=at(b"new"))
create(at(b"new/known"), new=None)
os.mkdir(at(b"old"))
say("mkdir", at(b"old"))
create(at(b"old/known"))
os.rename(at(b"new"), outside + b"/gone")
say("rename", at(b"new"), to=outside + b"/gone")
os.rename(outside + b"/gone", at(b"back"))
say("rename", outside + b"/gone", to=at(b"back"))
until_told(b'"to":"%s"' % at(b"back"))
create(at(b"back/known"), new=None)
create(at(b"back/unknown"))
# renameat2(2) with RENAME_EXCHANGE.
assert libc.renameat2(AT_FDCWD, at(b"back"), AT_FDCWD, at(b"old"), 2) == 0
say("rename", at(b"back"), to=at(b"old"), exchanged=True)
create(outside + b"/link/by link", path=at(b"by link"))
"""


def setUpModule():
    harness.require_event("syscalls", "sys_enter_mkdir")
    harness.require_event("syscalls", "sys_exit_openat")


def has_kprobes():
    return (harness.TRACEFS / "kprobe_events").exists()


class Files(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.watched = pathlib.Path(self.folder, "the folder")
        self.watched.mkdir()
        self.out = pathlib.Path(self.folder, "out")

    def words(self, *more):
        return [harness.program("tracefan"), "watch", "files", self.watched, "-o", "json", "-w", self.out, *more]

    def script(self, body):
        path = pathlib.Path(self.folder, "script.py")
        path.write_text(SCRIPT + body)
        return [sys.executable, path, self.watched, pathlib.Path(self.folder, "said")]

    def said(self):
        told = [eval(line) for line in pathlib.Path(self.folder, "said").read_text().splitlines()]
        # Where the kernel tells what it creates, nothing is guessed.
        return [{**fields, "new": "proven"} if "new" in fields and has_kprobes() else fields for fields in told]

    @staticmethod
    def told(record):
        paths = {key: harness.as_bytes(record[key]) for key in ("path", "to", "target") if key in record}
        rest = {key: record[key] for key in ("op", "attribute", "new") if key in record}
        return {**rest, **paths, **({"exchanged": True} if record.get("exchanged") else {})}

    def records(self):
        records = harness.read_records(self.out.read_text())
        self.assertEqual({r["kind"] for r in records} - {"file", "lost", "summary"}, set())
        return records

    def check(self, body):
        self.check_ended(harness.run(self.words("--", *self.script(body))))
        records = self.records()
        self.assertEqual(records[-1]["session"]["lost_kernel"], 0)
        told = [r for r in records if r["kind"] == "file"]
        self.assertEqual([self.told(r) for r in told], self.said())
        self.assertEqual({r["by"] for r in told}, {"kernel" if has_kprobes() else "call"})
        return told

    def test_operations(self):
        self.check(OPERATIONS)

    def test_relative_names(self):
        told = self.check(RELATIVE)
        self.assertEqual({r["base"] for r in told}, {"root", "cwd", "descriptor"})

    def test_folders_and_links(self):
        outside = pathlib.Path(f"{self.watched} outside")
        outside.mkdir()
        (outside / "link").symlink_to(self.watched)
        (self.watched / "old").mkdir()
        (self.watched / "old" / "known").touch()
        self.check(FOLDERS)

    def test_common_programs(self):
        """Not by Python alone: what they call is what was probed."""
        self.check_ended(harness.run(self.words("--", "sh", "-c", 'cd "$0" && mkdir a && echo > a/f && mv a/f "a/b c" && chmod 600 '
                                                '"a/b c" && rm "a/b c" && touch t', self.watched)))
        at = os.fsencode(self.watched)
        new = "proven" if has_kprobes() else "guessed"
        self.assertEqual([self.told(r) for r in self.records() if r["kind"] == "file" and r.get("attribute") != "times"],
                         [{"op": "mkdir", "path": at + b"/a"}, {"op": "create", "path": at + b"/a/f", "new": new},
                          {"op": "rename", "path": at + b"/a/f", "to": at + b"/a/b c"},
                          {"op": "attrib", "path": at + b"/a/b c", "attribute": "mode"}, {"op": "delete", "path": at + b"/a/b c"},
                          {"op": "create", "path": at + b"/t", "new": new}])

    def test_pairs_end_at_a_loss(self):
        """A ring that is too small, and a reader that stands still: not all is told, but nothing that isn't so."""
        body = r"""
if sys.argv[3:]:
    sys.stdout.write("ready\n"), sys.stdout.flush(), sys.stdin.readline()
    for i in range(3000):
        name = at(b"%d" % i)
        os.mkdir(name)
        say("mkdir", name)
        if i % 3:
            os.rename(name, name + b" to")
            say("rename", name, to=name + b" to")
    sys.stdout.write("done\n"), sys.stdout.flush(), sys.stdin.readline()
    os.mkdir(at(b"after"))
    say("mkdir", at(b"after"))
"""
        fifos = [pathlib.Path(self.folder, name) for name in ("go", "came")]
        for fifo in fifos:
            os.mkfifo(fifo)
        script = [*self.script(body), "run"]
        process = harness.Process(self.words("--ring", "256K", "--", "sh", "-c", 'exec "$@" < "$0" > "$1"'.replace('"$1"', f'"{fifos[1]}"'),
                                             fifos[0], *script))
        with open(fifos[0], "w") as go, open(fifos[1]) as came:
            self.assertEqual(came.readline(), "ready\n")
            process.signal(signal.SIGSTOP)
            go.write("\n"), go.flush()
            self.assertEqual(came.readline(), "done\n")
            process.signal(signal.SIGCONT)
            # The ring is empty again once what came after the loss is told.
            while '"kind":"lost"' not in self.out.read_text():
                self.assertTrue(process.running(), process.err)
                time.sleep(0.02)
            go.write("\n"), go.flush()
        self.check_ended(process.wait())
        records = self.records()
        said, told = self.said(), [self.told(r) for r in records if r["kind"] == "file"]
        self.assertGreater(sum(r["count"] for r in records if r["kind"] == "lost"), 0)
        self.assertLess(len(told), len(said))
        places = {json.dumps(fields, default=os.fsdecode): i for i, fields in enumerate(said)}
        order = [places[json.dumps(fields, default=os.fsdecode)] for fields in told]
        self.assertEqual(order, sorted(set(order)))
        self.assertEqual(told[-1], said[-1])

    def test_calls_past_the_library(self):
        """Known where the kernel has kprobes; elsewhere counted, and said so."""
        number = {"x86_64": "83, at(b'raw'), 0o755", "aarch64": "34, AT_FDCWD, at(b'raw'), 0o755"}[os.uname().machine]
        result = harness.run(self.words("--", *self.script(f"assert libc.syscall({number}) == 0\nsay('mkdir', at(b'raw'))")))
        self.check_ended(result)
        told = [self.told(r) for r in self.records() if r["kind"] == "file"]
        self.assertEqual(told, self.said() if has_kprobes() else [])
        if not has_kprobes():
            self.assertRegex(result.err, r"names were not seen: [1-9]")

    def test_wrong_folders(self):
        self.out.touch()
        for words, status, said in (([], 2, "which folder"), ([self.out], 5, "Not a directory"), ([self.out / "x"], 5, "Not a directory"),
                                    ([self.watched / "x"], 5, "No such file")):
            result = harness.run([harness.program("tracefan"), "watch", "files", *words])
            self.assertEqual(result.status, status, result.err)
            self.assertIn(said, result.err)


if __name__ == "__main__":
    harness.main()
