#!/usr/bin/env python3
"""The exit status of every verb for what may go wrong with it, and what the messages say of the mend."""
import os
import pathlib
import re

import harness

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
SWITCH = "tracepoint:sched:sched_switch"
DONE, FAILED, USAGE, PERMISSION, MISSING, LOCATION, FETCH = range(7)


def setUpModule():
    harness.require_event("sched", "sched_switch")


class Statuses(harness.TestCase):
    def table(self, rows, **user):
        """Rows of a status, what is said, and the command line."""
        tracefan = harness.staged(self.folder, "tracefan")
        for daemon in "tracefan-reader", "tracefan-router":
            harness.staged(self.folder, daemon)
        for status, says, *words in rows:
            with self.subTest(words=words):
                result = harness.run([tracefan, *words], env={"XDG_RUNTIME_DIR": self.folder}, **user)
                self.check_ended(result, status)
                self.assertRegex(result.out + result.err, says)

    def setUp(self):
        super().setUp()
        self.empty, self.other = pathlib.Path(self.folder, "empty"), pathlib.Path(self.folder, "other")
        self.empty.touch()
        self.other.write_text("nothing of this\nis ftrace's\n")
        self.bare = pathlib.Path(self.folder, "bare")
        self.bare.mkdir(mode=0o755)

    def test_of_root(self):
        name, nowhere = f"test-{os.getpid()}-none", f"{self.folder}/nowhere"
        recording = FIXTURES / "demo.tfr"
        self.table([
            (USAGE, "what shall be done"),
            (USAGE, "no verb 'trase'; did you mean trace", "trase"),
            (DONE, "Usage", "--help"),
            (DONE, "tracefan", "--version"),

            (USAGE, "at least one -e PROBE", "trace"),
            (USAGE, "at most 18446744073709551615", "trace", "-n", "18446744073709551616", "-e", SWITCH),
            (USAGE, "at most 1000000000 seconds", "trace", "-d", "1000000001", "-e", SWITCH),
            (USAGE, "at most 1G", "trace", "--ring", "99999999999999999999", "-e", SWITCH),
            (USAGE, "No such file", "trace", "-w", f"{nowhere}/file", "-e", SWITCH),
            (USAGE, "Is a directory", "trace", "-w", self.folder, "-e", SWITCH),
            (LOCATION, "did you mean sched:sched_switch", "trace", "-e", "tracepoint:sced:sched_switch"),
            (MISSING, f'no session "{name}" in /run/tracefan: .*session start {name}"', "trace", "--session", name, "-e", SWITCH),
            (MISSING, f"session start {name} --directory {nowhere}\"", "trace", "--session", name, "--directory", nowhere, "-e", SWITCH),
            (DONE, "session:", "trace", "-d", "0.01", "-q", "-e", SWITCH),
            (7, "session:", "trace", "-q", "-e", SWITCH, "--", "sh", "-c", "exit 7"),
            (137, "session:", "trace", "-q", "-e", SWITCH, "--", "sh", "-c", "kill -9 $$"),
            (127, "can't run", "trace", "-q", "-e", SWITCH, "--", nowhere),
            (126, "can't run", "trace", "-q", "-e", SWITCH, "--", self.folder),

            (USAGE, "Give -o FILE", "record", "-e", SWITCH),
            (USAGE, "No such file", "record", "-o", f"{nowhere}/file", "-e", SWITCH),
            (USAGE, "Is a directory", "record", "-o", self.folder, "-e", SWITCH),
            (FAILED, "No space left", "record", "-o", "/dev/full", "-d", "0.01", "-e", SWITCH),

            (USAGE, "what shall be replayed", "replay"),
            (LOCATION, f"{nowhere}: No such file", "replay", nowhere),
            (FAILED, "empty: nothing was recorded in it", "replay", self.empty),
            (USAGE, "not a tracefan recording", "replay", "/bin/sh"),
            (LOCATION, "holds no event", "replay", recording, "-e", "sched:nothing"),
            (DONE, "session:", "replay", "-q", recording),
            (LOCATION, f"{nowhere}: No such file", "replay", "--text", nowhere),
            (FAILED, f"{self.empty}: empty: nothing in it is text of ftrace's", "replay", "--text", self.empty),
            (FAILED, "not a line of the file is text of ftrace's", "replay", "--text", self.other),
            (LOCATION, f"{self.bare}/events/header_page: No such file", "replay", "--pages", self.bare),
            (LOCATION, "Not a directory", "replay", "--pages", self.empty),

            (USAGE, "what shall be watched", "watch"),
            (USAGE, "which folder", "watch", "files"),
            (LOCATION, f"{nowhere}: No such file", "watch", "files", nowhere),
            (USAGE, "at least one -e PROBE", "top"),
            (USAGE, "at most 1000000000 seconds", "top", "--every", "99999999999999999999", "-e", SWITCH),
            (LOCATION, "no event", "top", "-e", "tracepoint:sched:nothing"),

            (DONE, "^sched:sched_switch\n", "ls", "sched_swit*"),
            (DONE, "^sched:sched_switch\n", "ls", "sched:sched_swit*"),
            (LOCATION, "no event matches", "ls", "sched_switz*"),
            (USAGE, "at least one -e PROBE", "explain"),
            (USAGE, "a value is missing", "explain", "-e", SWITCH, "-f", "prev_pid =="),
            (USAGE, "at most 2147483647", "explain", "-e", SWITCH, "-f", "prev_pid == 4294967295"),
            (DONE, "prev_pid == -1", "explain", "-e", SWITCH, "-f", "prev_pid == 0xffffffff"),
            (USAGE, "out of place", "doctor", "more"),
        ])

    def test_of_root_about_sessions(self):
        name, nowhere = f"test-{os.getpid()}-none", f"{self.folder}/nowhere"
        self.table([
            (MISSING, "no session", "status", "--session", name),
            (DONE, "no session is running", "status", "--directory", nowhere),
            (USAGE, "Give its name", "session", "start"),
            (USAGE, "can't be told to 'stat'; did you mean start", "session", "stat", name),
            (MISSING, "no session", "session", "stop", name),
            (MISSING, "no session", "session", "flush", name),
            (DONE, "^$", "session", "list", "--directory", nowhere),
            (USAGE, f"{nowhere}: No such file", "session", "start", name, "--policy", nowhere),
            (USAGE, "not a regular file", "session", "start", name, "--policy", self.folder),
            (USAGE, f"{nowhere}: No such file", "session", "start", name, "-c", nowhere),
            (USAGE, "not a regular file", "session", "start", name, "-c", self.folder),
            (USAGE, "No such file", "session", "start", name, "--directory", f"{nowhere}/deep"),
            (USAGE, "Not a directory", "session", "start", name, "--directory", self.empty),
        ])

    def test_files_that_others_may_write(self):
        """They say who may do what, so they are not believed."""
        name = f"test-{os.getpid()}-none"
        self.other.chmod(0o666)
        self.table([(PERMISSION, "chmod go-w", "session", "start", name, option, self.other) for option in ("--policy", "-c")])

    def test_of_another_user(self):
        closed = pathlib.Path(self.folder, "closed")
        closed.touch(mode=0o600)
        shut = pathlib.Path(self.folder, "shut")
        shut.mkdir(mode=0o755)
        self.table([
            (PERMISSION, "needs root", "trace", "-e", SWITCH),
            (PERMISSION, "needs root", "record", "-o", f"{self.folder}/file", "-e", SWITCH),
            (PERMISSION, "needs root", "watch", "exec"),
            (PERMISSION, "Permission denied", "trace", "-w", f"{shut}/file", "-e", SWITCH),
            (PERMISSION, "Permission denied", "replay", closed),
            (PERMISSION, "Permission denied", "replay", "--text", closed),
            (FAILED, "empty", "replay", "--text", self.empty),
        ], **harness.as_user(harness.USER_A))


class Messages(harness.TestCase):
    def marked(self, *words):
        """Runs trace, which must be refused: what is said, and what stands where the mark is."""
        result = harness.trace(*words, "-d", "0.01")
        lines = result.err.splitlines()
        mark = next(i for i, line in enumerate(lines) if line.strip() == "^")
        return result.err, lines[mark - 1][lines[mark].index("^"):]

    def test_the_system_is_wrong(self):
        _, rest = self.marked("-e", "tracepoint:sced:sched_switch")
        self.assertEqual(rest, "sced:sched_switch")
        _, rest = self.marked("-e", "tracepoint:sched:sched_swich")
        self.assertEqual(rest, "sched_swich")
        said, rest = self.marked("-e", "x=tracepoint:shced:nothing_like_it")
        self.assertEqual(rest, "shced:nothing_like_it")
        self.assertIn("did you mean sched?", said)

    def test_a_probe_is_called_by_its_own_name(self):
        harness.require_file("uprobe_events", "uprobes")
        said, rest = self.marked("-e", f"calls=uprobe:{harness.program('workload_calls')}:workload_call if nothing == 1")
        self.assertIn("filter: calls has no field 'nothing'", said)
        self.assertEqual(rest, "nothing == 1")

    def test_a_path_with_a_newline(self):
        harness.require_file("uprobe_events", "uprobes")
        place = pathlib.Path(self.folder, "a\nb \t\"c\"")
        place.mkdir()
        program = pathlib.Path(harness.staged(place, "workload_calls"))
        for path in f'"{self.folder}/a\\nb \\x09\\"c\\"/workload_calls"', f"'{program}'":
            result = harness.trace("-o", "json", "-w", f"{self.folder}/out", "-e", f"uprobe:{path}:workload_call", "--", program, "3")
            self.check_ended(result)
            result.out = pathlib.Path(self.folder, "out").read_text()
            self.assertEqual(len(result.events), 3)

    def test_a_state_of_files_alone(self):
        result = harness.trace("--state=files", "-o", "json", "-e", "tracepoint:sched:sched_process_exec", "--", "true")
        self.check_ended(result)
        states = {r["state"] for r in result.records if r["kind"] == "state"}
        self.assertEqual(states, {"file", "end"})
        self.assertIn(os.getpid(), {r["pid"] for r in result.records if r.get("state") == "file"})


class Readme(harness.TestCase):
    def test_the_first_traces(self):
        """What a newcomer types shows what was opened and started, and not where in memory its name was."""
        harness.require_file("uprobe_events", "uprobes")
        text = (FIXTURES.parent.parent / "README.md").read_text()
        section = re.search(r"^## A first trace.*?(?=^## )", text, re.M | re.S)[0]
        commands = re.findall(r"^    (\./tracefan trace .* cat /etc/hostname)$", section, re.M)
        self.assertEqual(len(commands), 2)
        for command, shown in zip(commands, (r"filename=\S*/cat ", r"path=/etc/hostname$"), strict=True):
            path = re.search(r"uprobe:([^:]+)", command)
            if path and not os.path.exists(path[1]):
                continue
            result = harness.run(["sh", "-c", command], cwd=harness.BUILD)
            self.check_ended(result)
            self.assertRegex(result.out, re.compile(shown, re.M))
            self.assertNotRegex(result.out, "(path|filename)=0x")


class Policies(harness.TestCase):
    def start(self, lines):
        file = pathlib.Path(self.folder, "policy")
        file.write_text("".join(f"{line}\n" for line in lines))
        file.chmod(0o644)
        session = harness.Session(self.folder, "--policy", str(file))
        self.addCleanup(lambda: session.reader.running() and session.stop())
        return session

    def watch(self, session, *what):
        return harness.run([session.tracefan, "watch", "--session", session.name, "-d", "0.05", *what], **harness.as_user(harness.USER_A))

    def test_what_an_observer_needs(self):
        """The lines that a refusal names are enough."""
        harness.require_event("syscalls", "sys_enter_openat")
        kinds = ["exec"], ["connect"], ["listen"], ["files", "/etc"]
        session = self.start(["allow everyone tracepoint:sched:sched_process_exec"])
        lines = {}
        for what in kinds:
            with self.subTest(what=what):
                result = self.watch(session, *what)
                self.check_ended(result, PERMISSION)
                self.assertIn(f"see tracefan ls --session {session.name} for", result.err)
                lines[what[0]] = re.findall(rf"^tracefan: +(allow user={harness.USER_A} .*)$", result.err, re.MULTILINE)
                self.assertGreater(len(lines[what[0]]), 1)
        self.assertEqual(session.stop(), (0, 0))
        # Who may have all of it, but not so much, is told of the limit alone.
        session = self.start([*lines["exec"], f"limit user={harness.USER_A} probes=1"])
        result = self.watch(session, "exec")
        self.check_ended(result, PERMISSION)
        self.assertIn("has 1 probes, the limit of", result.err)
        self.assertNotIn("has to allow all", result.err)
        self.assertEqual(session.stop(), (0, 0))
        for what in kinds:
            with self.subTest(what=what):
                session = self.start(lines[what[0]])
                self.check_ended(self.watch(session, *what))
                self.assertEqual(session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
