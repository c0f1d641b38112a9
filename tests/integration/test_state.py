#!/usr/bin/env python3
"""The host's processes: what is told before the first event, and whose each event is."""
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import unittest

import harness

NEWTASK = "task:task_newtask"
END = "sched:sched_process_exit"
EXEC = "sched:sched_process_exec"
GETPGID = "syscalls:sys_enter_getpgid"
TICK = 10_000_000
CLONE_THREAD = 0x10000


def setUpModule():
    harness.require_event("task", "task_newtask")
    harness.require_event("sched", "sched_process_exit")
    harness.require_event("syscalls", "sys_enter_getpgid")


# ---- /proc as the test sees it ----

def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return None


def link(path):
    try:
        return os.readlink(os.fsencode(path))
    except OSError:
        return None


def task_of(folder):
    """(comm, parent, start in ticks, uids, gids) of a process or thread."""
    stat, status = read(folder + "/stat"), read(folder + "/status")
    if not stat or not status:
        return None
    fields = stat[stat.rindex(b")") + 2:].split()
    # One that has ended, and whose parent has not asked for it yet, is no process any more.
    if fields[0] == b"Z" and int(fields[17]) <= 1:
        return None
    comm = stat[stat.index(b"(") + 1:stat.rindex(b")")]
    if int(fields[6]) & 0x20 and b":" in comm:
        comm = re.match(rb"[^:]*:[^-+]*", comm)[0]
    uids = [int(n) for n in re.search(rb"\nUid:\s+(.*)", status)[1].split()[:3]]
    gids = [int(n) for n in re.search(rb"\nGid:\s+(.*)", status)[1].split()[:2]]
    return comm[:15], int(fields[1]), int(fields[19]), uids, gids


def maps_of(folder):
    found = set()
    for line in (read(folder + "/maps") or b"").splitlines():
        span, mode, offset, _, inode, *path = line.split(None, 5)
        if b"x" in mode and inode != b"0":
            a, b = span.split(b"-")
            found.add((int(a, 16), int(b, 16), int(offset, 16), int(inode), path[0] if path else b""))
    return found


def process_of(pid):
    folder = f"/proc/{pid}"
    task = task_of(folder)
    if not task:
        return None
    threads = {}
    for tid in harness.list_folder(folder + "/task"):
        if tid != str(pid):
            threads[int(tid)] = task_of(f"{folder}/task/{tid}")
    fds = {int(fd): link(f"{folder}/fd/{fd}") for fd in harness.list_folder(folder + "/fd")}
    group = re.search(rb"^0::(.*)$", read(folder + "/cgroup") or b"", re.M)
    return {"task": task, "exe": link(folder + "/exe"), "cwd": link(folder + "/cwd"), "command": read(folder + "/cmdline"),
            "group": group and group[1], "threads": threads, "maps": maps_of(folder),
            "files": {fd: to for fd, to in fds.items() if to and not to.startswith(b"socket:")},
            "sockets": {fd: int(to[8:-1]) for fd, to in fds.items() if to and to.startswith(b"socket:")}}


def all_processes():
    return {int(pid): process_of(pid) for pid in os.listdir("/proc") if pid.isdigit()}


# ---- the state as tracefan tells it ----

def text(value):
    return None if value is None else harness.as_bytes(value)


class State:
    def __init__(self, records):
        self.records = [r for r in records if r["kind"] == "state"]
        self.processes = {r["pid"]: r for r in self.of("process")}
        self.threads = {r["pid"]: r for r in self.of("thread")}

    def of(self, kind):
        return [r for r in self.records if r["state"] == kind]

    def as_read(self, pid):
        """In the form of process_of, with the start of a process that was seen to begin rounded to what /proc knows."""
        r = self.processes[pid]

        def task(record, parent):
            uid, gid = record["uid"], record["gid"]
            return (text(record["comm"])[:15], parent, record["start"] // TICK, [uid, record.get("euid", uid), record.get("suid", uid)],
                    [gid, record.get("egid", gid)])

        return {"task": task(r, r["parent"]), "exe": text(r["exe"]), "cwd": text(r["folder"]),
                "command": None if r["command"] is None else [text(a) for a in r["command"]], "group": text(r["cgroup"]),
                "threads": {t["pid"]: task(t, None) for t in self.threads.values() if t["process"] == pid},
                "maps": {(m["from"], m["to"], m["offset"], m["inode"], text(m["path"])) for m in self.of("mapping") if m["pid"] == pid},
                "files": {f["fd"]: text(f["path"]) for f in self.of("file") if f["pid"] == pid},
                "sockets": {s["fd"]: s["inode"] for s in self.of("socket") if s["pid"] == pid}}


def arguments(command):
    """cmdline as the list that the state holds."""
    parts = command.split(b"\0")
    return parts[:-1] if not parts[-1] else parts


class Subject:
    """A process that is at rest and has something of everything."""
    program = r"""
import os, socket, sys, threading
os.chdir("/")
tcp = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(tcp.getsockname())
tcp6 = socket.create_server(("::1", 0), family=socket.AF_INET6) if socket.has_ipv6 else None
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("127.0.0.1", 0))
unix = socket.socket(socket.AF_UNIX); unix.bind(sys.argv[1]); unix.listen()
file = open(sys.argv[2], "w"); os.unlink(sys.argv[2])
threads = [threading.Thread(target=lambda: os.read(0, 1), daemon=True) for _ in range(3)]
for t in threads: t.start()
open("/proc/self/comm", "w").write("a) (b\nc")
print(tcp.getsockname()[1], client.getsockname()[1], tcp6.getsockname()[1] if tcp6 else 0, udp.getsockname()[1], flush=True)
os.read(0, 1)
"""

    def __init__(self, folder):
        self.socket = os.path.join(folder, "s t.sock")
        ends = os.pipe()
        self.process = harness.Process([sys.executable, "-c", self.program, self.socket, os.path.join(folder, "gone \n file")],
                                       stdin=ends[0], stdout=subprocess.PIPE)
        os.close(ends[0])
        self._go = ends[1]
        self.ports = [int(n) for n in self.process._popen.stdout.readline().split()]
        self.pid = self.process.pid

    def close(self):
        os.write(self._go, b"1234567890")
        os.close(self._go)
        self.process._popen.stdout.close()
        self.process.wait()


class AtRest(harness.TestCase):
    def test_it_equals_proc(self):
        """Whatever of a process was the same before and after is told so; on a machine that does nothing else, all is."""
        harness.up_loopback()
        subject = Subject(self.folder)
        self.addCleanup(subject.close)
        # Others on the machine may do for a moment, twice, what they don't in between.
        for attempt in range(5):
            wrong, state = self.compare(subject)
            if not wrong:
                break
        self.assertEqual(wrong, [])
        self.check_subject(state, subject)

    def compare(self, subject):
        before = all_processes()
        result = harness.trace("--state", "-e", f"tracepoint:{END}", "-o", "json", "--", "true")
        after = all_processes()
        self.check_ended(result)
        state = State(result.records)
        self.assertEqual([r["left_out"] for r in state.of("end")], [0])

        # The session itself is made after the first look, and gone before the second.
        rest = {pid for pid, p in before.items() if p and after.get(pid) and after[pid]["task"][2] == p["task"][2]}
        self.assertIn(subject.pid, rest)
        wrong = [f"process {pid} is missing" for pid in rest - set(state.processes)]
        compared = 0
        for pid in sorted(rest & set(state.processes)):
            told = state.as_read(pid)
            for key, value in before[pid].items():
                # Of the kernel's own threads nothing is told but that they are there.
                if value != after[pid][key] or pid == os.getpid() or (key == "cwd" and state.processes[pid].get("kernel")):
                    continue
                if key == "command":
                    value = None if told[key] is None and not value else arguments(value)
                if key == "threads":
                    value = {tid: (t[0], None, *t[2:]) for tid, t in value.items() if t}
                if told[key] != value:
                    wrong.append((pid, key, told[key], value))
                compared += 1
        print(f"{len(rest)} processes at rest, {compared} attributes compared, {len(wrong)} differ, "
              f"{len(state.records)} records", flush=True)
        return wrong, state

    def check_subject(self, state, subject):
        self.assertEqual(state.processes[subject.pid]["comm"], "a) (b\nc")
        sockets = [s for s in state.of("socket") if s["pid"] == subject.pid]
        listening, client, listening6, udp = subject.ports
        tcp = {(s["local"]["address"], s["local"]["port"], s["remote"]["port"], s["socket_state"])
               for s in sockets if s["protocol"] == socket.IPPROTO_TCP}
        expected = {("127.0.0.1", listening, 0, 10), ("127.0.0.1", client, listening, 1)}
        if listening6:
            expected.add(("::1", listening6, 0, 10))
        self.assertEqual(tcp, expected)
        self.assertEqual([(s["local"]["address"], s["local"]["port"]) for s in sockets if s["protocol"] == socket.IPPROTO_UDP],
                         [("127.0.0.1", udp)])
        self.assertEqual([text(s["path"]) for s in sockets if s["family"] == "unix"], [os.fsencode(subject.socket)])
        self.assertEqual(len([t for t in state.threads.values() if t["process"] == subject.pid]), 3)
        self.check_build_ids(state, subject)

    def check_build_ids(self, state, subject):
        """By the tool that everybody knows, where it is installed."""
        checked = 0
        for mapping in (m for m in state.of("mapping") if m["pid"] == subject.pid):
            try:
                notes = subprocess.run(["readelf", "-n", mapping["path"]], capture_output=True, text=True).stdout
            except FileNotFoundError:
                return
            found = re.search(r"Build ID: ([0-9a-f]+)", notes)
            self.assertEqual(mapping["build_id"], found and found[1], mapping)
            checked += 1
        self.assertGreater(checked, 0)

    def test_others_see_their_own(self):
        session = harness.Session(self.folder)
        own = harness.Process(["sleep", "1000"], **harness.as_user(harness.USER_A))
        self.addCleanup(own.kill)
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        result = session.trace("--state", "-e", f"tracepoint:{END}", "-o", "json", uid=harness.USER_A, gate=gate)
        gate.wait(result)
        gate.open()
        result = result.wait()
        self.check_ended(result)
        state = State(result.records)
        self.assertIn(own.pid, state.processes)
        self.assertTrue([m for m in state.of("mapping") if m["pid"] == own.pid])
        self.assertEqual({p["uid"] for p in state.processes.values()}, {harness.USER_A})
        self.assertEqual({r["pid"] for r in state.records if r["state"] in ("file", "socket", "mapping")} - set(state.processes), set())
        self.assertNotIn(os.getpid(), state.processes)
        self.assertEqual(session.stop(), (0, 0))


class Coming(harness.TestCase):
    def test_each_is_known_and_none_twice(self):
        """200 processes, of which one ends and another begins all the time, while consumers attach."""
        session = harness.Session(self.folder)
        ends = os.pipe()
        workload = harness.Process([harness.program("workload_processes"), "churn", "200"], stdin=ends[0], stdout=subprocess.PIPE)
        os.close(ends[0])
        self.assertEqual(workload._popen.stdout.readline(), b"ready\n")
        results = []
        for _ in range(3):
            consumer = session.trace("--state=processes", "-e", f"tracepoint:{NEWTASK}", "-e", f"tracepoint:{END}", "-o", "json",
                                     "-n", harness.scaled(3000), uid=0)
            results.append(consumer.wait())
        os.write(ends[1], b"x")
        os.close(ends[1])
        children = {int(line) for line in workload._popen.stdout}
        workload._popen.stdout.close()
        workload.wait()
        for result in results:
            self.check_one(result, workload.pid, children)
        self.assertEqual(session.stop(), (0, 0))

    def check_one(self, result, parent, children):
        self.check_ended(result)
        kinds = [r["kind"] for r in result.records]
        self.assertEqual([i for i, kind in enumerate(kinds) if kind == "state" and i > kinds.index("event")], [],
                         "state after an event")
        told = State(result.records).processes
        # Others on the machine may have had a child's number before, or get it afterwards.
        known = {pid for pid, p in told.items() if pid in children and p["parent"] == parent}
        self.assertGreater(len(known), 100)
        for pid in known:
            self.assertEqual((told[pid]["comm"], told[pid]["proven"]), ("workload_proces", True))
        born, ended, twice, unknown = 0, 0, [], []
        for event in result.events:
            if event["probe"] == NEWTASK and event["args"]["pid"] in children and event["args"]["comm"] == "workload_proces":
                twice += [event["args"]["pid"]] if event["args"]["pid"] in known else []
                known.add(event["args"]["pid"])
                born += 1
            elif event["probe"] == END and event["pid"] in children and event["args"]["comm"] == "workload_proces":
                unknown += [event["pid"]] if event["pid"] not in known else []
                self.assertEqual(event["comm"], "workload_proces")
                known.discard(event["pid"])
                ended += 1
        self.assertEqual((twice, unknown), ([], []))
        self.assertGreater(min(born, ended), harness.scaled(100))
        print(f"{len(told)} processes in the state, then {born} began and {ended} ended: each known once", flush=True)


class Whose(harness.TestCase):
    """With each event, whose it is."""
    FIRST = 1 << 30

    def numbers(self, result, pids=None):
        return [e for e in result.of(GETPGID) if self.FIRST <= e["args"]["pid"] < self.FIRST + 100000 and (pids is None or e["pid"] in pids)]

    def check_reuse(self, result, lines):
        rounds = {int(n): (int(parent), int(child), name) for n, parent, child, name in (line.split() for line in lines)}
        events = self.numbers(result, {child for _, child, _ in rounds.values()})
        reused = len(rounds) - len({child for _, child, _ in rounds.values()})
        self.assertEqual(sorted(e["args"]["pid"] - self.FIRST for e in events), sorted(rounds))
        for event in events:
            parent, child, name = rounds[event["args"]["pid"] - self.FIRST]
            told = event["process"]
            self.assertEqual((event["pid"], event["comm"], told["pid"], told["parent"], told["proven"]),
                             (child, name, child, parent, True), event)
        print(f"{len(events)} events of {len(rounds)} processes, {reused} of them with another's id: "
              "no wrong parent, no wrong name", flush=True)
        return reused

    def run_reuse(self, *wrapper):
        """The workload tells what it did by way of a file: it is no child of ours."""
        lines = pathlib.Path(self.folder, "lines")
        result = harness.trace("--process", "-e", f"tracepoint:{GETPGID}", "-o", "json", "-w", f"{self.folder}/out", "--", *wrapper,
                               "sh", "-c", 'exec "$@" > "$0"', lines, harness.program("workload_processes"), "reuse",
                               harness.scaled(400), self.FIRST)
        self.check_ended(result)
        result.out = pathlib.Path(self.folder, "out").read_text()
        self.check_no_loss(result)
        return result, lines.read_text().splitlines()

    def test_a_reused_id_is_another_process(self):
        result, lines = self.run_reuse()
        self.assertGreater(self.check_reuse(result, lines), harness.scaled(400) // 2)

    def test_a_namespace_of_few_ids(self):
        """In a namespace of its own, whose ids soon come again; the events tell the ids of outside."""
        limit = pathlib.Path("/proc/sys/kernel/pid_max")
        usual = int(limit.read_text())
        inside = 'mount -t proc proc /proc && echo "$0" > /proc/sys/kernel/pid_max && exec "$@"'
        space = ["unshare", "-p", "-f", "-m", "sh", "-c", inside]
        try:
            harness.run([*space, str(usual - 1), "true"])
            # Before 6.14 there was one limit for all, which only a guest may lower.
            if int(limit.read_text()) != usual and "TRACEFAN_GUEST" not in os.environ:
                self.skipTest("this kernel has one pid_max for all namespaces")
            result, lines = self.run_reuse(*space, "400")
        finally:
            if int(limit.read_text()) != usual:
                limit.write_text(f"{usual}\n")
        # Of inside: 300 to 400, again and again.
        rounds = [line.split() for line in lines]
        self.assertGreater(len(rounds) - len({child for _, _, child, _ in rounds}), harness.scaled(400) // 2)
        events = self.numbers(result)
        by_round = {e["args"]["pid"] - self.FIRST: e for e in events}
        self.assertEqual(sorted(by_round), sorted(int(n) for n, _, _, _ in rounds))
        # Two parents, known by their children's names.
        parents = {}
        for n, parent, _, name in rounds:
            event = by_round[int(n)]
            self.assertEqual((event["comm"], event["process"]["pid"], event["process"]["proven"]), (name, event["pid"], True), event)
            parents.setdefault(parent, set()).add(event["process"]["parent"])
        self.assertEqual([len(p) for p in parents.values()], [1, 1], parents)
        self.assertEqual(len(set.union(*parents.values())), 2)

    def test_executing_has_the_new_program(self):
        cat = os.path.realpath("/bin/cat")
        result = harness.trace("--process", "-e", f"tracepoint:{EXEC} if exe == \"{cat}\"", "-o", "json", "-w", f"{self.folder}/out",
                               "--", cat, "/etc/hostname")
        result.out = pathlib.Path(self.folder, "out").read_text()
        event, = [e for e in result.of(EXEC) if e["args"]["filename"] == cat]
        self.assertEqual((event["comm"], event["process"]["exe"], event["process"]["proven"]), ("cat", cat, True))
        # No event tells what ids it has got by that.
        self.assertFalse(event["process"]["ids_proven"])

    def test_a_user_that_changes_is_not_proven(self):
        """root becomes another user: what is said to be proven is right."""
        ends = os.pipe()
        output = pathlib.Path(self.folder, "out")
        workload = ["sh", "-c", '"$@" < /dev/fd/9 > /dev/null 9<&-', "sh", harness.program("workload_processes"), "ids",
                    harness.USER_A, self.FIRST]
        consumer = harness.Process([harness.program("tracefan"), "trace", "--process", "-e", f"tracepoint:{GETPGID}", "-o", "json",
                                    "-w", output, "--", "sh", "-c", f'exec 9<&{ends[0]}; exec "$@"', "sh", *map(str, workload)],
                                   pass_fds=[ends[0]])
        os.close(ends[0])
        self.await_line(output, consumer, lambda e: e["args"]["pid"] == self.FIRST + 1 and e["process"] and
                        e["process"].get("ids_proven"))
        os.write(ends[1], b"x")
        os.close(ends[1])
        result = consumer.wait()
        self.check_ended(result)
        result.out = output.read_text()
        for event in self.numbers(result):
            self.assertIn(event["process"]["ids_proven"], (True, False))
            if event["process"]["ids_proven"]:
                self.assertEqual(event["process"]["uid"], 0 if event["args"]["pid"] == self.FIRST else harness.USER_A, event)

    def test_a_set_user_id_program_is_not_its_user_s(self):
        copy = pathlib.Path(harness.staged(self.folder, "workload_numbers"))
        os.chown(copy, 0, 0)
        copy.chmod(0o4755)
        session = harness.Session(self.folder)
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        consumer = session.trace("--process", "-e", f"tracepoint:{GETPGID}", "-o", "json", uid=0, gate=gate)
        gate.wait(consumer)
        pids = []
        for i in range(20):
            with subprocess.Popen([copy, str(harness.cpus()[0]), str(self.FIRST + i), "50"], **harness.as_user(harness.USER_A)) as p:
                self.assertEqual(p.wait(), 0)
                pids.append(p.pid)
        gate.open()
        result = consumer.wait()
        self.check_ended(result)
        events = self.numbers(result, pids)
        self.assertEqual(len(events), 20 * 50)
        wrong = [e for e in events if e["process"]["ids_proven"] and e["process"].get("euid", e["process"]["uid"]) != 0]
        self.assertEqual(wrong, [])
        self.assertEqual(session.stop(), (0, 0))

    def test_after_a_loss_all_is_guessed_until_it_was_seen_again(self):
        session = harness.Session(self.folder, "--buffer-size", "64K")
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        output = pathlib.Path(self.folder, "out")
        output.touch()
        consumer = session.trace("--process", "-e", f"tracepoint:{GETPGID}", "-o", "json", "-w", output, uid=0, gate=gate)
        gate.wait(consumer)
        session.reader.signal(signal.SIGSTOP)
        harness.run([harness.program("workload_numbers"), harness.cpus()[0], self.FIRST, 20000])
        session.reader.signal(signal.SIGCONT)
        last, again = self.FIRST + 30000, False
        while not again:
            harness.run([harness.program("workload_numbers"), harness.cpus()[0], last, 1])
            again = any(e["kind"] == "event" and e["args"]["pid"] >= self.FIRST + 30000 and e["process"] and e["process"]["proven"]
                        for e in map(json.loads, output.read_text().split("\n")[:-1]))
            self.assertTrue(consumer.running())
        gate.open()
        result = consumer.wait()
        self.check_ended(result)
        result.out = output.read_text()
        at = [i for i, r in enumerate(result.records) if r["kind"] == "lost"]
        self.assertTrue(at)
        # The first that follows.
        event = next(r for r in result.records[at[0]:] if r["kind"] == "event" and r["args"]["pid"] >= self.FIRST)
        self.assertFalse((event["process"] or {}).get("proven", False), event)
        self.assertFalse((event["process"] or {}).get("ids_proven", False), event)
        self.assertEqual(session.stop(), (0, 0))

    def await_line(self, path, process, wanted):
        """Until the file that the process writes holds an event that is wanted. Nothing tells of a file that grows."""
        at, rest = 0, b""
        while process.running():
            data = path.read_bytes() if path.exists() else b""
            *lines, rest = data[at:].split(b"\n")
            at = len(data) - len(rest)
            if any(r["kind"] == "event" and wanted(r) for r in map(json.loads, lines)):
                return
            select.select([], [], [], 0.01)
        self.fail(f"it did not come: {process.wait().err}")


class Many(harness.TestCase):
    def helper(self, reader):
        """The process that reads for the session's reader, and its children."""
        parent_of = harness.parents()
        helpers = [pid for pid, parent in parent_of.items() if parent == reader.pid]
        self.assertEqual(len(helpers), 1)
        return helpers[0], [pid for pid, parent in parent_of.items() if parent == helpers[0]]

    def test_events_go_on_while_files_are_read(self):
        """200,000 descriptors; while who is to read them stands still another consumer comes, has its events, and goes."""
        # TRACEFAN_FILES=1000000 makes it the million.
        count = int(os.environ.get("TRACEFAN_FILES", harness.scaled(200000)))
        each = min(count, 10000)
        session = harness.Session(self.folder)
        holders, ends = [], os.pipe()
        for _ in range(count // each):
            holders.append(harness.Process([harness.program("workload_processes"), "files", str(each)], stdin=ends[0],
                                           stdout=subprocess.PIPE))
        os.close(ends[0])
        for holder in holders:
            self.assertEqual(holder._popen.stdout.readline(), b"ready\n")
        helper, _ = self.helper(session.reader)
        os.kill(helper, signal.SIGSTOP)
        slow = session.trace("--state=files", "-e", f"tracepoint:{GETPGID}", "-o", "json", "-n", 1, uid=0)

        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        other = session.trace("-e", f"tracepoint:{GETPGID}", "-o", "json", gate=gate)
        gate.wait(other)
        harness.run([harness.program("workload_numbers"), harness.cpus()[0], 1 << 30, 10000])
        gate.open()
        result = other.wait()
        self.check_ended(result)
        self.check_no_loss(result)
        numbers = [e["args"]["pid"] for e in result.events if 1 << 30 <= e["args"]["pid"] < (1 << 30) + 10000]
        self.assertEqual(numbers, list(range(1 << 30, (1 << 30) + 10000)))
        self.assertEqual(slow.out, "")

        os.kill(helper, signal.SIGCONT)
        # One event is enough for it, whenever it attached.
        while slow.running():
            harness.run([harness.program("workload_numbers"), harness.cpus()[0], 1 << 30, 100])
        result = slow.wait()
        self.check_ended(result)
        state = State(result.records)
        mine = {h.pid for h in holders}
        files = [f for f in state.of("file") if f["pid"] in mine and f["path"] == "/dev/null"]
        self.assertEqual(len(files), len(holders) * each)
        self.assertEqual(state.of("end")[0]["left_out"], 0)
        # Its own events began before the other's: the ring held them back meanwhile.
        self.assertEqual(len(result.events), 1)
        print(f"{len(state.of('file'))} descriptors", flush=True)
        os.close(ends[1])
        for holder in holders:
            holder._popen.stdout.close()
            holder.wait()
        self.assertEqual(session.stop(), (0, 0))

    def test_a_router_that_dies_meanwhile_is_asked_again(self):
        """The state is on its way; the next router gives it, and the events begin there."""
        session = harness.Session(self.folder)
        helper, _ = self.helper(session.reader)
        # What it says once it is asked is for the router of then.
        os.kill(helper, signal.SIGSTOP)
        consumer = session.trace("--state", "-e", f"tracepoint:{GETPGID}", "-o", "json", "-n", 1, uid=0)
        self.await_attached(session, consumer)
        session.router.kill()
        os.kill(helper, signal.SIGCONT)
        session.router = session._start("router")
        while consumer.running():
            harness.run([harness.program("workload_numbers"), harness.cpus()[0], 1 << 30, 100])
        result = consumer.wait()
        self.check_ended(result)
        state = State(result.records)
        self.assertIn(os.getpid(), state.processes)
        self.assertEqual(len(state.of("process")), len(state.processes), "told twice")
        kinds = [r["kind"] for r in result.records]
        self.assertLess(max(i for i, kind in enumerate(kinds) if kind == "state"), kinds.index("event"))
        self.assertEqual(session.stop(), (0, 0))

    def await_attached(self, session, consumer):
        """Until its probe is enabled, right after which it asks. Nothing tells of a file of tracefs that changes."""
        enable = session.instance / "events" / GETPGID.replace(":", "/") / "enable"
        while enable.read_text().strip() != "1":
            self.assertTrue(consumer.running(), consumer.err)
            select.select([], [], [], 0.01)

    def test_a_helper_that_is_killed_costs_no_event(self):
        session = harness.Session(self.folder)
        helper, _ = self.helper(session.reader)
        os.kill(helper, signal.SIGKILL)
        gate = harness.Gate(self.folder)
        self.addCleanup(gate.close)
        consumer = session.trace("-e", f"tracepoint:{GETPGID}", "-o", "json", gate=gate)
        gate.wait(consumer)
        harness.run([harness.program("workload_numbers"), harness.cpus()[0], 1 << 30, 1000])
        gate.open()
        result = consumer.wait()
        self.check_ended(result)
        self.check_no_loss(result)
        self.assertGreaterEqual(len(result.events), 1000)
        refused = session.trace("--state", "-e", f"tracepoint:{GETPGID}", "-n", 1).wait()
        self.check_ended(refused, 4)
        self.assertIn("helper", refused.err)
        self.assertEqual(session.stop(), (0, 0))


if __name__ == "__main__":
    harness.main()
