#!/usr/bin/env python3
"""The code takes its steps in the order of the models.

usage: steps.py PROGRAM TREE      (PROGRAM is `steps`, which says what the code of shm does)

In a model, what stands between the comments "steps NAME" and "end" is compared with the program's line of that name: each
STORE, CLEAR (a store of 0, which takes back), LOAD, EXCHANGE and FENCE there, in the order of the text, as the model is with
no part left out. Where a model takes all of it for one step, a comment says the order: "steps NAME: STORE A, STORE B".

A comment "In FILE, FUNCTION: a( < b(" says what stands in the text of a function, each once and in this order: calls whose
order no single process can show.
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# Two words of a record.
SAME = {"FIRST": "DATA", "SECOND": "DATA"}
# What the code reads as any other memory, where nothing can note it; `steps` spoils entries instead, and slots are the caller's.
UNSEEN = {("pool.pml", "LOAD ENTRY"), ("pool.pml", "LOAD SLOT")}
ACCESS = re.compile(r"\bSTORE\(\w+, ([A-Z_]+)|\bLOAD\(\w+, ([A-Z_]+)|\bEXCHANGE\(\w+, ([A-Z_]+)|\b(FENCE)\(|"
                    r"(\w+)(?:\[use\])? = ([^;]*); STEP")


def as_it_is(text):
    """Without the parts that are there with a definition of run.py's, and with those that are there without one."""
    out, kept = [], [True]
    for line in text.splitlines():
        word = line.split()[0] if line.split() else ""
        if word in ("#ifdef", "#ifndef"):
            kept.append(kept[-1] and (word == "#ifndef"))
        elif word == "#else":
            kept[-1] = kept[-2] and not kept[-1]
        elif word == "#endif":
            kept.pop()
        elif kept[-1]:
            out.append(line)
    return "\n".join(out)


def expand(text, inlines):
    """With inlines in the place of their calls."""
    while True:
        new = re.sub(r"\b(\w+)\([^()]*\)", lambda m: inlines.get(m[1], m[0]), text)
        if new == text:
            return text
        text = new


def accesses(text):
    """What a piece of a model does to shared memory, nothing twice in a row."""
    found = []
    for m in ACCESS.finditer(text):
        store, load, exchange, fence, step, value = m.groups()
        word = (f"STORE {SAME.get(store, store)}" if store else f"LOAD {SAME.get(load, load)}" if load else
                f"EXCHANGE {exchange}" if exchange else fence or f"{'CLEAR' if value == '0' else 'STORE'} {step.upper()}")
        if not found or found[-1] != word:
            found.append(word)
    return found


def read_model(path):
    """{name: accesses} of a model."""
    text = as_it_is(path.read_text())
    inlines = {m[1]: m[2] for m in re.finditer(r"^inline (\w+)\([^)]*\)\n\{\n(.*?)\n\}$", text, re.M | re.S)}
    steps = {}
    for m in re.finditer(r"steps (\w+) \*/(.*?)/\* end \*/", text, re.S):
        words = accesses(expand(m[2], inlines))
        steps[m[1]] = [w for w in words if (path.name, w) not in UNSEEN]
    for m in re.finditer(r"steps (\w+): ([A-Z, ]+)$", text, re.M):
        steps[m[1]] = m[2].split(", ")
    return steps


def compare(program):
    """How many differ; every piece of every model must be in the program, and the other way about."""
    out = subprocess.run([program], capture_output=True, text=True)
    if out.returncode:
        sys.exit(out.stdout + out.stderr)
    code = {(m[1], m[2]): m[3].split(", ") for m in re.finditer(r"^(\w+\.pml) (\w+): (.*)$", out.stdout + out.stderr, re.M)}
    models = {(path.name, name): words for path in sorted(HERE.glob("*.pml")) for name, words in read_model(path).items()}
    wrong = 0
    for key in sorted(code.keys() | models.keys()):
        model = models.get(key, ["nothing"])
        # A model knows nothing of what its proof doesn't need.
        known = {w.split()[-1] for w in model}
        does = [w for w in code.get(key, ["nothing"]) if w.split()[-1] in known or key not in models]
        if does != model:
            wrong += 1
            print(f"{key[0]} {key[1]}:\n  model: {', '.join(model)}\n  code:  {', '.join(does)}")
    print(f"{len(models)} pieces of the models, {wrong} in another order in the code")
    return wrong


def check_texts(tree):
    wrong = count = 0
    for path in sorted(HERE.glob("*.pml")):
        for m in re.finditer(r"In ([\w/]+\.c), (\w+): (.*?)(?: \*/)?$", path.read_text(), re.M):
            count += 1
            body = re.search(r"^[^\n]*\b%s\([^;{]*\)\n\{\n(.*?)^\}" % m[2], (tree / m[1]).read_text(), re.M | re.S)
            places = [[f.start() for f in re.finditer(re.escape(word), body[1] if body else "")] for word in m[3].split(" < ")]
            if not all(len(p) == 1 for p in places) or places != sorted(places):
                wrong += 1
                print(f"{path.name}: {m[1]}, {m[2]}: not once each, in this order: {m[3]}")
    print(f"{count} functions, {wrong} in another order than the models")
    return wrong or not count


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(1 if compare(sys.argv[1]) + check_texts(pathlib.Path(sys.argv[2])) else 0)
