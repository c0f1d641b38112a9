#!/usr/bin/env python3
"""Runs the tests that depend on the kernel inside a guest with another one.

usage: guest_test.py [--short] BUILD VERSION [NAME]...

VERSION is one that get-kernel knows. Taken are the tests of the build folder that carry one of LABELS, or those
NAMEd; with --short without those that the kernel's version is little to. One machine is booted for all of them. Exit status 77: this host can't do it, and why is said.
"""
import ast
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
# The rest is pure, or does not meet the kernel's tracing.
LABELS = {"integration", "reader", "base", "guest"}
# Emulation measures nothing, and the peers aren't there.
NOT_LABELS = {"bench"}
# Who dies, who may do what, who is hostile, what is said of what, and how much for how long: long, and the same on any kernel.
NOT_SHORT = {"integration_" + name for name in (
    "adoption", "command_line", "consumers", "dead_or_stopped", "deployment", "endings", "faults", "faults_verbs", "forgery", "functions", "hanging",
    "harness", "hostile", "install", "interference", "kept_out", "killing", "leaving", "ledger", "limits", "million", "policy", "replay",
    "reports_decoding", "reports_loss", "reports_reading", "session_life", "soak", "starts", "state", "time_namespace",
    "top")} | {"reader_hostile", "reader_impostor"}
# Modules of the standard library that are imported late, when something fails or ends.
LATE = {"difflib", "encodings.idna", "encodings.latin_1", "pprint", "traceback", "unittest.mock"}
SETTINGS = ("TRACEFAN_SCALE=0.02", "TRACEFAN_GUEST=1", "PYTHONDONTWRITEBYTECODE=1")
# Where busybox's own would do something else, or go by its name.
TOOLS = ("cat", "chmod", "cp", "echo", "env", "false", "ls", "mkdir", "mv", "nice", "nm", "readelf", "rm", "setarch", "sh", "sleep",
         "sort", "stat", "strip", "timeout", "touch", "true", "uname", "unshare")


def list_tests(build, names):
    """ctest's own list: [{"name", "command", "environment"}]."""
    out = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True).stdout
    for test in json.loads(out)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", ())}
        labels = set(properties.get("LABELS", ()))
        wanted = test["name"] in names if names else labels & LABELS and not labels & NOT_LABELS
        if wanted and "command" in test:
            command = test["command"]
            # The interpreter itself: what the build found may be a wrapper that picks one.
            if os.path.basename(command[0]).startswith("python"):
                command = [sys.executable, *command[1:]]
            yield {"name": test["name"], "command": command, "environment": properties.get("ENVIRONMENT", ()),
                   "timeout": float(properties.get("TIMEOUT", 600))}


def trees():
    """Every Python file of the tests, parsed."""
    for path in (TREE / "tests").rglob("*.py"):
        yield ast.parse(path.read_text())


def imported(tree):
    """The modules that a file names in its imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def programs(build):
    """What the tests run of the build folder: each program whose name stands in one of them, and the examples."""
    words = {node.value for tree in trees() for node in ast.walk(tree)
             if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    names = words & {path.name for path in build.iterdir() if path.is_file() and os.access(path, os.X_OK)}
    more = [path for pattern in ("libtracefan*.so*", "example-*") for path in build.glob(pattern)]
    return {str(path) for path in (*(build / name for name in names), *more)}


def python_files():
    """The interpreter and what of its library the tests load: some hundred files instead of thousands."""
    wanted = LATE.union(*map(imported, trees()))
    library = sorted(name for name in wanted if name.partition(".")[0] in sys.stdlib_module_names)
    code = ("import importlib, sys\n"
            f"for name in {library!r}: importlib.import_module(name)\n"
            "print(sys.executable)\n"
            "for module in list(sys.modules.values()):\n"
            "    print(getattr(module, '__file__', None) or '')\n"
            "    print(getattr(module, '__cached__', None) or '')\n")
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return {line for line in out.splitlines() if os.path.exists(line)}


def needed_files(build, tests):
    files = python_files() | programs(build) | {str(TREE / "tests"), str(TREE / "docs" / "trust.md"), str(TREE / "README.md"), str(HERE / "guest_run.py")}
    # What the tests that ran on this machine have compiled: there is no compiler in the guest.
    files |= {str(path) for path in [build / "compiled"] if path.exists()}
    for test in tests:
        files |= {word for word in test["command"] if word.startswith("/") and os.path.exists(word)}
    return files | {path for path in map(shutil.which, TOOLS) if path}


def main(build, version, names, short):
    build = pathlib.Path(build).resolve()
    tests = [test for test in list_tests(build, names) if not short or test["name"] not in NOT_SHORT]
    if not tests:
        sys.exit("guest_test: no such tests")
    with tempfile.TemporaryDirectory() as folder:
        plan, listing = pathlib.Path(folder, "plan"), pathlib.Path(folder, "files")
        plan.write_text(json.dumps(tests))
        listing.write_text("\n".join(sorted(needed_files(build, tests) | {str(plan)})))
        words = [w for s in SETTINGS for w in ("-e", s)]
        return subprocess.run([HERE / "run-guest", "-t", "1500", "-F", listing, *words, version,
                               sys.executable, HERE / "guest_run.py", plan]).returncode


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--short"]
    if len(words) < 2:
        sys.exit(__doc__)
    sys.exit(main(words[0], words[1], words[2:], "--short" in sys.argv))
