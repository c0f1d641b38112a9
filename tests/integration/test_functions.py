#!/usr/bin/env python3
"""FIELD.function: the kernel's functions in filters, against what the kernel's own filters take of the same calls."""
import bisect
import collections
import os
import re
import subprocess

import harness

SYSTEM, EVENT = "kmem", "kmem_cache_alloc"
PLACE = f"tracepoint:{SYSTEM}:{EVENT}"
OPENS = 'i=0; while [ $i -lt 50 ]; do : < "$0"; i=$((i+1)); done'


def functions():
    """The kernel's symbols by their names, and in order, as root sees them."""
    rows = []
    with open("/proc/kallsyms") as table:
        for line in table:
            address, kind, name = line.split()[:3]
            if kind not in "aA" and int(address, 16):
                rows.append((int(address, 16), name))
    return sorted(rows)


def setUpModule():
    harness.require_event(SYSTEM, EVENT)


class Workload:
    """A shell that opens a file again and again once it is let go; its pid is known before, and until then it does nothing."""

    def __init__(self):
        self.process = subprocess.Popen(["sh", "-c", f"echo ready; read -r line; {OPENS}", __file__],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == b"ready\n"

    def go(self):
        self.process.stdin.write(b"go\n")
        self.process.stdin.close()
        assert self.process.wait() == 0

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Witness:
    """An instance of tracefs with the kernel's own filter. Kernels before 6.5 take numbers only."""

    def __init__(self, name, pid, text, numbers):
        self.path = harness.TRACEFS / "instances" / f"test-functions-{os.getpid()}-{name}"
        self.path.mkdir()
        event = self.path / "events" / SYSTEM / EVENT
        try:
            (event / "filter").write_text(f"common_pid == {pid} && {text}")
        except OSError:
            (event / "filter").write_text(f"common_pid == {pid} && {numbers}")
        (event / "enable").write_text("1")

    def offsets(self):
        """Where in its function each call was."""
        return [int(at, 16) for at in re.findall(r"call_site=[^ +]+\+0x([0-9a-f]+)/", (self.path / "trace").read_text())]

    def close(self):
        (self.path / "events/enable").write_text("0")
        self.path.rmdir()


class Functions(harness.TestCase):
    def callers(self):
        """The function that calls most often in the workload, and the places of all calls."""
        if not self.found:
            Functions.found = self.find()
        return self.found

    found = ()

    def find(self):
        rows = functions()
        if not rows:
            self.skipTest("the kernel's addresses are not shown, even to root")
        starts = sorted({address for address, _ in rows})
        workload, gate = Workload(), harness.Gate(self.folder, "find")
        self.addCleanup(workload.end)
        self.addCleanup(gate.close)
        tracer = harness.Process([harness.program("tracefan"), "trace", "-e", f"{PLACE} if tid == {workload.pid}", "-o", "json",
                                  "--", *gate.words])
        gate.wait(tracer)
        workload.go()
        gate.open()
        result = tracer.wait()
        self.check_ended(result)
        sites = collections.Counter(e["args"]["call_site"] for e in result.events)
        names, calls = collections.Counter(name for _, name in rows), collections.Counter()
        for site, count in sites.items():
            calls[starts[bisect.bisect(starts, site) - 1]] += count
        # One that has a name to itself.
        called = {address: name for address, name in rows if address in calls and names[name] == 1}
        start = max(called, key=calls.get)
        return called[start], start, starts[bisect.bisect(starts, start)], sites

    def test_as_the_kernel_takes_them(self):
        name, start, end, sites = self.callers()
        self.assertTrue([s for s in sites if not start <= s < end], "one function alone would show nothing")
        workload = Workload()
        self.addCleanup(workload.end)
        tests = {"equal": f"call_site.function == {name}", "inside": f"call_site.function == {start + 1:#x}",
                 "other": f"call_site.function != {name}"}
        inside, outside = f"call_site >= {start} && call_site < {end}", f"(call_site < {start} || call_site >= {end})"
        witnesses = {}
        for key, text in tests.items():
            witnesses[key] = Witness(key, workload.pid, text, outside if key == "other" else inside)
            self.addCleanup(witnesses[key].close)
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        session = harness.Session(self.folder)
        words = [w for key, text in tests.items() for w in ("-e", f"{key}={PLACE} if tid == {workload.pid} && {text}")]
        # As root, who may know where functions lie.
        consumer = session.trace(*words, "-o", "json", gate=gate, uid=0)
        gate.wait(consumer)
        pushed = (session.instance / "events" / SYSTEM / EVENT / "filter").read_text()
        workload.go()
        gate.open()
        result = consumer.wait()
        self.check_ended(result)
        self.check_no_loss(result)
        for key, witness in witnesses.items():
            with self.subTest(key):
                ours = [e["args"]["call_site"] for e in result.of(key)]
                theirs = witness.offsets()
                self.assertGreater(len(theirs), 0)
                self.assertEqual(len(ours), len(theirs))
                if key != "other":
                    self.assertEqual([site - start for site in ours], theirs)
        self.assertIn(str(workload.pid), pushed)
        self.assertEqual(session.stop(), (0, 0))

    def test_what_is_none(self):
        name, *_ = self.callers()
        result = harness.trace("-e", f"{PLACE} if call_site.function == {name}x")
        self.assertEqual(result.status, 2)
        self.assertIn(f"the kernel has no function '{name}x'; did you mean {name}", result.err)
        lines = result.err.splitlines()
        mark = next(i for i, line in enumerate(lines) if line.strip() == "^")
        self.assertEqual(lines[mark - 1][lines[mark].index("^"):], f"{name}x")
        result = harness.trace("-e", PLACE, "-f", "pid == 1 || call_site.function == 0x10")
        self.assertEqual(result.status, 2)
        self.assertIn("no function of the kernel holds the address 0x10", result.err)
        result = harness.trace("-s", "text", "-e", PLACE, "-f", f"call_site.function == {name}")
        self.assertEqual(result.status, 2)
        self.assertIn("lines show functions by their names", result.err)

    def test_nobody_learns_an_address(self):
        """Who may not see addresses gets none by a name, and not those that are in others' filters."""
        name, start, end, _ = self.callers()
        shown = harness.run(["head", "-1", "/proc/kallsyms"], **harness.as_user(harness.USER_A)).out
        if int(shown.split()[0], 16):
            self.skipTest("this machine shows the kernel's addresses to everybody")
        session = harness.Session(self.folder)
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        roots = session.trace("-e", f"{PLACE} if call_site.function == {name}", "-q", uid=0, gate=gate)
        gate.wait(roots)
        result = session.trace("-e", f"{PLACE} if call_site.function == {name}").wait()
        self.assertEqual(result.status, 3)
        self.assertIn("may not see where the kernel's functions lie", result.err)
        explain = [session.tracefan, "explain", "--session", session.name, "-e", PLACE, "-f", "bytes_req == 7"]
        user = harness.run(explain, **harness.as_user(harness.USER_A, session.group.gr_gid))
        root = harness.run(explain)
        for result in user, root:
            self.check_ended(result)
            self.assertIn("bytes_req == 7", result.out)
        addresses = str(start), f"{start:x}", str(end), f"{end:x}", str(end - 1)
        self.assertTrue([a for a in addresses if a in root.out], root.out)
        self.assertEqual([a for a in addresses if a in user.out], [], user.out)
        gate.open()
        self.check_ended(roots.wait())
        self.assertEqual(session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
