#!/usr/bin/env python3
"""Stacks of a program whose frames are known: every frame named, in text and JSON, for a tracepoint and a uprobe."""
import os
import pathlib
import re
import shutil
import subprocess

import harness

COUNT = 5
CALL = "tracepoint:syscalls:sys_enter_getppid"


def setUpModule():
    harness.require_event("syscalls", "sys_enter_getppid")
    harness.require_file("uprobe_events", "uprobes")


class Stacks(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.program = harness.program("workload_frames")

    def trace(self, *words, count=COUNT, uid=None, groups=(), tracefan=None):
        """Traces the program, which stays until its events have been told: its mappings are read then."""
        out = pathlib.Path(self.folder, "out")
        out.unlink(missing_ok=True)
        read, write = os.pipe()
        more = harness.as_user(uid, *groups) if uid is not None else {}
        process = harness.Process([tracefan or harness.program("tracefan"), "trace", *words, "-w", out, "--", self.program, count],
                                  stdin=read, **more)
        os.close(read)
        try:
            wanted = count * sum(word == "-e" for word in words)
            self.wait_for(process, lambda: self.seen(out) >= wanted)
        finally:
            os.close(write)
        self.check_ended(process.wait())
        return out.read_text()

    def wait_for(self, process, holds):
        deadline = harness.time.monotonic() + harness.PATIENCE
        while not holds():
            self.assertTrue(process.running(), process.err)
            self.assertLess(harness.time.monotonic(), deadline, process.out)
            harness.time.sleep(0.02)

    @staticmethod
    def seen(out):
        return len(re.findall(r'"comm":"workload_frames"|^\S+ \d+ \d+ workload_frames ', out.read_text(), re.M)) if out.exists() else 0

    def events(self, out, count=COUNT):
        """All of them, with all their stacks: but an emulated processor may stand still between the two for longer than
        they are waited for."""
        events = [r for r in harness.read_records(out) if r["kind"] == "event" and r["comm"] == "workload_frames"]
        self.assertEqual(len(events), count)
        whole = [e for e in events if e.get("stack", ()) is not None and e.get("ustack", ()) is not None]
        if "TRACEFAN_GUEST" in os.environ:
            self.assertTrue(whole)
        else:
            self.assertEqual(len(whole), count)
        return whole

    def names(self, stack):
        """The frames of the program itself, each of which must have a name."""
        own = [frame for frame in stack if frame["file"] == self.program]
        self.assertEqual(own, stack[:len(own)])
        for frame in own:
            self.assertRegex(frame["build_id"], "^[0-9a-f]{40}$")
            self.assertLess(frame["offset"], 0x200)
        return [frame["symbol"] for frame in own]

    def test_a_tracepoint(self):
        events = self.events(self.trace("-o", "json", "-e", f"{CALL} stack ustack"))
        for event in events:
            self.assertEqual(self.names(event["ustack"]), ["workload_inner", "workload_middle", "workload_outer", "main"])
            names = [frame["symbol"] for frame in event["stack"]]
            self.assertNotIn(None, names)
            self.assertIn("do_syscall_64" if os.uname().machine == "x86_64" else "do_el0_svc", names)
        # Frames and symbols as nm(1) has them.
        table = subprocess.run(["nm", self.program], check=True, capture_output=True, text=True).stdout
        places = {name: int(address, 16) for address, _, name in (line.split() for line in table.splitlines() if len(line.split()) == 3)}
        frames = events[0]["ustack"][:4]
        self.assertEqual({frame["address"] - frame["offset"] - places[frame["symbol"]] for frame in frames},
                         {frames[0]["address"] - frames[0]["offset"] - places["workload_inner"]})

    def test_a_uprobe(self):
        """At its first instruction a function has no frame yet, so that its caller is not among the frames; behind
        them it is."""
        events = self.events(self.trace("-o", "json", "-e", f"entry=uprobe:{self.program}:workload_inner n=$arg1:s64 ustack"))
        self.assertLessEqual({e["args"]["n"] for e in events}, {i + 2 for i in range(COUNT)})
        for event in events:
            self.assertEqual(self.names(event["ustack"]), ["workload_inner", "workload_outer", "main"])
            self.assertNotIn("stack", event)
        if not shutil.which("objdump"):
            return
        table = subprocess.run(["objdump", "-d", "--no-show-raw-insn", self.program], check=True, capture_output=True, text=True)
        body = re.search(r"<workload_inner>:\n(.*?)\n\n", table.stdout + "\n\n", re.S)
        place = re.search(r"^ *([0-9a-f]+):\s+mov +%rsp,%rbp\n *([0-9a-f]+):", body[1], re.M) if body else None
        if not place:
            self.skipTest("no objdump, or another architecture's code")
        offset = int(place[2], 16) - int(re.search(r"^ *([0-9a-f]+):", body[1], re.M)[1], 16)
        events = self.events(self.trace("-o", "json", "-e", f"inside=uprobe:{self.program}:workload_inner+{offset} ustack"))
        for event in events:
            self.assertEqual(self.names(event["ustack"]), ["workload_inner", "workload_middle", "workload_outer", "main"])

    def test_text(self):
        out = self.trace("-e", f"{CALL} stack ustack", "-e", f"p=uprobe:{self.program}:workload_middle ustack")
        blocks = re.findall(r"^\S+ \d+ \d+ workload_frames (\S+).*\n((?: => .*\n)*)", out, re.M)
        self.assertEqual(len(blocks), 2 * COUNT)
        if "TRACEFAN_GUEST" in os.environ:
            blocks = [block for block in blocks if self.program in block[1]]
            self.assertTrue(blocks)
        for probe, lines in blocks:
            own = re.findall(rf" => (\w+)\+0x[0-9a-f]+ \({re.escape(self.program)}\)", lines)
            inner = ["workload_inner"] if probe != "p" else []
            self.assertEqual(own, [*inner, "workload_middle", *(["workload_outer"] if inner else []), "main"])
            if "TRACEFAN_GUEST" not in os.environ:
                self.assertEqual("entry_SYSCALL_64" in lines or "el0_svc" in lines, probe != "p")

    def test_many_across_sub_buffers(self):
        """Stacks that lie in another sub-buffer than their event are with it all the same, and each with its own."""
        count = harness.scaled(20000)
        events = self.events(self.trace("-o", "json", "--ring", "256M", "-e", f"{CALL} stack ustack", count=count), count)
        self.assertEqual({tuple(f["address"] for f in e["ustack"][:4]) for e in events},
                         {tuple(f["address"] for f in events[0]["ustack"][:4])})
        self.assertEqual([], [e for e in events if not e["stack"]])
        self.check_order(events)

    def test_who_may_see_addresses(self):
        session = harness.Session(self.folder)
        for stack, said in ("stack", "root's alone"), ("ustack", "scope=own"):
            result = session.trace("-e", f"{CALL} {stack}", "-n", 1).wait()
            self.assertEqual(result.status, 3, result.err)
            self.assertIn(said, result.err)
        # Others pay for the stacks that root wants, and see none.
        gate = harness.Gate(self.folder)
        other = session.trace("-o", "json", "-e", CALL, gate=gate)
        gate.wait(other)
        self.trace("--session", session.name, "-o", "json", "-e", f"{CALL} stack ustack", count=COUNT)
        gate.open()
        result = other.wait()
        gate.close()
        self.check_ended(result)
        events = [e for e in result.events if e["comm"] == "workload_frames"]
        self.assertEqual(len(events), COUNT)
        self.assertEqual([], [e for e in events if "stack" in e or "ustack" in e])
        self.assertEqual([(session.instance / "options" / name).read_text().strip() for name in ("stacktrace", "userstacktrace")],
                         ["0", "0"])
        self.assertEqual(session.stop(), (0, 0))

    def test_no_stacks_in_text(self):
        result = harness.trace("-s", "text", "-e", f"{CALL} stack", "--", "true")
        self.assertEqual(result.status, 4, result.err)
        self.assertIn("stacks come with events from the binary files only", result.err)


if __name__ == "__main__":
    harness.main()
