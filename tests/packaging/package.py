#!/usr/bin/env python3
"""The Debian packages, unpacked into a throwaway root: everything is in its place, and runs from there.

usage: package.py FOLDER     (of the .deb files)
"""
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
FOLDER = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(TREE / "tests" / "integration"))
import harness  # noqa: E402

EXPECTED = {
    "tracefan": ["etc/tracefan/default.conf", "usr/bin/tracefan", "usr/sbin/tracefan-reader", "usr/sbin/tracefan-router",
                 "usr/lib/systemd/system/tracefan-reader@.service", "usr/lib/systemd/system/tracefan-router@.service",
                 "usr/lib/sysusers.d/tracefan.conf", "usr/lib/tmpfiles.d/tracefan.conf", "usr/share/man/man1/tracefan.1.gz",
                 "usr/share/man/man5/tracefan.conf.5.gz", "usr/share/man/man8/tracefan-reader.8.gz",
                 "usr/share/doc/tracefan/policy.example"],
    "libtracefan0": ["usr/lib/*/libtracefan.so.0"],
    "libtracefan-dev": ["usr/include/tracefan.h", "usr/lib/*/libtracefan.so", "usr/lib/*/libtracefan.a",
                        "usr/lib/*/pkgconfig/libtracefan.pc", "usr/share/man/man3/libtracefan.3.gz"],
}


class Package(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.folder, "root")
        for name in EXPECTED:
            packages = list(FOLDER.glob(f"{name}_*.deb"))
            self.assertEqual(len(packages), 1, f"{name} in {FOLDER}")
            subprocess.run(["dpkg", "-x", packages[0], self.root], check=True)
        library = next(self.root.glob("usr/lib/*/libtracefan.so.0"))
        self.env = {"LD_LIBRARY_PATH": str(library.parent)}
        self.tracefan = self.root / "usr/bin/tracefan"

    def run_it(self, *words, **more):
        return harness.run([self.tracefan, *words], env={**self.env, "XDG_RUNTIME_DIR": self.folder}, **more)

    def test_everything_is_in_its_place(self):
        for paths in EXPECTED.values():
            for path in paths:
                self.assertEqual(len(list(self.root.glob(path))), 1, path)
        unit = (self.root / "usr/lib/systemd/system/tracefan-reader@.service").read_text()
        self.assertIn("ExecStart=/usr/sbin/tracefan-reader --session %i --config /etc/tracefan/%i.conf\n", unit)

    def test_a_replay(self):
        user = harness.as_user(harness.USER_A) if os.geteuid() == 0 else {}
        recording = pathlib.Path(self.folder, "demo.tfr")
        shutil.copyfile(TREE / "tests" / "fixtures" / recording.name, recording)
        result = self.run_it("replay", recording, "-o", "json", **user)
        self.check_ended(result)
        self.assertEqual(len(result.of("sched:sched_process_exec")), 13)

    def test_a_session_with_the_configuration_that_comes_along(self):
        harness.require_tracefs()
        directory, name = pathlib.Path(self.folder, "run"), f"test-{os.getpid()}-package"
        where = ("--directory", directory)
        self.check_ended(self.run_it("session", "start", name, "-c", self.root / "etc/tracefan/default.conf", *where))
        try:
            status = self.run_it("status", "--session", name, "-o", "json", *where)
            self.check_ended(status)
            self.assertEqual(json.loads(status.out)["session"], name)
            traced = self.run_it("trace", "--session", name, *where, "-e", "tracepoint:sched:sched_process_exec", "-o", "json",
                                 "--", "cat", "/dev/null")
            self.check_ended(traced)
            self.assertIn("cat", [e["comm"] for e in traced.events])
        finally:
            self.check_ended(self.run_it("session", "stop", name, *where))

    def test_users_and_folders(self):
        for tool in ("systemd-sysusers", "systemd-tmpfiles"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} isn't installed")
        (self.root / "etc").mkdir(exist_ok=True)
        subprocess.run(["systemd-sysusers", f"--root={self.root}"], check=True, capture_output=True)
        users = (self.root / "etc/passwd").read_text().splitlines()
        groups = (self.root / "etc/group").read_text().splitlines()
        self.assertEqual([u.split(":")[6] for u in users if u.startswith("tracefan-router:")], ["/usr/sbin/nologin"])
        self.assertTrue(any(g.startswith("tracefan:") for g in groups), groups)
        subprocess.run(["systemd-tmpfiles", f"--root={self.root}", "--create", "tracefan.conf"], check=True, capture_output=True,
                       umask=0o077)
        self.assertEqual((self.root / "run/tracefan").stat().st_mode & 0o7777, 0o755)

    def test_as_services(self):
        """By a systemd of its own, which has no other units."""
        harness.require_tracefs()
        systemd = pathlib.Path("/lib/systemd/systemd")
        if not systemd.exists() or not shutil.which("systemd-sysusers"):
            self.skipTest("systemd isn't installed")
        if (harness.TRACEFS / "instances" / "tracefan-default").exists():
            self.skipTest("a session called default is running")
        out = pathlib.Path(self.folder, "out")
        (out / "box").mkdir(parents=True)
        script = out / "services.sh"
        script.write_bytes((HERE / "services.sh").read_bytes())
        here = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc"]
        if subprocess.run([*here, "true"], capture_output=True).returncode:
            self.skipTest("namespaces can't be made here")
        group = f"test-tracefan-{os.getpid()}"
        self.addCleanup(self.remove_cgroup, group, out / "box")
        os.mkfifo(out / "done")
        done = os.open(out / "done", os.O_RDWR | os.O_CLOEXEC)
        self.addCleanup(os.close, done)
        box = harness.Process([*here, "bash", HERE / "box.sh", self.root, out, script, group])
        pidfd = os.pidfd_open(box.pid)
        self.addCleanup(os.close, pidfd)
        select.select([done, pidfd], [], [], harness.PATIENCE)
        self.end_box(box)
        log, units = (self.read(out / name) for name in ("log", "units"))
        if not log:
            self.skipTest(f"systemd can't be run in a box here: {(box.out + box.err).strip()[-300:]}")
        said = dict(line.partition(": ")[::2] for line in log.splitlines() if ": " in line)
        self.maxDiff = None
        self.assertEqual(said, {
            "started": "running running", "reader-user": "root", "router-user": "tracefan-router",
            "reader-capabilities": "0" * 16, "router-capabilities": "0" * 16, "reader-tracefs": "0", "router-tracefs": "0",
            "traced": "1", "router-killed": "running running", "traced-by-the-next-router": "1",
            "reader-killed": "running running", "traced-by-the-next-reader": "1", "stopped": "dead dead",
            "results": "success success", "left": "", "end": "yes"}, f"{log}\n{units}")

    @staticmethod
    def end_box(box):
        """With its first process end all others, and then that one."""
        firsts = [os.pidfd_open(pid) for pid, parent in harness.parents().items() if parent == box.pid]
        box.kill()
        for first in firsts:
            select.select([first], [], [], harness.PATIENCE)
            os.close(first)

    @staticmethod
    def remove_cgroup(group, folder):
        """The kernel's, which outlives the box."""
        subprocess.run(["unshare", "--mount", "sh", "-c", 'mount -t cgroup2 cgroup2 "$1" && find "$1/$2" -depth -type d -exec rmdir {} +',
                        "sh", folder, group], capture_output=True)

    @staticmethod
    def read(path):
        return path.read_text(errors="replace") if path.exists() else ""


if __name__ == "__main__":
    del sys.argv[1]
    harness.main()
