#!/usr/bin/env python3
"""tracefan watch exec against programs whose every argument and end is known."""
import os
import pathlib
import signal
import sys
import time

import harness

# Blanks, newlines, quotes, nothing at all, and bytes that are not UTF-8.
ODD = [b"a b", b"two\nlines", b"", b"quote\"'\\", b"\xff\xfe\x80", "\u00e4\u20ac".encode(), b"-n"]


def setUpModule():
    harness.require_event("sched", "sched_process_exec")
    harness.require_event("syscalls", "sys_enter_exit_group")


class Exec(harness.TestCase):
    def watch(self, *command, status=0, source="raw"):
        result = harness.run([harness.program("tracefan"), "watch", "exec", "-s", source, "-o", "json",
                              "-w", f"{self.folder}/out", "--", *command])
        self.check_ended(result, status)
        records = harness.read_records(pathlib.Path(self.folder, "out").read_text())
        self.assertEqual(records[-1]["kind"], "summary")
        self.assertEqual(records[-1]["session"]["lost_kernel"], 0)
        return records[:-1]

    def script(self, *lines):
        """Runs a Python program, and tells the records of its processes: itself and its children."""
        path = pathlib.Path(self.folder, "script.py")
        path.write_text("import os, signal, sys, threading, time, ctypes\n"
                        "def run(path, args, before=lambda: None, execute=os.execv):\n"
                        "    pid = os.fork()\n"
                        "    if pid == 0:\n"
                        "        before()\n"
                        "        try:\n"
                        "            execute(path, args)\n"
                        "        finally:\n"
                        "            os._exit(99)\n"
                        "    print(pid, flush=True)\n"
                        "    os.waitpid(pid, 0)\n" + "\n".join(lines) + "\n")
        out = pathlib.Path(self.folder, "pids")
        records = self.watch("sh", "-c", f'exec "$1" "$2" > "{out}"', "sh", sys.executable, path)
        pids = [int(line) for line in out.read_text().split()]
        self.assertTrue(pids)
        return [[r for r in records if r["pid"] == pid or r.get("process") == pid] for pid in pids]

    def check(self, records, file, args, **end):
        """One exec and one exit of a process."""
        self.assertEqual([r["kind"] for r in records], ["exec", "exit"], records)
        started, ended = records
        self.assertEqual(started["file"], file)
        self.assertEqual([harness.as_bytes(a) for a in started["args"]], args)
        self.assertFalse(started["args_cut"])
        self.assertEqual(ended["file"], file)
        self.assertEqual({k: ended[k] for k in ("code", "signal")}, {"code": None, "signal": None} | end)
        self.assertGreater(ended["ran_ns"], 0)
        if (harness.TRACEFS / "kprobe_events").exists():
            self.assertEqual(ended["by"], "do_exit")
        else:
            self.assertIn(ended["by"], ("exit_group", "signal_deliver"))
        return started, ended

    def test_arguments_of_any_bytes(self):
        (records,) = self.script(f"run('/bin/true', [b'true'] + {ODD!r})")
        started, _ = self.check(records, "/bin/true", [b"true", *ODD], code=0)
        self.assertEqual(started["args_by"], "call")

    def test_ends(self):
        codes = self.script("for code in 0, 1, 7, 255:",
                            "    run('/bin/sh', ['sh', '-c', f'exit {code}'])",
                            "for number in signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1:",
                            "    run('/bin/sh', ['sh', '-c', f'kill -{number:d} $$'])",
                            "# Neither an ignored signal nor a handled one is an end.",
                            "run('/bin/sh', ['sh', '-c', 'trap : USR1; kill -USR1 $$; kill -CHLD $$; exit 3'])")
        for records, code in zip(codes, (0, 1, 7, 255)):
            self.check(records, "/bin/sh", [b"sh", b"-c", f"exit {code}".encode()], code=code)
        for records, number in zip(codes[4:], (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1)):
            self.check(records, "/bin/sh", [b"sh", b"-c", f"kill -{number:d} $$".encode()], signal=number)
        self.check(codes[7], "/bin/sh", [b"sh", b"-c", b"trap : USR1; kill -USR1 $$; kill -CHLD $$; exit 3"], code=3)

    def test_more_arguments_than_a_probe_fetches(self):
        """The kernel's copy has them all, as long as the process is there; each waits for its end at a pipe."""
        many = [str(i).encode() for i in range(300)]
        go = pathlib.Path(self.folder, "go")
        os.mkfifo(go)
        process = harness.Process([harness.program("tracefan"), "watch", "exec", "-o", "json", "-w", f"{self.folder}/out",
                                   "--", "sh", "-c", f'read -r line < "{go}"', *map(os.fsdecode, many)])
        out = pathlib.Path(self.folder, "out")
        # Opening it waits for the script.
        with open(go, "w") as file:
            while not (out.exists() and str(go) in out.read_text()):
                self.assertTrue(process.running(), process.err)
                time.sleep(0.02)
            file.write("\n")
        self.check_ended(process.wait())
        started, = (r for r in harness.read_records(out.read_text()) if r["kind"] == "exec" and str(go) in str(r["args"]))
        self.assertEqual([a.encode() for a in started["args"]][3:], many)
        self.assertEqual((started["args_by"], started["args_cut"]), ("cmdline", False))

    def test_a_script_and_its_interpreter(self):
        path = pathlib.Path(self.folder, "a script")
        path.write_text("#!/bin/sh\nexit 4\n")
        path.chmod(0o755)
        (records,) = self.script(f"run({str(path)!r}, ['called', 'x y'])")
        self.check(records, str(path), [b"called", b"x y"], code=4)

    def test_a_search_in_the_path(self):
        """Each try is a call; the one that worked is told, and the others not as its arguments."""
        (records,) = self.script("os.environ['PATH'] = '/nonexistent:/usr/bin:/bin'",
                                 "run('true', ['zero', 'one'], execute=os.execvp)")
        self.assertEqual([r["kind"] for r in records], ["exec", "exit"])
        self.assertEqual(records[0]["args"], ["zero", "one"])

    def test_a_program_by_its_descriptor(self):
        (records,) = self.script("fd = os.open('/bin/true', os.O_RDONLY)",
                                 "run(fd, ['by', 'descriptor'], execute=lambda fd, args: os.execve(fd, args, {}))")
        self.assertEqual([r["kind"] for r in records], ["exec", "exit"])
        self.assertEqual(records[0]["args"], ["by", "descriptor"])
        self.assertEqual(records[1]["code"], 0)

    def test_threads(self):
        """A process ends with its last thread; a thread that executes a program becomes its process."""
        first, second = self.script(
            f"run({sys.executable!r}, ['py', '-c', 'import os, threading; threading.Thread(target=lambda: os._exit(5)).start(); "
            "threading.Event().wait()'])",
            f"run({sys.executable!r}, ['py', '-c', 'import os, threading; threading.Thread(target=lambda: os.execv(\"/bin/false\", "
            "[\"false\", \"by thread\"])).start(); threading.Event().wait()'])")
        self.assertEqual([r["kind"] for r in first], ["exec", "exit"])
        self.assertEqual(first[1]["code"], 5)
        self.assertEqual([r["kind"] for r in second], ["exec", "exec", "exit"])
        self.assertEqual((second[1]["args"], second[2]["code"], second[2]["file"]), (["false", "by thread"], 1, "/bin/false"))

    def test_text(self):
        result = harness.run([harness.program("tracefan"), "watch", "exec", "-s", "text", "-w", f"{self.folder}/out",
                              "--", "sh", "-c", "exit 3", self.folder])
        self.check_ended(result, 3)
        lines = pathlib.Path(self.folder, "out").read_text().splitlines()
        started, = (line for line in lines if self.folder in line)
        self.assertRegex(started, rf' exec file=\S*/sh args=\[sh -c "exit 3" {self.folder}\] args_by=call$')
        pid = started.split()[2]
        ended, = (line for line in lines if f" exit process={pid} " in line)
        self.assertRegex(ended, r" file=\S*/sh code=3 by=\w+ ran_ns=\d+$")

    def test_wrong_use(self):
        for words, said in {("exek",): "did you mean exec", (): "what shall be watched", ("exec", "/etc"): "only files"}.items():
            result = harness.run([harness.program("tracefan"), "watch", *words])
            self.assertEqual(result.status, 2)
            self.assertIn(said, result.err)


if __name__ == "__main__":
    harness.main()
