#!/usr/bin/python3
"""Compares a saved snapshot with what others say of the same program.

usage: stacks_and_names.py [--functions] FILE RECORD PROGRAM REFERENCE
       stacks_and_names.py --names FILE RECORD

FILE: a snapshot file (allocwatch-snapshot(5)).  RECORD: stacks of the program, as tests/live/oracle.h writes them.
Every stack with live blocks must be among them; the instruction at which it was taken, the first frame, may be another.
One that says that it is cut must be the beginning of one.
The names of every frame must be addr2line's: those of PROGRAM as it says of REFERENCE, the same program with its debug
information in it; those of a library NAME as it says of reference-NAME when there is such a file.  Where addr2line knows no
line the function is that of the symbol tables, nm's, whose size covers the place, or none; where it is of another opinion LLVM's
is asked, too: that of binutils takes a header's function for one of another file at times.  --functions: neither files nor lines
are known of the program, and of calls inlined into each other the outermost one alone.  --names: names alone, those of freed
blocks, too; of the stacks it is only counted how many are in RECORD.

Prints "stacks=N cut=N reason=N names=N second=N symbols=N", the numbers compared: of those with a line, of these the ones that
LLVM's agrees with alone, and of those by symbols; the reason is why stacks are cut, 0 when none is and -1 when there are several.
With --names it is "names=N second=N symbols=N stacks=N found=N", the last of the stacks that are in RECORD.  Exit status 1 after a
difference, which is printed.
"""
import bisect
import os
import re
import sqlite3
import subprocess
import sys

CALL = 1
TRUNCATED = 3
SHOWN = 5
CUT = "cut, for the reason"


class Snapshot:
    def __init__(self, path, with_freed=False):
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        # as the kernel names files that are gone
        self.modules = {number: path.removesuffix(" (deleted)")
                        for number, path in database.execute("SELECT id, path FROM module")}
        self.frames = {row[0]: row[1:] for row in database.execute("SELECT id, module, kind, offset FROM frame")}
        self.nodes = {row[0]: row[1:] for row in database.execute("SELECT id, parent, frame FROM node")}
        self.live = [row[0] for row in database.execute("SELECT DISTINCT stack FROM trace WHERE live_blocks > 0 OR ?", [with_freed])]
        self.names = {}
        for frame, function, file, line in database.execute(
                "SELECT frame, function.text, file.text, line FROM location"
                " LEFT JOIN string AS function ON function.id = function"
                " LEFT JOIN string AS file ON file.id = file ORDER BY frame, position"):
            self.names.setdefault(frame, []).append((function or "", file or "", line))

    def stack(self, node):
        """The ids of its frames, from the most recent one on."""
        result = []
        while node:
            node, frame = self.nodes[node]
            result.append(frame)
        return result

    def place(self, frame):
        module, kind, offset = self.frames[frame]
        if kind == TRUNCATED:
            return (CUT, offset)
        return (self.modules.get(module, ""), offset % (1 << 64))


def read_record(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            words = line.rstrip("\n").split("\t")
            yield tuple((words[i], int(words[i + 1], 16)) for i in range(0, len(words) - 1, 2))


def show(what, things):
    print(what)
    for thing in things:
        print("   ", thing)


def compare_stacks(snapshot, record):
    known = {stack[1:] for stack in read_record(record)}
    reasons = set()
    beginnings = {stack[:end] for stack in known for end in range(1, len(stack) + 1)}
    cut = wrong = 0
    for node in snapshot.live:
        stack = tuple(snapshot.place(frame) for frame in snapshot.stack(node))
        is_cut = stack[-1][0].startswith(CUT)
        cut += is_cut
        if is_cut:
            reasons.add(stack[-1][1])
        if stack[1:-1] in beginnings if is_cut else stack[1:] in known:
            continue
        wrong += 1
        if wrong <= SHOWN:
            show("no such stack is known:", [f"{path} {offset:#x}" for path, offset in stack])
            show("    named:", [snapshot.names.get(frame) for frame in snapshot.stack(node)])
    return len(snapshot.live), cut, reasons, wrong


def addr2line(tool, path, addresses):
    """[(function, file, line), ...] of each address, from the innermost outwards; nothing where there is no line."""
    words = [tool, "-a", "-f", "-i", "-C", "-e", path] + [hex(address) for address in addresses]
    lines = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    groups = []
    for line in lines:
        if re.fullmatch("0x[0-9a-f]+", line):
            groups.append([])
        else:
            # Go's symbols tell which convention a function is called by, its debug information does not
            groups[-1].append(re.sub(r" \(discriminator \d+\)$|\.abi0$", "", line))
    for group in groups:
        places = []
        for function, place in zip(group[::2], group[1::2]):
            file, _, line = place.rpartition(":")
            if line.isdigit() and int(line) > 0:
                places.append((function, os.path.normpath(file), int(line)))
        yield places


def count_known(snapshot, record):
    known = {stack[1:] for stack in read_record(record)}
    found = 0
    for node in snapshot.live:
        stack = snapshot.stack(node)
        found += tuple(snapshot.place(frame) for frame in stack)[1:] in known
    return len(snapshot.live), found


class Symbols:
    """The functions of a file's symbol tables, and of those of its debug information's by its build-id."""

    def __init__(self, path):
        functions = set()
        for file in [path, *debug_file_of(path)]:
            for tables in [], ["-D"]:
                functions |= set(functions_of(file, tables))
        self.functions = sorted(functions)
        self.longest = max((size for _, size, _ in self.functions), default=0)

    def at(self, address):
        """The names that are right there, None among them where none is as well."""
        names = set()
        end = bisect.bisect_right(self.functions, (address, float("inf"), ""))
        for start, size, name in reversed(self.functions[:end]):
            if address - start >= self.longest:
                break
            if address < start + size:
                names.add(name)
        if names:
            return names
        # the end of one without a size is not known
        first = bisect.bisect_left(self.functions, self.functions[end - 1][:1]) if end else 0
        return {None} | {name for _, size, name in self.functions[first:end] if not size}


def debug_file_of(path):
    notes = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True).stdout
    found = re.search("Build ID: ([0-9a-f]{2})([0-9a-f]+)", notes)
    file = f"/usr/lib/debug/.build-id/{found[1]}/{found[2]}.debug" if found else ""
    return [file] if os.path.exists(file) else []


def functions_of(file, tables):
    lines = subprocess.run(["nm", "-C", "-S", "--defined-only", *tables, file], check=False, capture_output=True, text=True).stdout
    for line in lines.splitlines():
        words = re.fullmatch("([0-9a-f]+) (?:([0-9a-f]+) )?[TtWwiu] ([^@]+)(?:@.*)?", line)
        if words:
            yield int(words[1], 16), int(words[2] or "0", 16), words[3]


def is_same(ours, theirs, functions_only):
    if functions_only:
        return [name[0] for name in ours] == [theirs[-1][0]]
    return ours == theirs


def compare_names(snapshot, program, reference, functions_only):
    by_module = {}
    for node in snapshot.live:
        for frame in snapshot.stack(node):
            module, kind, offset = snapshot.frames[frame]
            if kind != TRUNCATED and module is not None:
                by_module.setdefault(module, {})[frame] = offset - (kind == CALL)
    compared = second = by_symbols = wrong = 0
    for module, addresses in by_module.items():
        path = snapshot.modules[module]
        is_program = os.path.basename(path) == os.path.basename(program)
        own_reference = "reference-" + os.path.basename(path)
        if is_program:
            path = reference
        elif os.path.exists(own_reference):
            path = own_reference
        if not os.path.exists(path):
            continue
        symbols = None
        for frame, theirs in zip(addresses, addr2line("addr2line", path, addresses.values())):
            ours = [(function, os.path.normpath(file), line) for function, file, line in snapshot.names.get(frame, [])]
            if not theirs:
                symbols = symbols or Symbols(path)
                right = symbols.at(addresses[frame])
                by_symbols += 1
                if (ours[-1][0] if ours else None) in right:
                    continue
                wrong += 1
                if wrong <= SHOWN:
                    show(f"{path} {addresses[frame]:#x}:", [f"symbols: {right}", f"ours:    {ours}"])
                continue
            compared += 1
            if is_same(ours, theirs, functions_only and is_program):
                continue
            others = next(addr2line("llvm-addr2line", path, [addresses[frame]]))
            if is_same(ours, others, functions_only and is_program):
                second += 1
                continue
            wrong += 1
            if wrong <= SHOWN:
                show(f"{path} {addresses[frame]:#x}:", [f"addr2line: {theirs}", f"LLVM's:    {others}", f"ours:      {ours}"])
    return compared, second, by_symbols, wrong


def main():
    if sys.argv[1] == "--names":
        snapshot = Snapshot(sys.argv[2], True)
        names, second, symbols, wrong = compare_names(snapshot, "", "", False)
        stacks, found = count_known(snapshot, sys.argv[3])
        print(f"names={names} second={second} symbols={symbols} stacks={stacks} found={found}")
        sys.exit(f"{wrong} names differ" if wrong else 0)
    functions_only = sys.argv[1] == "--functions"
    file, record, program, reference = sys.argv[1 + functions_only:]
    snapshot = Snapshot(file)
    stacks, cut, reasons, wrong_stacks = compare_stacks(snapshot, record)
    names, second, symbols, wrong_names = compare_names(snapshot, program, reference, functions_only)
    reason = max(reasons, default=0) if len(reasons) < 2 else -1
    print(f"stacks={stacks} cut={cut} reason={reason} names={names} second={second} symbols={symbols}")
    if wrong_stacks or wrong_names:
        sys.exit(f"{wrong_stacks} stacks and {wrong_names} names differ")


main()
