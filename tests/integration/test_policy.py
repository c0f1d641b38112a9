#!/usr/bin/env python3
"""Four users under one policy: each gets exactly what its lines allow. The users are numbers that nobody has."""
import contextlib
import grp
import os
import pathlib
import socket
import subprocess
import threading
import time

import harness

EXEC = "sched:sched_process_exec"
GETPGID = "syscalls:sys_enter_getpgid"
RARE, OTHER = "syscalls:sys_enter_getpriority", "syscalls:sys_enter_sched_get_priority_max"
# A developer of one program, an observer, a member of a group that may more, and somebody of whom no line speaks.
DEVELOPER, OBSERVER, MEMBER, STRANGER = 47111, 47112, 47113, 47114
GROUP = 47120


def setUpModule():
    harness.require_event("sched", "sched_process_exec")
    harness.require_event("syscalls", "sys_enter_getpgid")
    harness.require_event("syscalls", "sys_enter_getpriority")
    harness.require_file("uprobe_events", "uprobes")


class Caller:
    """A process of that user, not executed anew, that makes a numbered system call each time it is told a number."""

    def __init__(self, uid):
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._ours.close()
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                while message := theirs.recv(16):
                    with contextlib.suppress(OSError):
                        os.getpgid(int(message))
                    theirs.send(b"done")
            finally:
                os._exit(0)
        theirs.close()

    def call(self, number):
        self._ours.send(b"%d" % number)
        assert self._ours.recv(16) == b"done"

    def end(self):
        self._ours.close()
        os.waitpid(self.pid, 0)


class Policy(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.app = pathlib.Path(self.folder, "app")
        self.app.mkdir()
        self.app.chmod(0o755)
        self.program = pathlib.Path(harness.staged(self.app, "workload_numbers"))
        self.secret = pathlib.Path(harness.staged(self.folder, "workload_numbers"))
        self.pause = threading.Event()
        self.number = 1 << 28

    def write_policy(self, text):
        self.file = pathlib.Path(self.folder, "policy")
        self.file.write_text(text)
        self.file.chmod(0o644)

    def start(self, text):
        self.write_policy(text)
        self.session = harness.Session(self.folder, "--policy", str(self.file))
        self.addCleanup(lambda: self.session.reader.running() and self.session.stop())

    def ask(self, uid, *words, groups=()):
        return harness.run([self.session.tracefan, *words[:1], "--session", self.session.name, *words[1:]],
                           **harness.as_user(uid, *groups))

    def trace(self, uid, *probes, groups=(), more=()):
        words = [w for p in probes for w in ("-e", p)]
        return self.ask(uid, "trace", *words, "-o", "json", *more, "--", str(self.program), "0", "77", "3", groups=groups)

    def allowed(self, uid, probe, groups=()):
        result = self.trace(uid, probe, groups=groups)
        self.check_ended(result)
        return result.events

    def refused(self, words, uid, *probes, groups=()):
        result = self.trace(uid, *probes, groups=groups)
        self.check_ended(result, 3)
        self.assertIn(words, result.err)
        self.assertEqual(result.out, "")

    def test_each_gets_what_its_lines_allow(self):
        self.start(f"""# who may what
deny user={DEVELOPER} uprobe:{self.app}/*.secret
allow user={DEVELOPER} uprobe:{self.app}/* fetch=registers
allow user={OBSERVER} tracepoint:sched:*
allow group={GROUP} tracepoint:*:*
allow group={GROUP} uprobe:{self.app}/*
""")
        main, argument = f"uprobe:{self.program}:main", harness.argument(1)

        # The developer: that program, registers, nothing else.
        events = self.allowed(DEVELOPER, f"m={main} argc={argument}:s32")
        self.assertEqual([e["args"]["argc"] for e in events], [4])
        self.refused(f"policy, line 3: \"allow user={DEVELOPER}", DEVELOPER, f"m={main} path=+0({harness.argument(2)}):u64")
        self.refused("no line of", DEVELOPER, f"uprobe:{self.secret}:main")
        self.refused(f"no line of {self.file} allows tracepoint:{EXEC}", DEVELOPER, f"tracepoint:{EXEC}")
        self.refused("line", DEVELOPER, f"m={main}", f"tracepoint:{EXEC}")
        hidden = self.app / "a.secret"
        hidden.write_bytes(self.program.read_bytes())
        self.refused("policy, line 2: ", DEVELOPER, f"uprobe:{hidden}:main")
        # By whichever name it is opened, what counts is the file's own.
        link = pathlib.Path(self.folder, "app", "link")
        link.symlink_to(self.secret)
        self.refused("no line of", DEVELOPER, f"uprobe:{link}:main")
        os.link(hidden, self.app / "hard")
        self.refused("hard links", DEVELOPER, f"uprobe:{self.app}/hard:main")

        # The observer: the scheduler's events, no system call, no probe.
        self.assertGreater(len(self.allowed(OBSERVER, f"tracepoint:{EXEC}")), 0)
        self.refused("no line of", OBSERVER, f"tracepoint:{GETPGID}")
        self.refused("no line of", OBSERVER, f"m={main}")

        # The member, by a supplementary group: both.
        numbers = [e["args"]["pid"] for e in self.allowed(MEMBER, f"tracepoint:{GETPGID}", groups=(GROUP,))]
        self.assertEqual([n for n in numbers if n in (77, 78, 79)], [77, 78, 79])
        self.assertEqual(len(self.allowed(MEMBER, f"m={main} path=+0({harness.argument(2)}):u64", groups=(GROUP,))), 1)
        self.refused("no line of", MEMBER, f"m={main}")
        self.refused("no line of", MEMBER, "kprobe:vfs_read", groups=(GROUP,))

        # The stranger: not even the list. Root: everything.
        self.refused(f"no line of {self.file} allows this user", STRANGER, f"tracepoint:{EXEC}")
        self.assertEqual(self.ask(STRANGER, "ls").status, 3)
        self.assertEqual(len(self.allowed(0, f"m=uprobe:{self.secret}:main")), 0)
        self.assertEqual(self.session.stop(), (0, 0))

    def test_each_sees_whose_processes_its_lines_say(self):
        """Users with `own` see their own processes, whatever their filter says; one with `all` sees everybody's."""
        self.start(f"""allow user={DEVELOPER} tracepoint:syscalls:* scope=own
allow user={OBSERVER} tracepoint:syscalls:* scope=own
allow user={MEMBER} tracepoint:syscalls:* scope=all
""")
        users = (DEVELOPER, OBSERVER, MEMBER, 0)
        callers = {uid: Caller(uid) for uid in users}
        for caller in callers.values():
            self.addCleanup(caller.end)
        traces = {}
        for uid in users[:3]:
            gate = harness.Gate(self.folder, f"gate-{uid}")
            self.addCleanup(gate.close)
            # The filter of one asks for all the others.
            more = ["-f", "pid >= 0 || common_pid > 0"] if uid == OBSERVER else []
            traces[uid] = self.session.trace("-e", f"tracepoint:{GETPGID}", "-o", "json", *more, uid=uid, gate=gate), gate
            gate.wait(traces[uid][0])
        # Whose a process is has to be looked up first: until then the user doesn't see its own either.
        base = 1 << 28

        def all_see_their_own():
            nonlocal base
            for uid in users:
                callers[uid].call(base + uid)
            base += 1 << 17
            return all(f'"pid":{callers[uid].pid},' in traces[uid][0].out for uid in (DEVELOPER, OBSERVER))
        self.wait_until(all_see_their_own, *(traces[uid][0] for uid in users[:3]))
        for i in range(100):
            for uid in users:
                callers[uid].call(base + i * (1 << 17) + uid)
        for uid in users[:3]:
            process, gate = traces[uid]
            gate.open()
            result = process.wait()
            self.check_ended(result)
            self.check_balance(result)
            self.check_no_loss(result)
            numbers = [e["args"]["pid"] for e in result.of(GETPGID) if e["pid"] in {c.pid for c in callers.values()}]
            owners = {n % (1 << 17) for n in numbers}
            self.assertEqual(owners, {uid} if uid != MEMBER else set(users), uid)
            for owner in owners:
                late = [n for n in numbers if n >= base and n % (1 << 17) == owner]
                self.assertEqual(late, [base + i * (1 << 17) + owner for i in range(100)], (uid, owner))
            if uid != MEMBER:
                self.assertEqual({e["pid"] for e in result.events} & {c.pid for u, c in callers.items() if u != uid}, set())
                self.assertGreaterEqual(result.summary["probes"][GETPGID]["filtered"], 300)
        self.assertEqual(self.session.stop(), (0, 0))

    def test_kernel_functions(self):
        harness.require_file("kprobe_events", "kprobes")
        self.start(f"""allow user={DEVELOPER} kprobe:do_sys_open*
allow group={GROUP} kprobe:do_sys_* fetch=memory
""")
        path = f"path=+0({harness.argument(2)}):ustring"
        events = self.allowed(DEVELOPER, f"o=kprobe:do_sys_openat2 dfd={harness.argument(1)}:s32")
        self.assertGreater(len(events), 0)
        self.check_ended(self.trace(DEVELOPER, "kretprobe:do_sys_openat2"))
        self.refused("line 1: \"allow user=", DEVELOPER, f"kprobe:do_sys_openat2 {path}")
        self.refused("an offset could lead into another function", DEVELOPER, "kprobe:do_sys_openat2+4")
        self.refused("no line of", DEVELOPER, "kprobe:vfs_read")
        events = self.allowed(MEMBER, f"o=kprobe:do_sys_openat2 {path}", groups=(GROUP,))
        self.assertTrue([e for e in events if e["args"].get("path", "").startswith("/")])
        self.refused("no line of", MEMBER, f"kprobe:do_sys_openat2 {path}")
        self.assertEqual(self.session.stop(), (0, 0))

    def wait_until(self, holds, *processes):
        """Waits until that holds, or one of these or the router ends."""
        deadline = time.monotonic() + harness.PATIENCE
        said = lambda: "\n".join(p.out[-2000:] + p.err for p in processes)
        while not holds():
            self.assertLess(time.monotonic(), deadline, said())
            self.assertTrue(all(p.running() for p in (self.session.router, *processes)), said())
            self.pause.wait(0.02)

    def wait_for(self, process, words, count=1):
        """Waits until the process has said it so often."""
        self.wait_until(lambda: process.out.count(words) >= count, process)

    def burst(self, count):
        """Numbered calls of a system call that nothing else on a machine makes by the thousands."""
        for number in range(self.number, self.number + count):
            with contextlib.suppress(OSError):
                os.getpriority(os.PRIO_PROCESS, number)
        self.number += count

    def burst_until(self, holds, came):
        """So many calls that they are beyond every rate, and again, should the machine have stood still between them.
        `came` says when all of a burst have."""
        while not holds():
            self.burst(20000)
            came()

    def test_who_brings_too_much_is_throttled(self):
        self.start(f"""allow user={DEVELOPER} tracepoint:{RARE} rate=1000
allow everyone tracepoint:*:*
limit user={OBSERVER} rate=2000
""")
        enable = self.session.instance / "events" / RARE.replace(":", "/") / "enable"
        program = harness.staged(self.folder, "throttled_consumer")
        members = harness.Gate(self.folder, "members")
        self.addCleanup(members.close)
        # One who may have any number; by a probe's rate; by the user's, of two probes.
        every = self.session.trace("-e", f"tracepoint:{RARE}", "-o", "json", uid=MEMBER, gate=members)
        members.wait(every)
        rated = harness.Process([program, self.session.name, f"tracepoint:{RARE}"], stdin=subprocess.PIPE, **harness.as_user(DEVELOPER))
        self.wait_for(rated, "live")
        observers = harness.Gate(self.folder, "observers")
        self.addCleanup(observers.close)
        both = self.session.trace("-e", f"tracepoint:{RARE}", "-e", f"tracepoint:{OTHER}", "-o", "json",
                                  uid=OBSERVER, gate=observers)
        observers.wait(both)

        first = self.number
        self.burst_until(lambda: "throttled probe 1000 " in rated.out and '"kind":"throttled"' in both.out,
                         lambda: self.wait_for(every, f'"who":{self.number - 1}'))
        count = int(rated.out.split("throttled probe 1000 ")[1].split()[0])
        self.assertGreater(count, 1000)
        caller = os.getpid()
        os.sched_get_priority_max(os.SCHED_OTHER)
        observers.open()
        result = both.wait()
        self.check_ended(result)
        self.check_balance(result)
        throttled = [r for r in result.records if r["kind"] == "throttled"]
        self.assertEqual([(r["probe"], r["of"], r["rate"]) for r in throttled], [(RARE, "user", 2000)])
        # Its other probe goes on, and nothing of the first came after the record.
        self.assertIn(caller, [e["pid"] for e in result.of(OTHER)])
        place = result.records.index(throttled[0])
        self.assertEqual([r for r in result.records[place:] if r.get("probe") == RARE and r["kind"] == "event"], [])

        # Who has no rate has everything; then nobody wants the event any more, and the kernel hears of it.
        members.open()
        result = every.wait()
        self.check_ended(result)
        self.check_no_loss(result)
        # What went beyond the rate is what came in one piece.
        self.assertLessEqual(count, len(result.of(RARE)))
        numbers = [e["args"]["who"] for e in result.of(RARE) if e["pid"] == caller]
        self.assertEqual(numbers, list(range(first, self.number)))
        self.wait_until(lambda: enable.read_text().strip() == "0", self.session.reader)
        self.ask_again(rated, enable)
        self.check_ended(rated.wait())
        self.assertEqual(self.session.stop(), (0, 0))

    def ask_again(self, rated, enable):
        """The owner of a throttled probe asks for it again: at once it is throttled again, in another second it is not."""
        def came():
            return int(("came 0\n" + rated.out).rpartition("came ")[2].split()[0])

        def told(count):
            """The events of a burst came, or the record that they don't."""
            self.wait_until(lambda: came() >= before + count or rated.out.count("throttled") > throttled, rated)
        asked, ended, deadline = 0, False, time.monotonic() + harness.PATIENCE
        while not ended:
            self.assertLess(time.monotonic(), deadline, f"after {asked} times: {rated.out[-2000:]}")
            throttled, before, asked = rated.out.count("throttled"), came(), asked + 1
            rated._popen.stdin.write(b"again\n")
            rated._popen.stdin.flush()
            self.wait_for(rated, "enabled", asked)
            self.burst(500)
            told(500)
            ended = rated.out.count("throttled") == throttled
        self.assertEqual(enable.read_text().strip(), "1", rated.out)
        before, begun = came(), self.number
        self.burst_until(lambda: rated.out.count("throttled") > throttled, lambda: told(self.number - begun))
        rated._popen.stdin.close()

    def test_the_list_shows_what_is_allowed(self):
        self.start(f"""allow user={OBSERVER} tracepoint:sched:sched_process_*
deny user={OBSERVER} uprobe:{self.app}/secret
allow user={OBSERVER} uprobe:{self.app}/* fetch=registers
allow user={DEVELOPER} kprobe:do_sys_open*
""")
        result = self.ask(OBSERVER, "ls")
        self.check_ended(result)
        lines = result.out.splitlines()
        self.assertIn(EXEC, lines)
        self.assertEqual(lines[-1], f"uprobe:{self.app}/* fetch=registers scope=all")
        self.assertEqual([l for l in lines[:-1] if not l.startswith("sched:sched_process_")], [])
        self.assertEqual(self.ask(DEVELOPER, "ls").out, "kprobe:do_sys_open* fetch=registers scope=all\n")
        self.assertIn(GETPGID, self.ask(0, "ls").out.splitlines())
        self.assertEqual(self.session.stop(), (0, 0))

    def test_who_sees_the_kernels_addresses(self):
        self.start(f"""allow user={OBSERVER} tracepoint:syscalls:* kernel-addresses=yes
allow user={DEVELOPER} tracepoint:syscalls:* rate=1000000
""")
        probe = f"c=tracepoint:{GETPGID} stack"
        events = [e for e in self.allowed(OBSERVER, probe) if e["args"]["pid"] in (77, 78, 79)]
        self.assertEqual(len(events), 3)
        # Null is a stack that came too late, as on a machine that stands still; none of them would be shown without the word.
        self.assertTrue([e for e in events if e["stack"]])
        for event in events:
            self.assertEqual([f for f in event["stack"] or () if f["address"] < 1 << 63], [])
        self.refused("policy, line 2: ", DEVELOPER, probe)
        self.refused("kernel-addresses=yes", DEVELOPER, probe)
        self.allowed(DEVELOPER, f"c=tracepoint:{GETPGID}")
        # The list says so, and patterns are of names all the same.
        self.assertIn(f"{GETPGID} kernel-addresses=yes", self.ask(OBSERVER, "ls").out.splitlines())
        self.assertEqual(self.ask(DEVELOPER, "ls", "syscalls:*_enter_getpgid").out, f"{GETPGID} rate=1000000\n")
        self.assertEqual(self.session.stop(), (0, 0))

    def test_limits_are_named(self):
        self.start(f"""allow everyone tracepoint:*:*
allow everyone uprobe:{self.app}/*
limit user={OBSERVER} consumers=1
limit user={DEVELOPER} probes=2 ring=8M
""")
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        first = self.session.trace("-e", f"tracepoint:{EXEC}", "-o", "json", uid=OBSERVER, gate=gate)
        gate.wait(first)
        self.refused("user 47112 has 1 consumers attached, the limit of", OBSERVER, f"tracepoint:{EXEC}")
        self.refused("line 3 (\"limit user=47112 consumers=1\")", OBSERVER, f"tracepoint:{EXEC}")
        gate.open()
        self.check_ended(first.wait())
        # One has left, so that there is room again.
        self.allowed(OBSERVER, f"tracepoint:{EXEC}")
        self.refused("user 47111 has rings of 0 bytes and asks for one of 134217728", DEVELOPER, f"tracepoint:{EXEC}")
        result = self.trace(DEVELOPER, f"tracepoint:{EXEC}", f"tracepoint:{GETPGID}", more=("--ring", "4M"))
        self.check_ended(result)
        result = self.trace(DEVELOPER, f"tracepoint:{EXEC}", f"tracepoint:{GETPGID}", f"m=uprobe:{self.program}:main",
                            more=("--ring", "4M"))
        self.check_ended(result, 3)
        self.assertIn("user 47111 has 2 probes, the limit of", result.err)
        self.assertIn("line 4", result.err)
        # Root is not limited.
        self.check_ended(self.trace(0, f"tracepoint:{EXEC}"))
        self.assertEqual(self.session.stop(), (0, 0))

    def test_a_bad_policy_starts_nothing(self):
        for text, mode, status, words in (
                ("allow everyone tracepoint:*:*\nallow nobody kprobe:*\n", 0o644, 2, "line 2: \"nobody\" names nobody"),
                ("allow everyone tracepoint:*:*\n", 0o666, 3, "chmod go-w"),
                ("allow user=no-such-user-here kprobe:*\n", 0o644, 2, "line 1: no user")):
            self.write_policy(text)
            self.file.chmod(mode)
            result = harness.run([harness.program("tracefan-reader"), "--session", f"test-{os.getpid()}-bad", "--policy",
                                  str(self.file)])
            self.check_ended(result, status)
            self.assertIn(words, result.err)
        for path in "/none", self.folder:
            result = harness.run([harness.program("tracefan-reader"), "--session", f"test-{os.getpid()}-bad", "--policy", path])
            self.check_ended(result, 2)


class Groups(harness.TestCase):
    """Who may not attach is told which group could, and what makes one."""

    def attach(self, name):
        tracefan = harness.staged(self.folder, "tracefan")
        result = harness.run([tracefan, "trace", "--session", name, "-d", "0.05", "-e", EXEC], **harness.as_user(harness.USER_A))
        self.check_ended(result, 3)
        return result.err

    def test_none(self):
        with contextlib.suppress(KeyError):
            grp.getgrnam("tracefan")
            self.skipTest("this machine has the group tracefan")
        name, tracefan = f"test-{os.getpid()}-bare", harness.program("tracefan")
        self.check_ended(harness.run([tracefan, "session", "start", name]))
        self.addCleanup(lambda: self.check_ended(harness.run([tracefan, "session", "stop", name])))
        said = self.attach(name)
        self.assertIn('it has no group, so only root may; have root make one with "groupadd --system tracefan"', said)
        self.assertIn("--group", said)

    def test_another(self):
        session = harness.Session(self.folder)
        name = session.group.gr_name
        self.assertIn(f'for the members of group {name}; become one with "usermod -aG {name} USER"', self.attach(session.name))
        self.assertEqual(session.stop(), (0, 0))

    def test_one_that_is_not_there(self):
        harness.require_tracefs()
        reader = [harness.program("tracefan-reader"), "--session", "nosuch", "--directory", self.folder]
        for option, said in ("--group", 'there is no group "no-such": make it with "groupadd --system no-such", or name another with --group'), \
                ("--router-user", 'there is no user "no-such": name another with --router-user'):
            result = harness.run([*reader, option, "no-such"])
            self.check_ended(result, 2)
            self.assertIn(said, result.err)


if __name__ == "__main__":
    harness.main()
