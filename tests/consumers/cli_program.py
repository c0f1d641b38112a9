#!/usr/bin/env python3
"""The program tracefan with a made-up libtracefan below it (cli_fake.h says what each session does): output, exit
statuses, signals, the command."""
import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import unittest

FAKE = os.environ["TRACEFAN_FAKE"]
# For a program that hangs; nothing waits this long otherwise.
PATIENCE = 60


def run(*words, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([FAKE, *words], capture_output=True, timeout=PATIENCE, **more)


def trace(session, *words, **more):
    return run("trace", "--session", session, "-e", "tracepoint:a:b", *words, **more)


def records(out):
    """Strict JSON in strict UTF-8, an object per line."""
    return [json.loads(line) for line in out.decode().splitlines()]


def as_bytes(text):
    """The way back that the manual page tells."""
    return b"".join(bytes([ord(c) - 0xef00]) if 0xef80 <= ord(c) <= 0xefff else c.encode() for c in text)


def end_by_more_signals(process):
    """One of them may be taken for the same signal as the first while that is pending."""
    while process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)


class Output(unittest.TestCase):
    def test_json(self):
        r = trace("finished", "-o", "json")
        self.assertEqual((r.returncode, r.stderr), (0, b""))
        *events, end, summary = records(r.stdout)
        self.assertEqual([e["args"]["n"] for e in events], [1, 0, -1])
        self.assertEqual({e["probe"] for e in events}, {"a:b"})
        self.assertEqual(end, {"kind": "end", "reason": "finished", "message": ""})
        self.assertEqual(summary["probes"]["a:b"], {"decoded": 3, "delivered": 3, "filtered": 0, "lost_ring": 0, "missed": 0, "gave_up": 0,
                                                    "kept_away": None, "shown": 3})

    def test_text_goes_to_stdout_and_the_summary_to_stderr(self):
        r = trace("finished", env={**os.environ, "TZ": "UTC"})
        self.assertEqual(r.returncode, 0)
        lines = r.stdout.decode().splitlines()
        self.assertEqual(lines[0], "07:08:09.000000456 0 42 cat a:b path=/etc/hosts n=1")
        self.assertEqual(len(lines), 3)
        self.assertRegex(r.stderr.decode(), r"(?m)^PROBE +DECODED .*\na:b +3 +3 +0 +0 +3\nsession: 3 committed")

    def test_the_summary_is_below_the_events_where_both_lead_to_one_place(self):
        r = subprocess.run([FAKE, "trace", "--session", "finished", "-e", "tracepoint:a:b"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
        lines = r.stdout.decode().splitlines()
        self.assertEqual([" a:b path=" in line for line in lines], [True] * 3 + [False] * (len(lines) - 3))
        self.assertTrue(lines[-1].startswith("session: 3 committed"), lines)

    def test_every_byte_comes_back_from_json(self):
        r = trace("hostile", "-n", "255", "-o", "json")
        self.assertEqual(r.returncode, 0)
        events = records(r.stdout)[:-1]
        every = bytes(range(1, 256))
        self.assertEqual(len(events), 255)
        for i, event in enumerate(events):
            self.assertEqual(as_bytes(event["comm"]), b'a b"' + every[i:i + 1] + b"\xc3\xa4\xee\xbe\x80-[0]:")
            self.assertEqual(as_bytes(event["args"]["path"]), every[i:])

    def test_no_control_byte_reaches_the_output(self):
        for form in "json", "text":
            r = trace("hostile", "-n", "255", "-o", form)
            self.assertEqual(re.findall(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", r.stdout), [], form)
            r.stdout.decode()

    def test_a_file_instead(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out")
            r = trace("finished", "-o", "json", "-w", path, "--", "echo", "own")
            self.assertEqual((r.returncode, r.stdout), (0, b"own\n"))
            with open(path, "rb") as file:
                self.assertEqual([x["kind"] for x in records(file.read())], ["event"] * 3 + ["end", "summary"])
            r = trace("finished", "-w", folder)
            self.assertEqual(r.returncode, 2)
            self.assertIn(folder.encode(), r.stderr)

    def test_what_was_in_the_file_stays_where_nothing_comes_of_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out")
            for session, written in ("denied", b"before"), ("finished", None):
                with open(path, "wb") as file:
                    file.write(b"before")
                trace(session, "-w", path, "-o", "json")
                with open(path, "rb") as file:
                    self.assertEqual(written or b"{", file.read()[:len(written or b"{")])

    def test_closed_descriptors(self):
        """What they were closed for is an error; nothing else is written in their place."""
        for words in ["trace", "--session", "finished", "-e", "tracepoint:a:b"], ["ls"], ["doctor"], ["--help"]:
            with self.subTest(words=words):
                r = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", FAKE, *words], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, timeout=PATIENCE)
                self.assertEqual(r.returncode, 1)
                self.assertIn(b"standard output: Bad file descriptor", r.stderr)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out")
            r = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", FAKE, "trace", "--session", "finished", "-e",
                                "tracepoint:a:b", "-o", "json", "-w", path], timeout=PATIENCE)
            with open(path, "rb") as file:
                self.assertEqual([x["kind"] for x in records(file.read())], ["event"] * 3 + ["end", "summary"])
            self.assertEqual(r.returncode, 0)

    def test_quiet_takes_but_does_not_show(self):
        r = trace("finished", "-q", "-o", "json")
        self.assertEqual([x["kind"] for x in records(r.stdout)], ["summary"])
        self.assertEqual(records(r.stdout)[0]["probes"]["a:b"]["delivered"], 3)

    def test_a_terminal_gets_colours_unless_told_otherwise(self):
        for no_colour, expected in (None, True), ("", True), ("1", False):
            master, slave = pty.openpty()
            env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
            if no_colour is not None:
                env["NO_COLOR"] = no_colour
            r = subprocess.run([FAKE, "trace", "--session", "finished", "-e", "tracepoint:a:b"], stdin=subprocess.DEVNULL,
                               stdout=slave, stderr=subprocess.DEVNULL, env=env, timeout=PATIENCE)
            os.close(slave)
            shown = os.read(master, 65536)
            os.close(master)
            self.assertEqual(r.returncode, 0)
            self.assertEqual(b"\033[" in shown, expected, no_colour)
            self.assertIn(b"path", shown)

    def test_lines_come_at_once_when_nothing_follows(self):
        with subprocess.Popen([FAKE, "trace", "--session", "plain", "-e", "tracepoint:a:b"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, bufsize=0) as p:
            lines = [p.stdout.readline() for _ in range(3)]
            self.assertIn(b"n=-1", lines[2])
            p.send_signal(signal.SIGINT)
            rest, err = p.communicate(timeout=PATIENCE)
        self.assertEqual((p.returncode, rest), (0, b""))
        self.assertIn(b"session:", err)

    def test_the_ledger_may_be_out_of_reach(self):
        r = trace("ledgerless", "-n", "1", "-o", "json")
        summary = records(r.stdout)[-1]
        self.assertEqual(summary["session"], dict.fromkeys(("committed", "decoded", "undecodable", "lost_kernel", "dropped")))
        self.assertEqual(summary["probes"]["a:b"]["shown"], 1)
        self.assertIsNone(summary["probes"]["a:b"]["decoded"])

    def test_several_probes(self):
        r = trace("burst-2", "-e", "x=kprobe:f", "-d", "0.01", "-o", "json")
        self.assertEqual([e["probe"] for e in records(r.stdout)[:-1]], ["a:b", "x"] * 2)


class Ends(unittest.TestCase):
    def test_count(self):
        r = trace("endless", "-n", "5000", "-o", "json")
        self.assertEqual(r.returncode, 0)
        kinds = [x["kind"] for x in records(r.stdout)]
        self.assertEqual((kinds.count("event"), kinds[-1]), (5000, "summary"))

    def test_duration(self):
        r = trace("endless", "-q", "-d", "0.1", "-o", "json")
        self.assertEqual(r.returncode, 0)
        self.assertGreater(records(r.stdout)[-1]["probes"]["a:b"]["decoded"], 0)

    def test_signals(self):
        for number in signal.SIGINT, signal.SIGTERM:
            with subprocess.Popen([FAKE, "trace", "--session", "endless", "-e", "tracepoint:a:b", "-o", "json"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as p:
                first = p.stdout.readline()
                p.send_signal(number)
                rest, err = p.communicate(timeout=PATIENCE)
            self.assertEqual((p.returncode, err), (0, b""))
            self.assertEqual(records(first + rest)[-1]["kind"], "summary")

    def test_a_second_signal_when_nobody_reads(self):
        r, w = os.pipe()
        with subprocess.Popen([FAKE, "trace", "--session", "endless", "-e", "tracepoint:a:b"], stdout=w,
                              stderr=subprocess.DEVNULL) as p:
            os.close(w)
            select.select([r], [], [], PATIENCE)
            p.send_signal(signal.SIGINT)
            end_by_more_signals(p)
            os.close(r)
        self.assertEqual(p.returncode, 0)

    def test_the_reader_of_the_pipe_leaves(self):
        """Also when no further event comes."""
        for session in "endless", "plain":
            r, w = os.pipe()
            with subprocess.Popen([FAKE, "trace", "--session", session, "-e", "tracepoint:a:b"], stdout=w,
                                  stderr=subprocess.PIPE) as p:
                os.close(w)
                os.read(r, 100)
                os.close(r)
                _, err = p.communicate(timeout=PATIENCE)
            self.assertEqual(p.returncode, 0)
            self.assertTrue(err.startswith(b"PROBE"), err)

    def test_the_disk_is_full(self):
        """Found when the buffer is full, after another reason to stop, with the last line, or with a loss besides."""
        for words in ["endless"], ["plain", "-n", "1"], ["finished"], ["finished", "--", "true"], ["lossy", "--on-loss", "exit"]:
            for form in "text", "json":
                with self.subTest(words=words, form=form):
                    r = trace(*words[:1], "-o", form, "-w", "/dev/full", *words[1:])
                    self.assertIn(r.returncode, (1, 8))
                    self.assertEqual(r.stderr.count(b"No space left"), 1)

    def test_the_disk_is_full_for_the_other_verbs(self):
        for words in ["--help"], ["--version"], ["trace", "--help"], ["doctor"]:
            with open("/dev/full", "wb") as full, self.subTest(words=words):
                r = subprocess.run([FAKE, *words], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                                   timeout=PATIENCE)
                self.assertEqual((r.returncode, r.stderr.count(b"No space left")), (1, 1))

    def test_the_session_ends(self):
        for session, status, words in ("finished", 0, b""), ("stopped", 0, b"by the operator"), \
                ("error", 1, b"the reader died"), ("refused", 3, b"the policy has changed"), ("reset", 1, b"the router is gone"):
            r = trace(session, "-o", "json")
            self.assertEqual(r.returncode, status, session)
            self.assertIn(words, r.stderr)
            kinds = [x["kind"] for x in records(r.stdout)]
            self.assertEqual((kinds.count("event"), kinds[-1]), (3, "summary"), session)

    def test_loss(self):
        r = trace("lossy", "-d", "0.05", "-o", "json")
        self.assertEqual(r.returncode, 0)
        self.assertEqual([x["kind"] for x in records(r.stdout)],
                         ["event", "lost", "lost", "lost", "gap", "event", "summary"])
        r = trace("lossy", "--on-loss", "exit", "-o", "json")
        self.assertEqual(r.returncode, 8)
        self.assertEqual(records(r.stdout)[1]["count"], 120)
        # A gap in which nothing was lost is no loss.
        r = trace("gap", "--on-loss", "exit", "-n", "1")
        self.assertEqual(r.returncode, 0)


class Refusals(unittest.TestCase):
    def test_each_has_its_status_and_says_where(self):
        r = run("trace", "--session", "plain", "-e", "tracepoint:a:b", "-e", "tracepoint:\tü:nosuch")
        self.assertEqual(r.returncode, 5)
        self.assertEqual(r.stderr.decode().splitlines(),
                         ["tracefan: there is no such event", "    tracepoint:\\x09ü:nosuch", "    " + " " * 17 + "^"])
        self.assertEqual(r.stdout, b"")
        self.assertEqual(run("trace", "--session", "plain", "-e", "kprobe:f x=badarg").returncode, 6)
        self.assertEqual(trace("denied").returncode, 3)
        r = trace("deaf")
        self.assertEqual((r.returncode, r.stderr), (7, b"tracefan: the probe is held by somebody\n"))

    def test_a_filter_for_all_is_added_to_each(self):
        r = run("trace", "--session", "plain", "-e", "kprobe:f if x", "-f", "x && nosuch==1")
        self.assertEqual((r.returncode, r.stdout), (2, b""))
        self.assertEqual(r.stderr, b"tracefan: there is no such field\n    x && nosuch==1\n         ^\n")

    def test_what_is_long_is_shown_in_part(self):
        """With its length; the mark stands below the place all the same."""
        words = "\u00fc && " * 1500
        for before, after, shown in (words, "nosuch == 1", f"... {words[-77:]}nosuch == 1"), ("", f"nosuch == 1 && {words}", None), \
                (words, f"nosuch == 1 && {words}", None):
            filter = before + after
            r = run("trace", "--session", "plain", "-e", "kprobe:f if x", "-f", filter)
            self.assertEqual(r.returncode, 2)
            what, line, mark = r.stderr.decode().splitlines()
            self.assertEqual(what, "tracefan: there is no such field")
            self.assertLess(len(line), 250)
            self.assertTrue(line[mark.index("^"):].startswith("nosuch == 1"), line)
            self.assertTrue(line.endswith(f" ({len(filter.encode())} bytes)"), line)
            self.assertEqual((line.startswith("    ... "), " ... (" in line), (before != "", len(after) > 80))
        for words, hint in (["trace", 100 * "stray"], b"... (500 bytes)' is out of place: a probe follows -e"), \
                (["trace", "-n", 5000 * "9"], b"... (5000 bytes): is too much"), (["trace", "--" + 5000 * "z"], b"... (5002 bytes)'; see tracefan"), \
                (["watch", 5000 * "z"], b"... (5000 bytes)'; see"), (["session", 5000 * "z", "x"], b"... (5000 bytes)', but start"):
            with self.subTest(words=words[0]):
                r = run(*words)
                self.assertEqual(r.returncode, 2)
                self.assertIn(hint, r.stderr)
                self.assertLess(len(r.stderr), 500)

    def test_names_must_differ(self):
        r = trace("plain", "-e", "tracepoint:a:b")
        self.assertEqual(r.returncode, 2)
        self.assertIn(b"a:b", r.stderr)

    def test_usage(self):
        for words, hint in (["tarce"], b"did you mean trace?"), (["trace", "--sesion", "x"], b"did you mean --session?"), \
                ([], b"tracefan --help"), (["trace"], b"-e PROBE"), (["replay"], b"--pages"), (["xyz"], b"--help"), \
                (["trace", "-e", "tracepoint:a:b", "ls"], b"--"), (["version"], b"did you mean --version?"), \
                (["trace", "--state", "processes", "-e", "kprobe:f"], b"did you mean --state=processes?"), \
                (["watch", "exec", "files", "/etc"], b"'files' is out of place: one thing is watched at a time"):
            r = run(*words)
            self.assertEqual(r.returncode, 2, words)
            self.assertIn(hint, r.stderr)
            self.assertEqual(r.stdout, b"")

    def test_what_is_out_of_place_is_named(self):
        """Every verb, with one word more than it takes, one that is empty, an unknown option, and none of what it needs."""
        extra = {
            "trace": (["-e", "kprobe:f"], b"a probe follows -e"), "record": (["-e", "kprobe:f", "-o", "f"], b"a probe follows -e"),
            "replay": (["f"], b"one at a time"), "watch": (["exec"], b"only files takes a folder"), "top": (["-e", "kprobe:f"], b"follows -e"),
            "ls": (["x"], b"one at a time"), "explain": (["-e", "kprobe:f"], b"follows -e"), "status": ([], b"follows --session"),
            "session": (["list"], b"list takes no name"), "doctor": ([], b"options alone")}
        verbs = set(re.findall(r"^  (\w+) ", run("--help").stdout.decode(), re.M)) - {"tracefan"}
        self.assertEqual(set(extra), verbs)
        for verb, (words, hint) in extra.items():
            for added, said in (["too=much"], b"'too=much'"), ([""], b"is empty: ''"), (["--nosuch"], b"no option '--nosuch'"), (["-Z"], b"no option '-Z'"):
                with self.subTest(verb=verb, added=added):
                    r = run(verb, *words, *added)
                    self.assertEqual((r.returncode, r.stdout), (2, b""))
                    self.assertIn(said, r.stderr)
                    if added == ["too=much"]:
                        self.assertIn(hint, r.stderr)
        for words, what in (["replay"], b"the file's name"), (["session", "start"], b"the session's name"), (["watch", "files"], b"the folder's name"):
            self.assertIn(what + b" is empty: ''", run(*words, "").stderr)
        for words in ["help", "trace"], ["--help", "trace"], ["-h", "trace"]:
            self.assertEqual(run(*words).stdout, run("trace", "--help").stdout)
        for words, hint in (["--version", "x"], b"'x'"), (["help", "trase"], b"did you mean trace"), (["--help", ""], b"no verb ''"), \
                (["trace", "-e", "kprobe:f", "-f", " "], b"needs a filter"), (["trace", "-e", "kprobe:f", "-w", ""], b"--write '': needs a file"):
            r = run(*words)
            self.assertEqual((r.returncode, r.stdout), (2, b""), words)
            self.assertIn(hint, r.stderr)

    def test_help_and_version(self):
        for words in ["--help"], ["-h"], ["help"], ["trace", "--help"], ["record", "-h"], ["replay", "--help"]:
            r = run(*words)
            self.assertEqual((r.returncode, r.stderr), (0, b""), words)
            self.assertTrue(r.stdout.startswith(b"Usage: tracefan "), words)
        self.assertRegex(run("--version").stdout, rb"^tracefan \d+\.\d+\.\d+\n$")

    def test_examples_are_of_their_own_verb(self):
        for verb in "trace", "record", "watch", "ls", "explain":
            text = run(verb, "--help").stdout.decode()
            first = re.findall(r"^  tracefan (\w+)", text, re.M)[0]
            self.assertEqual(first, verb)
        for kind in "exec", "connect", "listen", "files DIR":
            self.assertRegex(run("watch", "--help").stdout.decode(), rf"(?m)^  {kind} +\w+")
        sessions = {re.search(r"--session NAME +(.*)", run(verb, "--help").stdout.decode())[1] for verb in ("trace", "ls", "explain")}
        self.assertEqual(len(sessions), 3)

    @unittest.skipIf(os.geteuid() != 0, "needs root to become somebody else")
    def test_a_private_session_needs_root(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            program = os.path.join(folder, "tracefan")
            subprocess.run(["cp", FAKE, program], check=True)
            for words in ["trace"], ["record", "-o", "/dev/null"]:
                r = subprocess.run([program, *words, "-e", "tracepoint:a:b"], capture_output=True, user=65534, timeout=PATIENCE)
                self.assertEqual(r.returncode, 3)
                self.assertIn(b"sudo", r.stderr)


class Others(unittest.TestCase):
    def test_ls(self):
        for words, expected in ([], 3), (["sched"], 2), (["sched:*up"], 1), (["sched_*up"], 1), (["syscalls:sys_enter_open"], 1), (["*open?t"], 1):
            r = run("ls", "--session", "plain", *words)
            self.assertEqual((r.returncode, r.stderr), (0, b""))
            self.assertEqual(len(r.stdout.splitlines()), expected, words)
        self.assertEqual(run("ls", "--session", "plain", "sched").stdout, run("ls", "--session", "plain", "sched:*").stdout)
        self.assertEqual(run("ls", "--session", "plain", "syscalls:sys_enter_openat").stdout.decode(),
                         "syscalls:sys_enter_openat\n  path  char[]\n  n     int\n")
        r = run("ls", "--session", "plain", "nothing*")
        self.assertEqual((r.returncode, r.stdout), (5, b""))
        self.assertIn(b"nothing*", r.stderr)
        self.assertEqual(run("ls", "--session", "hostile").stdout, b"a:b\\x1b\n")
        self.assertEqual(run("ls", "--session", "deaf").returncode, 1)
        self.assertEqual(run("ls", "--session", "denied").returncode, 3)
        self.assertEqual(run("ls", "a", "b").returncode, 2)

    def test_explain(self):
        words = ["explain", "--session", "plain", "-e", "kprobe:f if pid == 1", "-e", "kprobe:g if comm ~ \"a*\"", "-e", "kprobe:h"]
        r = run(*words)
        self.assertEqual((r.returncode, r.stderr), (0, b""))
        self.assertEqual(r.stdout.decode().splitlines(), [
            "f", "  in the kernel:  pid == 1", "  in the router:  nothing more", "  in the kernel now, for those who trace it: no filter; explain itself traces nothing",
            "g", "  in the kernel:  nothing", "  in the router:  comm ~ \"a*\"", "  in the kernel now, for those who trace it: no filter; explain itself traces nothing",
            "h", "  no filter: every event is delivered"])
        r = run(*words, "-o", "json", "-f", "x\xff")
        self.assertEqual([(e["kind"], e["probe"], e["kernel"], e["exact"], as_bytes(e["router"]), e["pushed"]) for e in records(r.stdout)],
                         [("explanation", "f", "(pid == 1) && (x\xff)", True, "(pid == 1) && (x\xff)".encode(), None),
                          ("explanation", "g", None, False, "(comm ~ \"a*\") && (x\xff)".encode(), None),
                          ("explanation", "h", "x\xff", True, "x\xff".encode(), None)])
        self.assertEqual(run("explain", "--session", "plain").returncode, 2)
        self.assertEqual(run("explain", "--session", "deaf", "-e", "kprobe:f").returncode, 1)
        self.assertEqual(run("explain", "--session", "plain", "-e", "kprobe:nosuch").returncode, 5)

    def sessions(self, *names):
        """A directory that looks as if these were running."""
        folder = tempfile.mkdtemp(prefix="test-cli-")
        self.addCleanup(shutil.rmtree, folder)
        for name in names:
            os.mkdir(os.path.join(folder, name))
            open(os.path.join(folder, name, "consumers.sock"), "w").close()
        return folder

    def test_status(self):
        folder = self.sessions("plain", "b", "routerless")
        os.mkdir(os.path.join(folder, "no-session"))
        r = run("status", "--directory", folder, "-o", "json")
        self.assertEqual((r.returncode, r.stderr), (0, b""))
        found = [f for f in records(r.stdout) if f["kind"] == "session"]
        self.assertEqual([(s["kind"], s["session"], s["router_pid"]) for s in found],
                         [("session", "b", 12), ("session", "plain", 12), ("session", "routerless", None)])
        self.assertEqual((found[0]["buffer_size"], found[0]["subbuf_size"], found[0]["probes"]), (8388608, 4096, 5))
        self.assertEqual(found[0]["ledger"], {"committed": 0, "decoded": 0, "undecodable": 0, "lost_kernel": 0, "dropped": 0})
        self.assertEqual(found[0]["kept_away"], {"hits": None, "probes": 0, "unknown": 0})
        self.assertEqual((found[2]["ledger"], found[2]["kept_away"]), (None, None))
        text = run("status", "--directory", folder).stdout.decode()
        self.assertRegex(text, r"(?m)^plain: events of this machine, from sub-buffers\n  running for \d+ s; reader 11, router 12; probes: 5\n"
                               r"  instance tracefan-x: 2 CPUs, buffers of 8192 KiB each, sub-buffers of 4 KiB\n  ledger: 0 ")
        self.assertIn("reader 11, no router", text)
        self.assertEqual([f["kind"] for f in records(run("status", "--session", "plain", "-o", "json").stdout)],
                         ["session", "consumer", "consumer"])

    def test_status_skips_those_that_end_meanwhile(self):
        r = run("status", "--directory", self.sessions("deaf", "missing", "plain"), "-o", "json")
        self.assertEqual((r.returncode, r.stderr), (0, b""))
        self.assertEqual([f["session"] for f in records(r.stdout) if f["kind"] == "session"], ["plain"])

    def test_status_of_consumers(self):
        found = records(run("status", "--session", "plain", "-o", "json").stdout)
        self.assertEqual(found[0]["state"], "running")
        self.assertEqual(found[1], {
            "kind": "consumer", "session": "plain", "consumer": 5, "uid": 1000, "pid": 42, "program": 'agent"',
            "ring": {"size": 65536, "used": 96, "overflow": "overwrite"},
            "probes": [{"name": "sys:one", "id": 7, "enabled": True, "decoded": 6, "delivered": 3, "filtered": 2, "lost_ring": 1, "gave_up": 4},
                       {"name": "two\n", "id": 8, "enabled": False, "decoded": 0, "delivered": 0, "filtered": 0, "lost_ring": 0, "gave_up": 0}]})
        self.assertEqual((found[2]["consumer"], found[2]["ring"]["overflow"], found[2]["probes"]), (4, "drop", []))
        text = run("status", "--session", "plain").stdout.decode()
        self.assertIn('  consumer 5 (agent"): user 1000, process 42; a ring of 64 KiB that overwrites, 96 bytes of it in use\n'
                      "    sys:one: 6 decoded = 3 delivered + 2 filtered + 1 lost at the ring; expressions that gave up: 4\n", text)
        self.assertNotIn("two\n", text)
        self.assertIn("(disabled): 0 decoded", text)

    def test_status_without_a_reader(self):
        r = run("status", "--session", "readerless", "-o", "json")
        self.assertEqual((r.returncode, records(r.stdout)[0]["state"]), (4, "reader-dead"))
        text = run("status", "--session", "readerless").stdout.decode()
        self.assertNotRegex(text, "live|running,")
        self.assertIn("its reader is dead; start it again with: tracefan session start readerless", text)

    def test_status_when_there_is_less_to_tell(self):
        self.assertEqual(run("status", "--session", "missing").returncode, 4)
        self.assertEqual(run("status", "--session", "deaf").returncode, 1)
        self.assertEqual(run("status", "--session", "denied").returncode, 3)
        r = run("status", "--session", "ledgerless", "-o", "json")
        self.assertEqual((r.returncode, records(r.stdout)[0]["ledger"]), (1, None))
        r = run("status", "--directory", "/nonexistent/folder")
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, b"", b"tracefan: no session is running\n"))
        r = run("status", "--directory", "/etc/passwd")
        self.assertEqual(r.returncode, 1)

    def test_session(self):
        folder = self.sessions("b", "a")
        r = run("session", "list", "--directory", folder)
        self.assertEqual((r.returncode, r.stdout), (0, b"a\nb\n"))
        for action in "stop", "flush":
            self.assertEqual(run("session", action, "plain").returncode, 0)
            self.assertEqual(run("session", action, "deaf").returncode, 1)
            self.assertEqual(run("session", action, "denied").returncode, 3)
            self.assertEqual(run("session", action, "missing").returncode, 4)
        for words, hint in ([], b"start, stop, flush or list"), (["stop"], b"its name"), (["strat", "x"], b"did you mean start?"), \
                (["list", "x"], b"no name"), (["stop", "x", "y"], b"one at a time"), (["stop", "x", "-c", "f"], b"-c is for start"):
            r = run("session", *words)
            self.assertEqual(r.returncode, 2, words)
            self.assertIn(hint, r.stderr)

    def test_doctor(self):
        r = run("doctor", "-o", "json")
        self.assertIn(r.returncode, (0, 1, 4), r.stderr)
        found = records(r.stdout)
        self.assertEqual({f["kind"] for f in found}, {"check"})
        self.assertEqual(len({f["name"] for f in found}), len(found))
        for f in found:
            self.assertIn(f["state"], ("ok", "note", "lack"))
            self.assertTrue(f["detail"], f)
        self.assertEqual(r.returncode == 0, all(f["state"] != "lack" for f in found))
        text = run("doctor").stdout.decode()
        for f in found:
            self.assertRegex(text, rf"(?m)^{f['state']} +{f['name']} +")
        self.assertEqual(run("doctor", "extra").returncode, 2)


class Command(unittest.TestCase):
    def test_its_status(self):
        self.assertEqual(trace("plain", "--", "true").returncode, 0)
        self.assertEqual(trace("plain", "--", "sh", "-c", "exit 42").returncode, 42)
        self.assertEqual(trace("plain", "--", "sh", "-c", "kill -KILL $$").returncode, 137)

    def test_its_events_have_come_before_the_end(self):
        r = trace("burst-20000", "-o", "json", "-w", "/dev/null", "--", "true")
        self.assertEqual(r.returncode, 0)
        r = trace("burst-2000", "-o", "json", "--", "true")
        self.assertEqual(records(r.stdout)[-1]["probes"]["a:b"]["shown"], 2000)

    def test_it_does_not_start_when_a_probe_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "started")
            for session, words in ("plain", ["-e", "tracepoint:nosuch:x"]), ("deaf", []):
                self.assertNotEqual(trace(session, *words, "--", "touch", path).returncode, 0)
                self.assertFalse(os.path.exists(path))

    def test_what_cannot_be_run(self):
        r = trace("plain", "--", "/nonexistent/command")
        self.assertEqual(r.returncode, 127)
        self.assertIn(b"can't run '/nonexistent/command': No such file", r.stderr)
        r = trace("plain", "--", "/etc/passwd")
        self.assertEqual(r.returncode, 126)
        self.assertIn(b"Permission denied", r.stderr)

    def test_it_finds_the_world_as_it_was(self):
        """No descriptor of ours, the same signal mask, SIGPIPE as it was."""
        script = "ls /proc/self/fd | wc -l; grep -E '^Sig(Blk|Ign)' /proc/self/status"
        outside = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
        r = trace("plain", "-w", "/dev/null", "--", "sh", "-c", script)
        self.assertEqual(r.stdout, outside)

    def test_count_leaves_it_alone(self):
        r = trace("endless", "-n", "1", "--", "sh", "-c", "sleep 0.2; echo done; exit 5")
        self.assertEqual(r.returncode, 5)
        self.assertIn(b"done\n", r.stdout)

    def test_duration_ends_it(self):
        r = trace("plain", "-d", "0.1", "--", "sleep", "60")
        self.assertEqual(r.returncode, 128 + signal.SIGTERM)

    def test_loss_ends_it(self):
        r = trace("lossy", "--on-loss", "exit", "--", "sleep", "60")
        self.assertEqual(r.returncode, 8)

    def start(self, session, *command):
        return subprocess.Popen([FAKE, "trace", "--session", session, "-e", "tracepoint:a:b", "-w", "/dev/null", "--", *command],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)

    def test_a_signal_is_passed_on_and_its_last_events_awaited(self):
        with self.start("plain", "sh", "-c", "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.1; done") as p:
            self.assertEqual(p.stdout.readline(), b"ready\n")
            p.send_signal(signal.SIGINT)
            self.assertEqual(p.communicate(timeout=PATIENCE)[0], b"bye\n")
        self.assertEqual(p.returncode, 9)

    def test_the_terminals_signal_is_not_doubled(self):
        """^C reaches the command by itself: it gets SIGINT, once, and nothing else."""
        script = "trap 'echo got-int' INT; trap 'echo got-term' TERM; echo ready; i=0; " \
                 "while [ $i -lt 10 ]; do sleep 0.1; i=$((i+1)); done; exit 9"
        pid, master = pty.fork()
        if pid == 0:
            os.execv(FAKE, [FAKE, "trace", "--session", "plain", "-e", "tracepoint:a:b", "-w", "/dev/null", "--", "sh", "-c", script])
        shown = b""
        while b"ready" not in shown:
            shown += os.read(master, 4096)
        os.write(master, b"\x03")
        while True:
            try:
                more = os.read(master, 4096)
            except OSError:
                break
            if not more:
                break
            shown += more
        os.close(master)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.assertEqual((status, shown.count(b"got-int"), shown.count(b"got-term")), (9, 1, 0), shown)

    def test_a_second_signal_does_not_wait_for_it(self):
        with self.start("plain", "sh", "-c", "trap '' TERM; echo $$; exec sleep 60 >&-") as p:
            pid = int(p.stdout.readline())
            try:
                end_by_more_signals(p)
            finally:
                os.kill(pid, signal.SIGKILL)
        self.assertEqual(p.returncode, 128 + signal.SIGTERM)

    def test_the_session_ends_first(self):
        r = trace("error", "--", "sh", "-c", "sleep 0.2; echo done")
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"done\n", r.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
