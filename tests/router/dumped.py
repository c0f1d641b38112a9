"""What page_dump makes of raw pages and format files, and what trace-cmd's reports say: for the tests that
compare the two. The environment says where things are:

    TRACEFAN_BUILD    the folder of the built programs
    TRACEFAN_CORPUS   real captures (default ../shared/corpus beside the source tree)
"""
import json
import os
import pathlib
import re
import subprocess

BUILD = pathlib.Path(os.environ.get("TRACEFAN_BUILD", "build/dev")).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
CORPUS = pathlib.Path(os.environ.get("TRACEFAN_CORPUS") or SOURCE.parent / "shared" / "corpus")


def page_dump(*args, text=None):
    out = subprocess.run([BUILD / "page_dump", *map(str, args)], check=True, capture_output=True, text=True, input=text)
    if out.stderr:
        raise AssertionError(f"page_dump wrote to stderr: {out.stderr}")
    return [json.loads(line) for line in out.stdout.splitlines()]


class Pages:
    """A decoded folder: its pages, and its events in the order in which trace-cmd merges CPUs."""

    def __init__(self, folder):
        lines = page_dump(folder)
        self.pages = [line for line in lines if line["kind"] == "page"]
        events = [line for line in lines if line["kind"] == "event"]
        self.events = sorted(events, key=lambda e: (e["time"], e["cpu"]))


def fields(event, common=False):
    """[(name, value)], in the format file's order."""
    return [(n, v) for n, v in event["fields"] if common or not n.startswith("common_")]


def field(event, name):
    return next(v for n, v in event["fields"] if n == name)


REPORT = re.compile(r"^ *(?P<comm>.*?)-(?P<pid>\d+) +\[(?P<cpu>\d+)\] +(?P<s>\d+)\.(?P<ns>\d{9}): (?P<event>[^ :]+): *(?P<rest>.*)$")


def read_report(path):
    """The events of "trace-cmd report -N -t": pid, cpu, time in ns, event, rest of the text. A line that
    begins none belongs to the event before it."""
    events = []
    for line in path.read_text(encoding="latin-1").split("\n"):
        match = REPORT.match(line)
        if match:
            events.append({"pid": int(match["pid"]), "cpu": int(match["cpu"]), "event": match["event"], "rest": match["rest"],
                           "time": int(match["s"]) * 10**9 + int(match["ns"])})
        elif events:
            events[-1]["rest"] += "\n" + line
    return events


KERNEL = re.compile(r"^ *(?P<comm>.*)-(?P<pid>\d+) +(?:\( *\d+\) )?\[(?P<cpu>\d+)\] [^ ]+ +(?P<s>\d+)\.(?P<us>\d{6}): (?P<body>.*)$")


def read_kernel(path):
    """The same from the kernel's own text: the time is rounded to microseconds, and what follows it is left whole."""
    events = []
    for line in path.read_text(encoding="latin-1").split("\n"):
        m = KERNEL.match(line)
        if m:
            events.append({"comm": m["comm"], "pid": int(m["pid"]), "cpu": int(m["cpu"]), "body": m["body"],
                           "us": int(m["s"]) * 10**6 + int(m["us"])})
        elif events:
            events[-1]["body"] += "\n" + line
    return events


def same_moment(event, line):
    """Time as the kernel rounds it, CPU and thread; the thread's number stands at the same place in every kernel."""
    pid = int.from_bytes(bytes.fromhex(event["data"])[4:8], "little", signed=True)
    return ((event["time"] + 500) // 1000, event["cpu"], pid) == (line["us"], line["cpu"], line["pid"])


def split_raw(rest, names):
    """The values of "a=1 b=x y c=3", which only the fields' names can part; None where they don't fit."""
    values, at = [], 0
    for i, name in enumerate(names):
        begin = f"{name}=" if i == 0 else f" {name}="
        if not rest.startswith(begin, at):
            return None
        at += len(begin)
        end = rest.find(f" {names[i + 1]}=", at) if i + 1 < len(names) else len(rest)
        if end < 0:
            return None
        values.append(rest[at:end])
        at = end
    return values


def same_value(value, said):
    """Whether a decoded value is what "trace-cmd report -R" said of it."""
    if isinstance(value, int):
        number = re.fullmatch(r"(0x)?(-?[0-9a-fA-F]+)", said)
        return bool(number) and int(number[2], 16 if number[1] else 10) % 2**64 in (value % 2**64, value % 2**32)
    if isinstance(value, str):
        return value.rstrip("\n") == said.rstrip("\n")
    listed = re.fullmatch(r"ARRAY\[([0-9a-f, ]*)\]", said)
    return bool(listed) and listed[1].replace(", ", "") == value["hex"]
