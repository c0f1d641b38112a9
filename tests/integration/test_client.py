#!/usr/bin/env python3
"""libtracefan's places and arguments on the running kernel: what it finds in a program's file is what the kernel
hits, and what it fetches is what the program passed."""
import contextlib
import hashlib
import os
import pathlib
import shutil
import socket
import subprocess
import unittest

import harness

COMPILED = harness.BUILD / "compiled"
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "consumers" / "elf_sources"

CALLER = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline, noclone)) long target(int a, const char *b, long c, unsigned char d, short e, unsigned f)
{
	__asm__ volatile("" : : "r"(b) : "memory");
	return a + c + d + e + f;
}
int main(int argc, char **argv)
{
	long sum = 0;
	for (int i = 0; i < atoi(argv[1]); i++)
		sum += target(-i, argv[1], 1L << 40, 200, -300, 4000000000U);
	return sum == 1;
}
"""


def compiler():
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return name
    raise unittest.SkipTest("no C compiler here")


class Client(harness.TestCase):
    def setUp(self):
        harness.require_file("uprobe_events", "uprobes")
        super().setUp()

    def compile(self, name, source, *flags, libraries=()):
        """Compiles a source text or one of the files that the unit tests use. What was compiled is kept in the build folder,
        for guests, where there is no compiler."""
        target = pathlib.Path(self.folder) / name
        text = source if isinstance(source, str) else source.read_text()
        words = ["-O2", *flags, *(f"{library}" if str(library).startswith("-") else library.name for library in libraries)]
        kept = COMPILED / hashlib.sha256("\0".join([text, *words]).encode()).hexdigest()[:16]
        if harness.in_guest() and kept.exists():
            shutil.copy2(kept, target)
            return target
        path = target.with_suffix(".c")
        path.write_text(text)
        r = subprocess.run([compiler(), "-O2", *flags, "-o", target, path, *libraries], capture_output=True, text=True)
        if r.returncode and "sys/sdt.h" in r.stderr:
            self.skipTest("sys/sdt.h isn't installed (package systemtap-sdt-dev)")
        self.assertEqual(r.returncode, 0, r.stderr)
        COMPILED.mkdir(exist_ok=True)
        shutil.copy2(target, kept)
        return target

    def trace(self, probes, *command):
        words = [w for p in probes for w in ("-e", p)]
        result = harness.trace(*words, "-o", "json", "--", *command)
        self.check_ended(result)
        self.check_no_loss(result)
        return result


class Places(Client):
    def test_programs_of_each_kind(self):
        """Position-independent or not, static, stripped by offset: the probe is hit once per call."""
        for name, flags in {"pie": ["-fPIE", "-pie"], "fixed": ["-fno-PIE", "-no-pie"],
                            "static": ["-static"], "packed": ["-Wl,-z,noseparate-code"]}.items():
            with self.subTest(kind=name):
                program = self.compile(name, CALLER, *flags)
                result = self.trace([f"uprobe:{program}:target n=$arg1:s32"], program, "5")
                self.assertEqual([e["args"]["n"] for e in result.of("target")], [0, -1, -2, -3, -4])

    def test_a_stripped_program_by_its_offset(self):
        program = self.compile("plain", CALLER, "-fno-PIE", "-no-pie")
        address = next(int(line.split()[0], 16) for line in subprocess.run(
            ["nm", program], check=True, capture_output=True, text=True).stdout.splitlines() if line.endswith(" target"))
        subprocess.run(["strip", program], check=True)
        wrong = harness.trace("-e", f"uprobe:{program}:{address:#x}", "--", "true")
        self.assertEqual(wrong.status, 5, wrong.err)
        # The address is told apart from an offset, and the offset that was meant is named.
        offset = wrong.err.partition("that is 0x")[2].split()[0]
        result = self.trace([f"t=uprobe:{program}:0x{offset}"], program, "3")
        self.assertEqual(len(result.of("t")), 3)

    def test_a_path_with_everything_in_it(self):
        program = self.compile("caller", CALLER)
        odd = pathlib.Path(self.folder) / "a b:c\"d'e\\f"
        shutil.copy2(program, odd)
        link = pathlib.Path(self.folder) / "link"
        link.symlink_to(odd)
        quoted = str(odd).replace("\\", "\\\\").replace('"', '\\"')
        for place in (f'"{quoted}"', str(link), f"/proc/self/root{link}"):
            with self.subTest(place=place):
                result = self.trace([f"t=uprobe:{place}:target"], odd, "2")
                self.assertEqual(len(result.of("t")), 2)

    def test_versions_of_a_symbol(self):
        flags = ["-fPIC", "-shared", "-Wl,-soname,libversions.so", f"-Wl,--version-script={SOURCES / 'library.map'}"]
        library = self.compile("libversions.so", SOURCES / "library.c", *flags)
        user = self.compile("user", "int versioned(int); int main(void) { return versioned(1) == 0; }",
                            libraries=[library, "-Wl,-rpath,$ORIGIN"])
        result = self.trace([f"new=uprobe:{library}:versioned", f"old=uprobe:{library}:versioned@LIB_1"], user)
        self.assertEqual((len(result.of("new")), len(result.of("old"))), (1, 0))


class Arguments(Client):
    def test_arguments_of_a_function(self):
        program = self.compile("caller", CALLER)
        probe = (f"f=uprobe:{program}:target a=$arg1:s32 b=+0($arg2):string c=$arg3:u64 d=$arg4:u8 e=$arg5:s16 "
                 "f=$arg6:u32 who=$comm")
        result = self.trace([probe, f"r=uretprobe:{program}:target r=$retval:s64"], program, "2")
        expected = {"a": -1, "b": "2", "c": 1 << 40, "d": 200, "e": -300, "f": 4000000000, "who": "caller"}
        args = result.of("f")[1]["args"]
        self.assertEqual({k: args[k] for k in expected}, expected)
        self.assertEqual([e["args"]["r"] for e in result.of("r")],
                         [-i + (1 << 40) + 200 - 300 + 4000000000 for i in range(2)])

    def test_a_static_probe_at_two_places(self):
        program = self.compile("statics", SOURCES / "statics.c")
        result = self.trace([f"usdt:{program}:demo:twice", f"t=usdt:{program}:demo:twice n=$arg1 s=+0($arg2):string",
                             f"usdt:{program}:demo:plain"], program, "x", "y")
        self.assertEqual([e["args"]["arg1"] for e in result.of("demo:twice")], [3, 3])
        self.assertEqual([(e["args"]["n"], e["args"]["s"]) for e in result.of("t")], [(3, str(program))] * 2)
        # Its argument is a global variable, which the first function has counted up.
        self.assertEqual([e["args"]["arg1"] for e in result.of("demo:plain")], [1])

    def test_a_static_probe_behind_a_semaphore(self):
        program = self.compile("guarded", SOURCES / "guarded.c")
        result = self.trace([f"usdt:{program}:demo:guarded"], program, "x")
        self.assertEqual([e["args"]["arg1"] for e in result.of("demo:guarded")], [2])


READLINE = r"""
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) char *readline(const char *prompt)
{
	return strdup(prompt);
}
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		readline(argv[i]);
	return 0;
}
"""


class Example:
    """An example program under way: its output as it comes."""

    def __init__(self, session, name, *words):
        self.process = subprocess.Popen([harness.program(f"example-{name}"), *words, session.name],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        harness.Process.alive[self.process.pid] = self
        said = self.process.stderr.readline()
        if "tracing" not in said:
            raise AssertionError(f"example-{name}: {said}")

    def lines(self, count):
        return [self.process.stdout.readline().strip() for _ in range(count)]

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=None):
        harness.Process.alive.pop(self.process.pid, None)
        self.out, _ = self.process.communicate(timeout=timeout or harness.PATIENCE)
        return self.process.returncode

    def end(self):
        self.process.terminate()
        return self.wait()


class Examples(Client):
    """The example programs are ordinary users of a session."""

    def start(self, name, *words):
        if not hasattr(self, "session"):
            self.session = harness.Session(self.folder)
            self.addCleanup(self.session.stop)
        return Example(self.session, name, *words)

    def test_tracepoint(self):
        program = self.compile("started", "int main(void) { return 0; }")
        example = self.start("tracepoint")
        subprocess.run([program], check=True)
        # Others start programs on this machine, too.
        line = next(l for l in iter(lambda: example.lines(1)[0], None) if str(program) in l)
        self.assertRegex(line, rf"^\d+ started {program}$")
        self.assertEqual(example.end(), -15)

    def test_uprobe(self):
        program = self.compile("opener", "#include <stdlib.h>\n__attribute__((noinline)) int take(const char *s, int n)"
                               '{ __asm__ volatile("" : : "r"(s), "r"(n) : "memory"); return 0; }\n'
                               "int main(int argc, char **argv) { return take(argv[1], atoi(argv[2])); }")
        example = self.start("uprobe", program, "take")
        pid = subprocess.Popen([program, 'a "b" c', "-7"])
        self.assertEqual(pid.wait(), 0)
        self.assertEqual(example.lines(1), [f'{pid.pid} opener: "a "b" c", -7'])
        example.end()

    def test_uretprobe(self):
        program = self.compile("shell", READLINE)
        example = self.start("uretprobe", program)
        pid = subprocess.Popen([program, "ls -l", "", "exit"])
        self.assertEqual(pid.wait(), 0)
        # The empty line is left out.
        self.assertEqual(example.lines(2), [f"{pid.pid}: ls -l", f"{pid.pid}: exit"])
        example.end()

    def test_usdt(self):
        program = self.compile("statics", SOURCES / "statics.c")
        example = self.start("usdt", program, "demo:twice")
        pid = subprocess.Popen([program, "x"])
        self.assertEqual(pid.wait(), 0)
        for line in example.lines(2):
            self.assertRegex(line, rf"^\d+ {pid.pid} demo:twice .*arg1=2 arg2=0x[0-9a-f]+$")
        example.end()

    def test_kprobe(self):
        harness.require_file("kprobe_events", "kprobes")
        example = self.start("kprobe")
        path = pathlib.Path(self.folder) / "written"
        path.write_text("x")
        line = next(l for l in iter(lambda: example.lines(1)[0], None) if str(path) in l)
        self.assertRegex(line, rf": {path} \(at 0x[0-9a-f]+\), flags 0\d+$")
        example.end()

    def test_kretprobe(self):
        harness.require_file("kprobe_events", "kprobes")
        example = self.start("kretprobe", "1")
        self.assertEqual(example.wait(), 0)
        self.assertRegex(example.out, r"\d+ decoded, \d+ delivered, 0 lost, \d+ missed by the probe")

    def test_connect(self):
        """The address that was connected to, of TCP by IPv4 and IPv6, with how it went; not a local socket's."""
        harness.require_file("kprobe_events", "kprobes")
        example = self.start("connect")
        me = f"{os.getpid()} {pathlib.Path('/proc/self/comm').read_text().strip()}"
        harness.up_loopback()
        expected = []
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with contextlib.suppress(OSError), socket.socket(family) as listener:
                listener.bind((host, 0))
                port = listener.getsockname()[1]
                shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                # Bound and not listening: refused. Then listening.
                with socket.socket(family) as s:
                    self.assertRaises(ConnectionRefusedError, s.connect, (host, port))
                    expected.append(f"{me}: descriptor {s.fileno()} to {shown}: Connection refused")
                listener.listen()
                with socket.socket(family) as s:
                    s.connect((host, port))
                    expected.append(f"{me}: descriptor {s.fileno()} to {shown}: connected")
        with socket.socket(socket.AF_UNIX) as s:
            self.assertRaises(OSError, s.connect, f"{self.folder}/nobody")
        self.assertGreaterEqual(len(expected), 2)
        self.assertEqual(example.lines(len(expected)), expected)
        example.end()
        self.assertEqual(example.out, "")


class Returns(Client):
    """A router is killed under a consumer; another takes its place."""

    def test_each_event_comes_once(self):
        program = self.compile("caller", CALLER)
        session = harness.Session(self.folder)
        self.addCleanup(session.stop)
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        consumer = session.trace("-e", f"t=uprobe:{program}:target n=$arg1:s32", "-o", "json", uid=0, gate=gate)
        gate.wait(consumer)
        subprocess.run([program, "500"], check=True)
        session.router.kill()
        # The reader goes on, so what happens meanwhile is not lost.
        subprocess.run([program, "500"], check=True)
        session.router = session._start("router")
        subprocess.run([program, "500"], check=True)
        gate.open()
        result = consumer.wait()
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual([e["args"]["n"] for e in result.of("t")], [-i for i in range(500)] * 3)
        self.check_order(result.events)
        gaps = [r for r in result.records if r["kind"] == "gap"]
        self.assertEqual([g["count"] for g in gaps], [0])


class Missing(Client):
    def test_each_says_what_is_missing(self):
        for name, words in {"tracepoint": [], "uprobe": ["/bin/sh", "main"], "uretprobe": ["/bin/sh"], "kprobe": [],
                            "kretprobe": ["1"], "usdt": ["/bin/sh", "a:b"], "connect": []}.items():
            with self.subTest(example=name):
                result = harness.run([harness.program(f"example-{name}"), *words, "no-such-session"])
                self.assertEqual(result.status, 1)
                self.assertIn("there is no session", result.err)


if __name__ == "__main__":
    harness.main()
