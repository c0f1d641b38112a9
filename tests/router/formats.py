#!/usr/bin/env python3
"""Every format file of the corpus and of the running kernel makes a consistent schema, with the same fields as
libtraceevent reads from it; the few exceptions are listed with their reasons.
"""
import glob
import os
import pathlib
import re
import sys
import unittest

from dumped import CORPUS, page_dump

TRACEFS = pathlib.Path(os.environ.get("TRACEFAN_TRACEFS", "/sys/kernel/tracing"))
CORPUS_FORMATS = CORPUS / "formats"
LONG4 = ("trappy-arm32", "i686-4.13", "rpi-armv7-4.14", "kdoc-32bit", "arm32-exynos-bprint", "i686-4.13-rr")

# Fragments that no kernel gives as a file: without a name and a number there is no event.
REFUSED = {
    "bpftrace-test/test/array/format": "it has no name: line",
    "bpftrace-test/test/integer_types/format": "it has no name: line",
    "bpftrace-test/test/user_pointer/format": "it has no name: line",
    "bcc-test/sched/sched_wakeup_rt_noname/format": "it has no name: line",
}


def dump(files):
    files = sorted(map(str, files))
    narrow = [f for f in files if any(f"/{part}/" in f for part in LONG4)]
    wide = [f for f in files if f not in narrow]
    return (page_dump("--formats", 4, *narrow) if narrow else []) + (page_dump("--formats", 8, *wide) if wide else [])


def spelled(field):
    return (field["name"], re.sub(r"\s+", "", field["type"]), field["offset"], field["size"])


def probe_groups():
    """The systems of the probes that somebody has defined."""
    groups = set()
    for name in ("uprobe_events", "kprobe_events", "dynamic_events"):
        try:
            groups |= set(re.findall(r"^[a-z0-9]+:([^/ ]+)/", (TRACEFS / name).read_text(), re.M))
        except OSError:
            pass
    return groups


def count_fields(file):
    """The lines that declare a field, read by a third, simpler way."""
    return len(re.findall(r"^\s*field[^:]*:.*offset:", pathlib.Path(file).read_text(errors="replace").split("print fmt:")[0], re.M))


class Formats(unittest.TestCase):
    maxDiff = None

    def check_field(self, f, event):
        where = f"{event['file']}: {f}"
        self.assertIn(f["kind"], ("integer", "string", "bytes"), where)
        self.assertLessEqual(f["offset"] + f["size"], event["fixed_size"], where)
        if f["kind"] == "integer":
            self.assertIn(f["size"], (1, 2, 4, 8), where)
            self.assertEqual((f["place"], f["element_size"], f["count"]), ("fixed", f["size"], 1), where)
        elif f["place"] == "fixed":
            self.assertEqual(f["element_size"] * f["count"], f["size"], where)
        elif f["place"] == "tail":
            self.assertEqual((f["size"], f["count"]), (0, 0), where)
        else:
            self.assertIn(f["size"], (2, 4), where)
        if f["pointer"] and f["kind"] == "integer":
            self.assertEqual(f["display"], "hex", where)

    def check_event(self, event):
        for f in event["fields"]:
            self.check_field(f, event)
        ours, theirs = event["fields"], event["libtraceevent"]
        words = [f for f in ours if "[" in f["name"]]
        if words:
            # An array of location words: libtraceevent's list ends before it.
            self.assertLess(len(theirs), len(ours), event["file"])
            ours = ours[:len(theirs)]
        else:
            self.assertEqual(len(ours), count_fields(event["file"]), event["file"])
        self.assertEqual([spelled(f) for f in ours], [spelled(f) for f in theirs], event["file"])
        signed = re.findall(r"signed:", pathlib.Path(event["file"]).read_text(errors="replace"))
        if len(signed) == len(event["fields"]):
            self.assertEqual([f["signed"] for f in ours], [f["signed"] for f in theirs], event["file"])

    def check(self, files, refused):
        events = dump(files)
        self.assertEqual(len(events), len(list(files)))
        for event in events:
            with self.subTest(file=event["file"]):
                name = "/".join(event["file"].split("/")[-4:])
                self.assertEqual(event.get("refused"), refused.get(name))
                if "refused" not in event:
                    self.check_event(event)
        fields = sum(len(e.get("fields", ())) for e in events)
        print(f"\n{len(events)} files, {fields} fields, {sum('refused' in e for e in events)} refused")
        return events

    def test_the_corpus(self):
        if not CORPUS_FORMATS.is_dir():
            self.skipTest(f"no corpus at {CORPUS} (TRACEFAN_CORPUS)")
        self.check(list(CORPUS_FORMATS.rglob("format")) + list((CORPUS / "binary").rglob("format")), REFUSED)

    def test_the_running_kernel(self):
        # Probes come and go while others use the machine, also while their folders are read, which glob() survives and
        # rglob() doesn't; a kernel's own events stay.
        probes = probe_groups()
        files = [f for f in map(pathlib.Path, glob.glob(f"{TRACEFS}/events/*/*/format")) if os.access(f, os.R_OK)]
        probes |= probe_groups()
        files = [f for f in files if f.parts[-3] not in probes]
        if not files:
            self.skipTest(f"no format files can be read at {TRACEFS}")
        events = self.check(files, {})
        self.assertTrue(all(e["pid_offset"] == 4 for e in events))


class OddFormats(unittest.TestCase):
    """What the corpus' table names as odd, one by one."""

    def field(self, file, name):
        if not CORPUS_FORMATS.is_dir():
            self.skipTest(f"no corpus at {CORPUS} (TRACEFAN_CORPUS)")
        event, = dump([CORPUS_FORMATS / file / "format"])
        return next(f for f in event["fields"] if f["name"] == name)

    def expect(self, file, name, **said):
        found = self.field(file, name)
        self.assertEqual({k: found[k] for k in said}, said)

    def test_without_signed(self):
        self.expect("libtraceevent-utest/utest/dyn_str_old_event", "common_pid", signed=1)
        self.expect("libtraceevent-utest/utest/dyn_str_old_event", "irq", signed=1)
        self.expect("libtraceevent-utest/utest/dyn_str_old_event", "common_type", signed=0)
        self.expect("libtraceevent-utest/utest/dyn_str_old_event", "name", kind="string", place="data_loc", size=2)

    def test_sizes_that_disagree_with_the_type(self):
        self.expect("trappy-arm64-idle/syscalls/sys_enter_wait4", "upid", kind="integer", size=8, signed=0, display="hex")

    def test_relative_location(self):
        self.expect("lkml-rel-loc-user/user_events/tp_rel_loc", "text", kind="string", place="rel_loc")

    def test_tails(self):
        self.expect("rpi-armv7-4.14/ftrace/print", "buf", kind="string", place="tail", offset=12)
        self.expect("perfetto-synthetic_alt/ftrace/print", "buf", kind="string", place="tail")
        self.expect("rpi-armv7-4.14/ftrace/bprint", "buf", kind="bytes", place="tail", element_size=4)
        self.expect("i686-4.13/ftrace/raw_data", "buf", kind="bytes", place="tail", display="hex")

    def test_dimensions_that_are_no_numbers(self):
        self.expect("perfetto-synthetic_alt/sched/sched_switch", "next_comm", kind="string", count=16)

    def test_arrays(self):
        self.expect("perfetto-b281660544_new/f2fs/f2fs_truncate_partial_nodes", "nid", kind="bytes", element_size=4, count=3)
        self.expect("lisa-arm64-sched/xdp/xdp_exception", "prog_tag", kind="bytes", element_size=1, count=8, display="hex")
        self.expect("lisa-rust-test/ftrace/user_stack", "caller", kind="bytes", element_size=8, count=8)

    def test_masks_and_symbols(self):
        self.expect("trappy-arm32/thermal/thermal_power_cpu_get_power", "cpumask", kind="bytes", display="bitmask", element_size=4)
        self.expect("trappy-arm32/thermal/thermal_power_cpu_get_power", "load", kind="bytes", display="hex", element_size=4)
        self.expect("lisa-arm64-sched/filelock/posix_lock_inode", "fl_type", symbolic=1)
        self.expect("schedviz-x86_64/sched/sched_switch", "prev_state", symbolic=1, signed=1)

    def test_addresses(self):
        self.expect("trappy-arm64-idle/btrfs/free_extent_state", "state", pointer=1, display="hex", kind="integer")
        self.expect("lisa-arm64-rtapp/sunrpc/svc_xprt_do_enqueue", "ss", kind="bytes", element_size=1, count=128)
        self.expect("kdoc-32bit/uprobes/zfree_entry", "common_pid", kind="integer", signed=1)


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.testsRun == len(result.skipped) else 0)
