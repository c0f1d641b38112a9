#!/usr/bin/env python3
"""The manual pages and the completion say what the program does (TRACEFAN_FAKE: the program, on a made-up libtracefan)."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

FAKE = os.environ["TRACEFAN_FAKE"]
TREE = pathlib.Path(__file__).resolve().parents[2]


def run(*words):
    return subprocess.run([FAKE, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=60)


def help_options(verb):
    """{--long: (letter or None, argument or "")} from the program's own help."""
    text = run(verb, "--help").stdout.decode()
    found = re.findall(r"^  (?:-(\w), )? *(--[a-z-]+)(?: ([^ \n]+))?", text, re.M)
    return {long: (letter or None, argument) for letter, long, argument in found}


def page(name):
    return (TREE / "docs" / "man" / name).read_text()


def page_options(text):
    """The same from a manual page's OPTIONS."""
    section = re.search(r"^\.SH OPTIONS\n(.*?)^\.SH", text, re.M | re.S)[1]
    found = {}
    for line in re.findall(r"^\\fB\\-.*", section, re.M):
        plain = re.sub(r"\\f[BIRP]", "", line).replace("\\-", "-")
        letter, long, argument = re.fullmatch(r"(?:-(\w), )?(--[a-z-]+)(?: (\S+))?", plain).groups()
        found[long] = (letter, argument or "")
    return found


class Manual(unittest.TestCase):
    def test_every_option_is_in_both(self):
        for verb in "trace", "record", "replay", "watch", "top":
            self.assertEqual(page_options(page(f"tracefan-{verb}.1")), help_options(verb), verb)

    def test_every_verb_is_in_both(self):
        in_help = re.findall(r"^  (\w+) ", run("--help").stdout.decode(), re.M)
        section = re.search(r"^\.SH VERBS\n(.*?)^\.SH", page("tracefan.1"), re.M | re.S)[1]
        in_page = re.findall(r"^\.TP\n(?:\.B |\\fB)(\w+)", section, re.M)
        self.assertEqual(list(dict.fromkeys(in_page)), [verb for verb in in_help if verb != "tracefan"])

    def test_every_exit_status_is_in_the_page(self):
        header = (TREE / "base" / "exit_status.h").read_text()
        statuses = set(re.findall(r"= (\d+),", header))
        self.assertEqual(set(re.findall(r"^\.B (\d+)$", page("tracefan.1"), re.M)), statuses)

    def test_the_way_back_to_bytes_works_as_printed(self):
        code = re.search(r"tests run these lines\.\n\.nf\n(.*?)\.fi", page("tracefan-trace.1"), re.S)[1].replace("\\-", "-")
        names = {}
        exec(code, names)
        r = run("trace", "--session", "hostile", "-e", "tracepoint:a:b", "-n", "1", "-o", "json")
        event = json.loads(r.stdout.splitlines()[0])
        self.assertEqual(names["as_bytes"](event["args"]["path"]), bytes(range(1, 256)))

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_the_pages_have_no_mistakes(self):
        pages = sorted((TREE / "docs" / "man").glob("tracefan*.1"))
        self.assertGreaterEqual(len(pages), 4)
        for name in pages:
            r = subprocess.run(["groff", "-man", "-ww", "-Tutf8", name], capture_output=True, timeout=60)
            self.assertEqual((r.returncode, r.stderr), (0, b""), name)


@unittest.skipUnless(shutil.which("bash"), "bash is not installed")
class Completion(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.symlink(FAKE, os.path.join(self.folder.name, "tracefan"))

    def complete(self, line, breaks=" \t\n\"'><=;|&(:"):
        script = f"""
            compopt() {{ :; }}
            source "$1"
            COMP_WORDBREAKS=$3
            COMP_LINE=$2 COMP_POINT=${{#COMP_LINE}}
            _tracefan
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        r = subprocess.run(["bash", "-c", script, "bash", TREE / "packaging" / "completion" / "tracefan", line, breaks],
                           capture_output=True, text=True, cwd=self.folder.name, timeout=60,
                           env={**os.environ, "PATH": f"{self.folder.name}:{os.environ['PATH']}"})
        self.assertEqual((r.returncode, r.stderr), (0, ""), line)
        return {word for word in r.stdout.splitlines() if word}

    def test_verbs(self):
        in_help = set(re.findall(r"^  (\w+) ", run("--help").stdout.decode(), re.M)) - {"tracefan"}
        self.assertEqual(self.complete("tracefan "), in_help | {"--help", "--version"})
        self.assertEqual(self.complete("tracefan rec"), {"record"})

    def test_options_are_those_of_the_verb(self):
        for verb in "trace", "record", "replay", "watch", "top", "ls", "explain", "status", "session", "doctor":
            options = help_options(verb)
            letters = {f"-{letter}" for letter, _ in options.values() if letter}
            self.assertEqual(self.complete(f"tracefan {verb} -"), set(options) | letters, verb)
        self.assertEqual(self.complete("tracefan trace --on"), {"--on-loss"})

    def test_sessions(self):
        self.assertEqual(self.complete("tracefan session "), {"start", "stop", "flush", "list"})

    def test_what_is_watched(self):
        self.assertEqual(self.complete("tracefan watch "), {"exec", "connect", "listen", "files"})
        os.mkdir(pathlib.Path(self.folder.name, "x.dir"))
        self.assertEqual(self.complete("tracefan watch files x"), {"x.dir"})

    def test_values(self):
        self.assertEqual(self.complete("tracefan trace -o "), {"text", "json"})
        self.assertEqual(self.complete("tracefan trace --overflow d"), {"drop"})
        self.assertEqual(self.complete("tracefan trace --on-loss "), {"report", "exit"})
        self.assertEqual(self.complete("tracefan trace -s r"), {"raw"})
        self.assertEqual(self.complete("tracefan trace -n "), set())

    def test_files_where_files_belong(self):
        pathlib.Path(self.folder.name, "x.rec").touch()
        os.mkdir(pathlib.Path(self.folder.name, "x.dir"))
        self.assertEqual(self.complete("tracefan replay x"), {"x.rec", "x.dir"})
        self.assertEqual(self.complete("tracefan replay --pages x"), {"x.dir"})
        self.assertEqual(self.complete("tracefan record -o x"), {"x.rec", "x.dir"})
        self.assertEqual(self.complete("tracefan trace -w x.r"), {"x.rec"})

    def test_probes(self):
        self.assertEqual(self.complete("tracefan trace -e up"), {"uprobe:"})
        self.assertEqual(self.complete("tracefan trace -e k"), {"kprobe:", "kretprobe:"})

    @unittest.skipUnless(os.access("/sys/kernel/tracing/available_events", os.R_OK), "the list of events can't be read")
    def test_events(self):
        self.assertEqual(self.complete("tracefan trace -e tracepoint:sched:sched_process_ex"),
                         {"sched_process_exec", "sched_process_exit"})
        self.assertEqual(self.complete("tracefan trace -e tracepoint:sched:sched_process_ex", breaks=" "),
                         {"tracepoint:sched:sched_process_exec", "tracepoint:sched:sched_process_exit"})

    def test_the_command_after_two_dashes(self):
        self.assertIn("true", self.complete("tracefan trace -e tracepoint:a:b -- tru"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
