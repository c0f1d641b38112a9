#!/usr/bin/env python3
"""The recorded fixtures (tools/record-fixture, tests/fixtures/README.md): every event of the raw pages against the
kernel's own text of it, field by field, and the pages' losses against the kernel's own counts.
"""
import pathlib
import re
import unittest

from dumped import SOURCE, Pages, fields, read_kernel, same_moment, split_raw

FIXTURES = SOURCE / "tests/fixtures"

# Where the text has another name for a field.
RENAMED = {"sched_process_fork": {"parent_comm": "comm", "parent_pid": "pid"}}


def number(text):
    base = 16 if text.startswith("0x") else 8 if re.fullmatch("0[0-7]+", text) else 10
    return int(text, base)


def same(value, said):
    """Whether a decoded value is what the text says: in the text's own base and quotes."""
    if isinstance(said, int):
        return value == said
    if said in ("true", "false"):
        return value == (said == "true")
    if isinstance(value, str):
        return said in (value, f'"{value}"')
    if isinstance(value, dict):
        return value["elements"] == [number(n) for n in re.fullmatch(r"\{(.*)\}", said)[1].split(",")]
    if re.fullmatch(r"'.'", said, re.S):
        return value == ord(said[1])
    # System calls' ints are shown with 32 bits.
    return number(said) % 2**64 in (value % 2**64, value % 2**32)


def said_of_call(body, event):
    """'sys_openat(dfd: 0xffffff9c, mode: 0)' and 'sys_openat -> 0x3'. Older kernels have no 0x; newer ones add the string
    behind a pointer, have words in the place of flags, for which the print format's text must have the same, and leave out
    a mode that nothing asks for."""
    name = event["event"].split("_", 2)[2]
    returned = re.fullmatch(rf"sys_{name} -> (\S+)", body)
    if returned:
        return {"ret": returned[1]}
    said = {}
    for argument in re.fullmatch(rf"sys_{name}\((.*)\)", body)[1].split(", "):
        name, value, text = re.fullmatch(r'(\w+): (\S+)(?: "(.*)")?', argument).groups()
        if value.startswith("O_"):
            said[name] = dict(fields(event))[name] if f" {argument}," in event["text"] else value
        else:
            said[name] = value if "0x" in value or "O_" in body else f"0x{value}"
        if text is not None:
            said[f"__{name}_val"] = text
    return said


def said_of_probe(body, event):
    """'call: (0x55d0) n=1 text="a b"'; '(from <- function)' of a return. In the kernel they are symbols."""
    address, returned, rest = re.fullmatch(rf"{event['event']}: \((\S+)(?: <- (\S+))?\) (.*)", body, re.S).groups()
    names = [name for name, _ in fields(event)][2 if returned else 1:]
    places = {"__probe_func": returned, "__probe_ret_ip": address} if returned else {"__probe_ip": address}
    return {**{n: a for n, a in places.items() if a.startswith("0x")}, **dict(zip(names, split_raw(rest, names)))}


def said_of_tracepoint(body, event):
    """'sched_process_exec: filename=/bin/sh pid=7 old_pid=7'."""
    renamed = RENAMED.get(event["event"], {})
    names = [name for name, _ in fields(event)]
    values = split_raw(body.removeprefix(f"{event['event']}: "), [renamed.get(name, name) for name in names])
    return dict(zip(names, values))


def said_of(body, event):
    """What the text says of each field, by its name."""
    if event["event"] == "print":
        return {"buf": re.fullmatch(r"tracing_mark_write: (.*)", body, re.S)[1]}
    if event["system"] == "syscalls":
        return said_of_call(body, event)
    if event["system"] == "probes":
        return said_of_probe(body, event)
    return said_of_tracepoint(body, event)


# What the text leaves out.
UNSAID = {"print": {"ip"}, "syscalls": {"__syscall_nr", "mode"}, "opens": {"__probe_ip"}, "opened": {"__probe_func", "__probe_ret_ip"}}


class FixturePages(unittest.TestCase):
    def check_event(self, event, line):
        self.assertTrue(same_moment(event, line), f"{event} {line}")
        body = line["body"].rstrip("\n") if event["event"] != "print" else line["body"]
        said = said_of(body, event)
        for name, value in fields(event):
            if event["event"] == "print" and name == "buf":
                # The kernel ends the line where the text doesn't.
                self.assertIn(said.pop(name).rstrip("\n"), (value.rstrip("\n"),))
            elif name in said:
                self.assertTrue(same(value, said.pop(name)), f"{name}: {value!r} is not in {line}")
            else:
                self.assertIn(name, UNSAID.get(event["event"], UNSAID.get(event["system"], ())), line)
        self.assertEqual(said, {}, "the text says more")

    def check(self, folder, least):
        pages = Pages(folder)
        lines = read_kernel(folder / "expected/kernel-text.txt")
        self.assertEqual(len(pages.events), len(lines))
        self.assertGreaterEqual(len(lines), least)
        self.assertEqual([p["error"] for p in pages.pages], [None] * len(pages.pages))
        for event, line in zip(pages.events, lines):
            self.check_event(event, line)
        return pages

    def test_every_field(self):
        pages = self.check(FIXTURES / "pages", 50)
        seen = {e["event"] for e in pages.events}
        self.assertLessEqual({"sched_process_exec", "sched_process_fork", "sched_process_exit", "sys_enter_openat",
                              "sys_exit_openat", "sys_enter_getpgid", "call", "print"}, seen)
        # What the recorded programs did is known beforehand.
        calls = [dict(fields(e)) for e in pages.events if e["event"] == "call"]
        self.assertEqual([c["text"] for c in calls], [f"call {i} of 3" for i in range(3)])
        self.assertEqual([c["n"] for c in calls], [i * 0x9e3779b97f4a7c15 % 2**64 for i in range(3)])
        numbers = [dict(fields(e))["pid"] for e in pages.events if e["event"] == "sys_enter_getpgid"]
        self.assertEqual(numbers, [40, 41])
        # One of them is longer than the short form of an event's header can say.
        self.assertTrue(any(e["size"] > 112 for e in pages.events))

    def test_other_kernels(self):
        """The same small work on each kernel that the guests have, with probes in the kernel."""
        folders = sorted(FIXTURES.glob("guest-*"))
        self.assertGreaterEqual(len(folders), 4)
        for folder in folders:
            with self.subTest(kernel=folder.name):
                pages = self.check(folder, 40)
                events = {name: [dict(fields(e)) for e in pages.events if e["event"] == name]
                          for name in ("call", "opens", "opened", "sys_enter_openat", "sys_exit_openat",
                                       "sys_enter_getpgid", "sched_process_exec", "print")}
                # What was done is known beforehand.
                self.assertEqual([(c["n"], c["s"], c["text"]) for c in events["call"]],
                                 [(n, (n + 2**31) % 2**32 - 2**31, f"call {i} of 3")
                                  for i, n in enumerate(i * 0x9e3779b97f4a7c15 % 2**64 for i in range(3))])
                self.assertEqual([e["pid"] for e in events["sys_enter_getpgid"]], [40, 41])
                self.assertEqual([pathlib.Path(e["filename"]).name for e in events["sched_process_exec"]],
                                 ["sh", "workload_calls", "workload_numbers"])
                self.assertEqual([e["buf"].rstrip("\n") for e in events["print"]], ["a marker of the fixture"])
                # Two ways to see the same: the system call, and the function that does it.
                self.assertGreater(len(events["opens"]), 5)
                self.assertEqual([(e["dfd"], e["how"]["elements"][0] & ~0o100000) for e in events["opens"]],
                                 [((e["dfd"] + 2**31) % 2**32 - 2**31, e["flags"] & ~0o100000)
                                  for e in events["sys_enter_openat"]])
                self.assertEqual([e["r"] for e in events["opened"]],
                                 [(e["ret"] + 2**31) % 2**32 - 2**31 for e in events["sys_exit_openat"]])

    def test_a_sub_buffer_larger_than_a_page(self):
        pages = self.check(FIXTURES / "pages-large", 2)
        marker, long = pages.events
        self.assertGreater(marker["size"] + long["size"], 4096)
        # The kernel itself cut the marker, to what a page can hold.
        self.assertRegex(dict(fields(marker))["buf"], "^(0123456789){400,}[0-9]{0,9}\n?$")
        text = "".join(chr(ord("a") + i % 26) for i in range(1300))
        self.assertEqual([value for _, value in fields(long)][1:], [text] * 3)

    def test_lost_events(self):
        folder = FIXTURES / "pages-lost"
        pages = self.check(folder, 100)
        counts = {"overrun": 0, "read events": 0}
        for path in folder.glob("per_cpu/cpu*/stats"):
            for line in path.read_text().splitlines():
                name, value = line.split(": ", 1)
                if name in counts:
                    counts[name] += int(value)
        missed = [p for p in pages.pages if p["missed"]]
        self.assertEqual(sum(p["missed_count"] for p in missed), counts["overrun"])
        self.assertEqual(len(pages.events), counts["read events"])
        # 2000 calls were made, and the last ones are there.
        self.assertEqual(len(pages.events) + counts["overrun"], 2000)
        self.assertEqual([dict(fields(e))["pid"] for e in pages.events], list(range(3000 - len(pages.events), 3000)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
