#!/usr/bin/env python3
"""How tracefan starts, watches and ends the daemons of a private session. Scripts stand in for the daemons, a made-up
libtracefan for the connection to them (session private-*: three events, then nothing more)."""
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

FAKE = os.environ["TRACEFAN_FAKE"]
PATIENCE = 60
# A user that owns nothing; one of this run's own, since its folder in /tmp is named by it.
SOMEBODY = 470000 + os.getpid()

# One that every user may run.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable

# What every script begins with. `note` adds a line to the log of what happened.
PRELUDE = f"""#!{PYTHON} -S
import json, os, signal, socket, sys
folder = os.path.dirname(os.path.realpath(__file__))
name = os.path.basename(__file__)
def note(what, **more):
    with open(folder + "/log", "a") as log:
        log.write(json.dumps(dict(who=name, what=what, **more)) + "\\n")
def ready(text=b"READY=1"):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.sendto(text, os.environ["NOTIFY_SOCKET"].replace("@", "\\0", 1).encode())
note("start", words=sys.argv[1:], env=sorted(os.environ), pid=os.getpid(), session=os.getsid(0) == os.getpid(),
     fds={{fd: os.readlink("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd")
          if os.path.exists("/proc/self/fd/" + fd)}},
     mask=[l for l in open("/proc/self/status") if l.startswith("SigBlk")])
if "--remove" in sys.argv:
    sys.exit(0)
"""
READER = 'ready()\nos.read(3, 1)\nnote("owner gone")\n'
ROUTER = 'ready()\nsignal.pause()\n'
# The router ends with the reader: by its parent's signal here, by its socket in earnest.
ROUTER_ENDS = 'ready()\nsys.exit(0)\n'


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@unittest.skipIf(os.geteuid() != 0, "a live private session needs root")
class PrivateSession(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="test-cli-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(self.end_daemons)
        self.folder.chmod(0o755)
        shutil.copy2(FAKE, self.folder / "tracefan")
        self.script("tracefan-reader", READER)
        self.script("tracefan-router", ROUTER_ENDS)

    def end_daemons(self):
        for line in self.log("start"):
            if is_alive(line["pid"]):
                os.kill(line["pid"], signal.SIGKILL)

    def script(self, name, body):
        path = self.folder / name
        path.write_text(PRELUDE + body)
        path.chmod(0o755)

    def log(self, what=None, who=None):
        try:
            lines = [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]
        except OSError:
            return []
        return [l for l in lines if what in (None, l["what"]) and who in (None, l["who"])]

    def words(self, *words):
        return [self.folder / "tracefan", *words]

    def run_it(self, *words, **more):
        return subprocess.run(self.words(*words), capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE, **more)

    def trace(self, *words, **more):
        return self.run_it("trace", "-e", "tracepoint:a:b", "-o", "json", *words, **more)

    def start_of(self, daemon):
        lines = [l for l in self.log("start", daemon) if "--remove" not in l["words"]]
        self.assertEqual(len(lines), 1)
        return lines[0]

    def option(self, line, name):
        words = line["words"]
        return words[words.index(name) + 1] if name in words else None

    def test_both_run_and_both_end(self):
        r = self.trace("-n", "3")
        self.assertEqual((r.returncode, r.stderr), (0, b""))
        self.assertEqual([json.loads(l)["kind"] for l in r.stdout.splitlines()], ["event"] * 3 + ["summary"])
        self.assertEqual([l["who"] for l in self.log()], ["tracefan-reader", "tracefan-router", "tracefan-reader"])
        for daemon in "tracefan-reader", "tracefan-router":
            self.assertFalse(is_alive(self.start_of(daemon)["pid"]))

    def test_what_they_are_told(self):
        self.trace("-n", "1", "-s", "text", "--interval", "7")
        reader, router = self.start_of("tracefan-reader"), self.start_of("tracefan-router")
        self.assertRegex(self.option(reader, "--session"), r"^private-\d+-[0-9a-f]{8}$")
        self.assertLessEqual(len(self.option(reader, "--session")), 32)
        self.assertEqual(self.option(reader, "--source"), "text")
        self.assertEqual(self.option(reader, "--interval"), "7")
        self.assertEqual(self.option(reader, "--owner-fd"), "3")
        for name in "--session", "--directory":
            self.assertEqual(self.option(reader, name), self.option(router, name))
        self.assertIsNone(self.option(router, "--record-fd"))

    def test_the_world_that_they_find(self):
        """Nothing of the user's shell: descriptors, environment, terminal, blocked signals."""
        extra = os.open("/etc/passwd", os.O_RDONLY)
        try:
            os.set_inheritable(extra, True)
            self.trace("-n", "1", pass_fds=[extra], env={**os.environ, "LD_PRELOAD": "", "SECRET": "x"})
        finally:
            os.close(extra)
        for daemon, fds in ("tracefan-reader", {"0", "1", "2", "3"}), ("tracefan-router", {"0", "1", "2"}):
            line = self.start_of(daemon)
            # The script's own listing and file are open while it looks.
            found = {fd: target for fd, target in line["fds"].items() if not target.startswith(("/proc", str(self.folder)))}
            self.assertEqual(set(found), fds, line["fds"])
            self.assertEqual((found["0"], found["1"]), ("/dev/null", "/dev/null"))
            self.assertNotIn("SECRET", line["env"])
            self.assertIn("NOTIFY_SOCKET", line["env"])
            self.assertTrue(line["session"])
            self.assertEqual(line["mask"], ["SigBlk:\t0000000000000000\n"])

    def test_who_fails_to_start_is_believed(self):
        self.script("tracefan-reader", 'print("tracefs is not mounted", file=sys.stderr)\nsys.exit(4)\n')
        r = self.trace()
        self.assertEqual((r.returncode, r.stdout), (4, b""))
        self.assertEqual(r.stderr, b"tracefs is not mounted\n")
        self.assertEqual(self.log("start", "tracefan-router"), [])

    def test_the_router_fails_to_start(self):
        self.script("tracefan-router", "sys.exit(3)\n")
        self.assertEqual(self.trace().returncode, 3)
        self.assertEqual([l["who"] for l in self.log("owner gone")], ["tracefan-reader"])

    def test_one_is_missing(self):
        (self.folder / "tracefan-router").unlink()
        r = self.trace()
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"tracefan-router", r.stderr)
        self.assertEqual(len(self.log("owner gone")), 1)

    def test_installed_below_libexec(self):
        libexec = self.folder / "libexec" / "tracefan"
        libexec.mkdir(parents=True)
        (self.folder / "bin").mkdir()
        for name in "tracefan-reader", "tracefan-router":
            (self.folder / name).rename(libexec / name)
        (self.folder / "tracefan").rename(self.folder / "bin" / "tracefan")
        r = subprocess.run([self.folder / "bin" / "tracefan", "trace", "-e", "tracepoint:a:b", "-n", "1"], capture_output=True,
                           timeout=PATIENCE)
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_only_the_daemon_itself_can_say_that_it_is_ready(self):
        self.script("tracefan-reader", "if os.fork() == 0:\n    ready()\n    os._exit(0)\nos.wait()\nsys.exit(4)\n")
        self.assertEqual(self.trace().returncode, 4)

    def test_readiness_may_come_with_more(self):
        self.script("tracefan-reader", READER.replace("ready()", 'ready(b"STATUS=starting")\nready(b"STATUS=up\\nREADY=1")'))
        self.assertEqual(self.trace("-n", "1").returncode, 0)

    def test_kill_9_of_the_command_ends_all(self):
        with subprocess.Popen(self.words("trace", "-e", "tracepoint:a:b"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as p:
            p.stdout.readline()
            p.kill()
        reader = self.start_of("tracefan-reader")["pid"]
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(reader)
            self.assertTrue(select.select([pidfd], [], [], PATIENCE)[0])
            os.close(pidfd)
        self.assertEqual(len(self.log("owner gone")), 1)

    def test_a_killed_reader_is_told_and_cleaned_up_after(self):
        self.script("tracefan-router", ROUTER)
        with subprocess.Popen(self.words("trace", "-e", "tracepoint:a:b"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as p:
            p.stdout.readline()
            os.kill(self.start_of("tracefan-reader")["pid"], signal.SIGKILL)
            # The script of a router does not notice, which the real one does.
            time.sleep(0.1)
            os.kill(self.start_of("tracefan-router")["pid"], signal.SIGTERM)
            _, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"tracefan-reader was killed by signal 9", err)
        removal = [l for l in self.log("start", "tracefan-reader") if "--remove" in l["words"]]
        self.assertEqual(len(removal), 1)
        self.assertEqual(self.option(removal[0], "--session"), self.option(self.start_of("tracefan-reader"), "--session"))

    def test_who_is_killed_is_told_of_at_any_time(self):
        die, ready_then_die = "os.kill(os.getpid(), 9)\n", "ready()\nos.kill(os.getpid(), 9)\n"
        for daemon, body in ("reader", die), ("reader", ready_then_die), ("reader", READER + die), ("router", die), \
                ("router", ready_then_die):
            with self.subTest(daemon=daemon, body=body):
                self.script("tracefan-reader", READER)
                self.script("tracefan-router", ROUTER_ENDS)
                self.script(f"tracefan-{daemon}", body)
                r = self.trace("-n", "1")
                self.assertEqual(r.returncode, 1)
                self.assertEqual(r.stderr.count(f"tracefan-{daemon} was killed by signal 9\n".encode()), 1, r.stderr)

    def test_what_they_say_is_seen_whatever_the_verb(self):
        self.script("tracefan-router", 'print("the disk is full", file=sys.stderr)\n' + ROUTER_ENDS)
        for words in ["trace", "-e", "tracepoint:a:b", "-n", "1"], ["replay", "-e", "a:b", "-n", "1", "x"], \
                ["record", "-e", "tracepoint:a:b", "-d", "0.05", "-o", str(self.folder / "recording")]:
            with self.subTest(words=words):
                r = self.run_it(*words)
                self.assertEqual((r.returncode, r.stderr.count(b"the disk is full\n")), (0, 1), r.stderr)

    def test_a_failure_at_the_end_is_the_exit_status(self):
        self.script("tracefan-reader", READER + "sys.exit(7)\n")
        self.assertEqual(self.trace("-n", "1").returncode, 7)
        self.assertEqual(self.trace("-n", "1", "--", "sh", "-c", "exit 5").returncode, 5)

    def test_recording(self):
        target = self.folder / "recording"
        target.write_bytes(b"an older one")
        self.script("tracefan-router", ROUTER_ENDS)
        r = self.run_it("record", "-e", "tracepoint:a:b", "-d", "0.05", "-o", str(target))
        self.assertEqual((r.returncode, r.stdout), (0, b""))
        self.assertIn(b"session:", r.stderr)
        self.assertEqual(self.option(self.start_of("tracefan-router"), "--record-fd"), "3")
        self.assertEqual(self.start_of("tracefan-router")["fds"]["3"], str(target))
        self.assertEqual(target.read_bytes(), b"")

    def test_a_recording_that_cannot_be_written_starts_nothing(self):
        r = self.run_it("record", "-e", "tracepoint:a:b", "-o", str(self.folder))
        self.assertEqual(r.returncode, 2)
        self.assertEqual(self.log(), [])

    def start_session(self, *words, name="missing"):
        """By its name the fake library says what is there already: nothing."""
        return self.run_it("session", "start", name, "--directory", str(self.folder / "run"), *words)

    def test_only_the_router_is_missing(self):
        self.script("tracefan-router", ROUTER)
        r = self.start_session(name="routerless")
        self.assertEqual((r.returncode, r.stdout), (0, b""))
        self.assertTrue(is_alive(self.start_of("tracefan-router")["pid"]))
        self.assertEqual(self.log("start", "tracefan-reader"), [])

    def test_a_session_that_outlives_the_command(self):
        self.script("tracefan-reader", 'ready()\nprint("hello", file=sys.stderr, flush=True)\nsignal.pause()\n')
        self.script("tracefan-router", ROUTER)
        r = self.start_session()
        self.assertEqual((r.returncode, r.stdout), (0, b""))
        reader, router = self.start_of("tracefan-reader"), self.start_of("tracefan-router")
        for line in reader, router:
            self.assertTrue(is_alive(line["pid"]))
            self.assertEqual(self.option(line, "--session"), "missing")
            self.assertEqual(self.option(line, "--directory"), str(self.folder / "run"))
            # Whoever waits for the terminal's other end is not held up.
            self.assertEqual(line["fds"]["2"], str(self.folder / "run" / "missing.log"))
        self.assertNotIn("--owner-fd", reader["words"])
        self.assertNotIn("--group", reader["words"])
        self.assertEqual((self.folder / "run" / "missing.log").read_text(), "hello\n")

    def test_a_session_that_does_not_start(self):
        self.script("tracefan-reader", 'print("tracefs is not mounted", file=sys.stderr)\nsys.exit(4)\n')
        r = self.start_session()
        self.assertEqual((r.returncode, r.stderr), (4, b"tracefs is not mounted\n"))
        self.assertEqual(list((self.folder / "run").iterdir()), [])

    def test_a_reader_without_its_router_is_ended(self):
        self.script("tracefan-reader", "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\nready()\nsignal.pause()\n")
        self.script("tracefan-router", "sys.exit(3)\n")
        self.assertEqual(self.start_session().returncode, 3)
        self.assertFalse(is_alive(self.start_of("tracefan-reader")["pid"]))

    def test_settings(self):
        self.script("tracefan-reader", 'ready()\nsignal.pause()\n')
        self.assertEqual(self.start_session("-c", "some/file").returncode, 0)
        self.assertEqual(self.option(self.start_of("tracefan-reader"), "--config"), "some/file")

    def test_names_that_are_none(self):
        for name in "../x", "a/b", ".", "x" * 33:
            r = self.run_it("session", "start", name, "--directory", str(self.folder / "run"))
            self.assertEqual(r.returncode, 2, name)
        self.assertEqual(self.log(), [])

    def test_replays(self):
        for words, option in (["x.rec"], "--replay"), (["--text", "x.log"], "--text"), (["--pages", "dir"], "--pages"):
            with contextlib.suppress(FileNotFoundError):
                (self.folder / "log").unlink()
            r = self.run_it("replay", "-e", "a:b", "-n", "2", "-o", "json", *words)
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertEqual(self.option(self.start_of("tracefan-reader"), option), words[-1])
            self.assertEqual([json.loads(l)["probe"] for l in r.stdout.splitlines()[:-1]], ["a:b"] * 2)

    def test_a_replay_needs_no_root(self):
        self.folder.chmod(0o777)
        for runtime in None, self.folder / "runtime":
            env = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
            expected = f"/tmp/tracefan-{SOMEBODY}"
            if runtime:
                runtime.mkdir()
                os.chown(runtime, SOMEBODY, SOMEBODY)
                env["XDG_RUNTIME_DIR"] = str(runtime)
                expected = str(runtime / "tracefan")
            with contextlib.suppress(FileNotFoundError):
                (self.folder / "log").unlink()
            r = self.run_it("replay", "-e", "a:b", "-n", "1", "x.rec", user=SOMEBODY, group=SOMEBODY, extra_groups=[], env=env)
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertEqual(self.option(self.start_of("tracefan-reader"), "--directory"), expected)
            self.assertFalse(os.path.exists(expected), "left behind")

    def test_a_folder_of_somebody_else_is_not_used(self):
        trap = pathlib.Path(f"/tmp/tracefan-{SOMEBODY}")
        trap.mkdir(mode=0o777)
        try:
            env = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
            r = self.run_it("replay", "x.rec", user=SOMEBODY, group=SOMEBODY, extra_groups=[], env=env)
        finally:
            trap.rmdir()
        self.assertEqual(r.returncode, 1)
        self.assertIn(str(trap).encode(), r.stderr)
        self.assertEqual(self.log(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
