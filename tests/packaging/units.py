#!/usr/bin/env python3
"""The systemd units: what systemd says of them, and that the daemons live with what the units leave them.

usage: units.py TREE UNITS     (UNITS: their folder in the build folder; TRACEFAN_BUILD: that one)
"""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(sys.argv[1]).resolve()
UNITS = pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(TREE / "tests" / "integration"))
import harness  # noqa: E402

# The router's is fixed; the reader's is what its work allows, and must not get worse unnoticed.
EXPOSURE = {"reader": 2.2, "router": 2.0}


def settings(daemon, key):
    """The values of all lines of a key, joined."""
    text = (UNITS / f"tracefan-{daemon}@.service").read_text()
    return " ".join(re.findall(rf"^{key}=(.*)$", text, re.M))


def analyze(*words):
    return subprocess.run(["systemd-analyze", "--no-pager", *words], capture_output=True, text=True, timeout=120)


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze isn't installed")
class Analyzed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.units = {}
        for daemon in EXPOSURE:
            # As an instance, and with programs that are there.
            unit = pathlib.Path(folder.name, f"tracefan-{daemon}@check.service")
            text = (UNITS / f"tracefan-{daemon}@.service").read_text()
            program = harness.program(f"tracefan-{daemon}")
            text, count = re.subn(rf"(?m)^ExecStart=/\S+/tracefan-{daemon} ", f"ExecStart={program} ", text)
            self.assertEqual(count, 1)
            unit.write_text(text.replace("=tracefan-router\n", "=daemon\n"))
            self.units[daemon] = unit

    def test_verify(self):
        result = analyze("verify", "--man=no", *map(str, self.units.values()))
        ours = [line for line in (result.stdout + result.stderr).splitlines() if "tracefan" in line]
        self.assertEqual(ours, [])

    def test_security(self):
        for daemon, limit in EXPOSURE.items():
            result = analyze("security", "--offline=true", str(self.units[daemon]))
            level = re.search(r"Overall exposure level for .*: ([0-9.]+)", result.stdout)
            self.assertTrue(level, result.stdout + result.stderr)
            print(f"tracefan-{daemon}: exposure {level[1]}")
            self.assertLessEqual(float(level[1]), limit, result.stdout)


class Documented(unittest.TestCase):
    def test_every_setting_is_in_the_manual_and_the_example(self):
        table = (TREE / "reader" / "setting.c").read_text()
        keys = re.findall(r'\{ "(\w+)", "([\w-]+)", ', table)
        self.assertGreater(len(keys), 8)
        page = (TREE / "docs" / "man" / "tracefan.conf.5").read_text()
        in_page = [(section, key) for section, body in re.findall(r"^\.SH \[(\w+)\]\n(.*?)(?=^\.SH)", page, re.M | re.S)
                   for key in re.findall(r"^\.TP\n\.B ([\w-]+)$", body, re.M)]
        self.assertEqual(sorted(in_page), sorted(keys))
        example = (TREE / "packaging" / "tracefan.conf.example").read_text()
        sections = re.split(r"^\[(\w+)\]$", example, flags=re.M)
        in_example = [(section, key) for section, body in zip(sections[1::2], sections[2::2]) if section != "probes"
                      for key in re.findall(r"^#?([\w-]+) =", body, re.M)]
        self.assertEqual(sorted(in_example), sorted(keys))


class Agreeing(unittest.TestCase):
    def test_what_the_reader_writes_is_writable(self):
        """The unit leaves it what its own table of files does."""
        table = re.search(r"tracefs_kept\[\] = \{\n(.*?)\n\};", (TREE / "reader" / "sandbox.c").read_text(), re.S)[1]
        written = {path for path, access in re.findall(r'\{ "(\w+)", ([\w| ]+),', table)
                   if re.search("CONFINE_(WRITE|REMOVE)", access)}
        self.assertGreater(len(written), 2)
        tracing = "/sys/kernel/tracing/"
        paths = [path.lstrip("-") for path in settings("reader", "ReadWritePaths").split()]
        self.assertEqual({path[len(tracing):] for path in paths if path.startswith(tracing)}, written)


class Confined(harness.TestCase):
    """The reader with the capabilities, limits and mounts that its unit leaves it."""

    def prefix(self):
        kept = settings("reader", "CapabilityBoundingSet").lower().replace("cap_", "").split()
        writable = [path.lstrip("-") for path in settings("reader", "ReadWritePaths").split()]
        writable = [path for path in writable if os.path.exists(path)]
        script = "set -e\n"
        for path in writable:
            script += f"mount --bind {path} {path}\n"
        script += f"mount -o remount,bind,ro {harness.TRACEFS}\n"
        # Less than the unit gives, where this machine doesn't let it have that much.
        most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
        locked = 256 << 20 if most == resource.RLIM_INFINITY else min(most, 256 << 20)
        script += f"exec prlimit --memlock={locked} setpriv --inh-caps=-all --bounding-set=-all,+{',+'.join(kept)} \"$@\"\n"
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]

    def test_a_session(self):
        harness.require_tracefs()
        for tool in ("setpriv", "prlimit", "unshare"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} isn't installed")
        self.assertEqual(settings("reader", "LimitMEMLOCK"), "256M")
        prefix = self.prefix()

        class Session(harness.Session):
            def _start(self, daemon, *words):
                notify = self._notify[daemon]
                before = prefix if daemon == "reader" else []
                process = harness.Process([*before, harness.program(f"tracefan-{daemon}"), "--session", self.name, *words],
                                          env={"NOTIFY_SOCKET": str(notify.path)})
                notify.wait_ready(process)
                return process

        session = Session(self.folder)
        result = session.trace("-e", f"uprobe:{harness.program('workload_numbers')}:0x1000", "-e",
                               "tracepoint:sched:sched_process_exec", "-o", "json", "--", "cat", "/dev/null", uid=0).wait()
        self.check_ended(result)
        self.assertIn("cat", [e["comm"] for e in result.of("sched:sched_process_exec")])
        self.assertEqual(session.stop(), (0, 0), session.reader.err)


if __name__ == "__main__":
    del sys.argv[1:3]
    harness.main()
