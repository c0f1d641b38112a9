#!/usr/bin/env python3
"""The public library's surface: header, symbol map, shared library and archive name the same functions, and
the header compiles alone as C11 and C++.

usage: client_api.py HEADER MAP LIBRARY ARCHIVE PKGCONFIG NM COMPILER
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ARGS = None


def in_header():
    text = re.sub(r"/\*.*?\*/", "", open(ARGS["header"]).read(), flags=re.S)
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    inline = set(re.findall(r"\bstatic inline\b[^;{]*?\b(tfan_\w+)\(", text))
    return set(re.findall(r"\b(tfan_\w+)\(", text)) - inline


def in_map():
    text = re.sub(r"/\*.*?\*/", "", open(ARGS["map"]).read(), flags=re.S)
    return set(re.findall(r"\b(tfan_\w+);", text))


def defined(*words):
    out = subprocess.run([ARGS["nm"], *words], check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1] for line in out.splitlines() if len(line.split()) == 3}
    return {re.sub(r"@.*", "", n) for n in names if not n.startswith("TRACEFAN_")}


class Surface(unittest.TestCase):
    def test_map_equals_header(self):
        self.assertEqual(in_map(), in_header())

    def test_shared_library_exports_the_map(self):
        self.assertEqual(defined("-D", "--defined-only", ARGS["library"]), in_map())

    def test_archive_exports_the_map(self):
        self.assertEqual(defined("-g", "--defined-only", ARGS["archive"]), in_map())

    def test_soname(self):
        out = subprocess.run(["readelf", "-d", ARGS["library"]], check=True, capture_output=True, text=True).stdout
        self.assertRegex(out, r"SONAME.*\[libtracefan\.so\.\d+\]")

    def test_pkgconfig_names_the_library(self):
        out = subprocess.run(["pkg-config", "--libs", ARGS["pkgconfig"]], capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn("-ltracefan", out.stdout)


class Header(unittest.TestCase):
    def compile(self, compiler, *flags, language):
        if not shutil.which(compiler):
            self.skipTest(f"no {compiler} here")
        # Included as a program does it: as the main file, its inline functions would count as forgotten.
        r = subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", language, "-"],
                           input=f'#include "{os.path.abspath(ARGS["header"])}"\n', capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_c11(self):
        for compiler in "gcc", "clang":
            with self.subTest(compiler=compiler):
                self.compile(compiler, "-std=c11", language="c")

    def test_cxx(self):
        for compiler in "g++", "clang++":
            with self.subTest(compiler=compiler):
                self.compile(compiler, "-std=c++17", language="c++")


class Static(unittest.TestCase):
    def test_a_program_may_use_our_inner_names(self):
        """The archive keeps its inner functions to itself."""
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "a.c"), os.path.join(folder, "a")
            with open(source, "w") as out:
                out.write('#include <tracefan.h>\nint control_send(void);\nint control_send(void) { return 7; }\n'
                          'int main(void) { struct tfan *t = 0; struct tfan_options o = TFAN_OPTIONS;\n'
                          'o.session = "1"; int bad = tfan_open(&o, &t) == 0 || '
                          'tfan_failure(t)->category != TFAN_USAGE || control_send() != 7; tfan_close(t); return bad; }\n')
            sanitize = [f for f in os.environ.get("CLIENT_API_FLAGS", "").split() if f]
            subprocess.run([ARGS["compiler"], *sanitize, "-I", os.path.dirname(ARGS["header"]), source, ARGS["archive"],
                            "-ldw", "-lelf", "-o", program], check=True)
            self.assertEqual(subprocess.run([program]).returncode, 0)


if __name__ == "__main__":
    if len(sys.argv) != 8:
        sys.exit(__doc__)
    ARGS = dict(zip(["header", "map", "library", "archive", "pkgconfig", "nm", "compiler"], sys.argv[1:]))
    unittest.main(argv=sys.argv[:1], verbosity=2)
