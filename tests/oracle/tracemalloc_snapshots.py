#!/usr/bin/python3
"""The client's stats and diff of snapshot files against Python's own tracemalloc on what the client
exports of the same files: what is printed, byte for byte.

    tracemalloc_snapshots.py ALLOCWATCH SEED FILE...

Each file is compared by every key, cumulative or not, with random filters, and with the file before it.
Prints how many rows were compared; to compare nothing is a failure.
"""
import glob
import linecache
import os
import random
import re
import subprocess
import sys
import tempfile
import tracemalloc

KEYS = [("lineno", False), ("filename", False), ("traceback", False), ("lineno", True), ("filename", True)]
DOMAINS = {0: "malloc", 1: "mmap", 2: "new", 3: "python", 100: "user"}
# What INTERFACE names: a frame without line information has no ":0" behind it.
NAMELESS = re.compile(r"\((.*)\+0x[0-9a-f]+\)$", re.DOTALL)


def printable(text, keep_tabs=False):
    """What the client makes of what a terminal must not see."""
    out = []
    for character in text:
        code = ord(character)
        if 0xdc80 <= code <= 0xdcff:
            out.append("\\x%02x" % (code - 0xdc00))
        elif (code < 0x20 or 0x7f <= code < 0xa0) and not (keep_tabs and character == "\t"):
            out.extend("\\x%02x" % byte for byte in character.encode())
        else:
            out.append(character)
    return "".join(out)


def is_nameless(frame):
    return frame.lineno == 0 and NAMELESS.search(frame.filename)


def line_of(stat):
    """str(stat) with our one exception."""
    frame, text = stat.traceback[0], str(stat)
    start = "%s:%s" % (frame.filename, frame.lineno)
    if not text.startswith(start + ": size="):
        sys.exit("str() of a statistic is not as expected: %r" % text)
    shown = printable(frame.filename)
    return (shown if is_nameless(frame) else "%s:%s" % (shown, frame.lineno)) + text[len(start):] + "\n"


def formatted(traceback, limit, first):
    """Traceback.format() with our one exception; one entry a frame, as format() goes over them."""
    out = []
    lines = traceback.format(limit, first)
    while lines:
        head = lines.pop(0)
        if not head.startswith('  File "'):
            sys.exit("a line of a traceback is not as expected: %r" % head)
        name, _, line = head[len('  File "'):].rpartition('", line ')
        nameless = line == "0" and NAMELESS.search(name)
        out.append('  File "%s"' % printable(name) + ("" if nameless else ", line " + line))
        while lines and lines[0].startswith("    "):
            out.append(printable(lines.pop(0), True))
    return "".join(line + "\n" for line in out)


def group_of(stat, diff, limit, first):
    """The documentation's way to print a group by traceback."""
    if diff:
        head = "%d memory blocks (%+d): %.1f KiB (%+.1f KiB)\n" % (
            stat.count, stat.count_diff, stat.size / 1024, stat.size_diff / 1024)
    else:
        head = "%s memory blocks: %.1f KiB\n" % (stat.count, stat.size / 1024)
    return head + formatted(stat.traceback, limit, first)


def pretty(stats, limit):
    """display_top() of the documentation."""
    out = ["Top %s lines" % limit]
    for index, stat in enumerate(stats[:limit], 1):
        frame = stat.traceback[0]
        # Of OBJECT(FUNCTION+0xOFF) the object alone is a path.
        match = is_nameless(frame)
        path = frame.filename
        tail = ""
        if match:
            at = path.index("(")
            path, tail = path[:at], path[at:]
        name = printable(os.sep.join(path.split(os.sep)[-2:]) + tail)
        out.append("#%s: %s%s: %.1f KiB" % (index, name, "" if match else ":%s" % frame.lineno, stat.size / 1024))
        line = linecache.getline(frame.filename, frame.lineno).strip()
        if line:
            out.append("    %s" % line)
    other = stats[limit:]
    if other:
        out.append("%s other: %.1f KiB" % (len(other), sum(stat.size for stat in other) / 1024))
    out.append("Total allocated size: %.1f KiB" % (sum(stat.size for stat in stats) / 1024))
    return "".join(line + "\n" for line in out)


def cut(snapshot, limit):
    """As INTERFACE says: snapshots of different frames limits are compared at the smaller one."""
    traces = [(domain, size, frames[:limit], total) for domain, size, frames, total in snapshot.traces._traces]
    return tracemalloc.Snapshot(traces, limit)


class Comparison:
    def __init__(self, program, rng):
        self.program, self.rng = program, rng
        self.folder = tempfile.TemporaryDirectory()
        self.rows = self.texts = self.filtered = 0

    def run(self, *args):
        done = subprocess.run([self.program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit("%r failed: %s" % (args, done.stderr.decode("utf-8", "replace")))
        return done.stdout

    def load(self, path, *args):
        pickle = os.path.join(self.folder.name, "pickle")
        self.run("export", path, "--format", "tracemalloc", "-o", pickle, *args)
        return tracemalloc.Snapshot.load(pickle)

    def expect(self, want, rows, *args):
        have = self.run(*args)
        want = want.encode("utf-8", "surrogateescape")
        if have != want:
            for number, (a, b) in enumerate(zip(have.splitlines() + [b""], want.splitlines() + [b""])):
                if a != b:
                    sys.exit("%r: line %d is\n  %s\ntracemalloc's\n  %s" % (args, number + 1, a, b))
            sys.exit("%r: %d lines, tracemalloc's %d" % (args, have.count(b"\n"), want.count(b"\n")))
        self.rows += rows
        self.texts += 1

    def filters(self, snapshots):
        """Up to three random ones, as tracemalloc's objects and as the client's arguments."""
        names = sorted({frame[0] for s in snapshots for trace in s.traces._traces for frame in trace[2]}) or ["x"]
        objects, args = [], []
        for _ in range(self.rng.randint(1, 3)):
            inclusive, everywhere = self.rng.random() < 0.6, self.rng.random() < 0.4
            domain = self.rng.choice([None, None, 0, 1, 2, 100])
            sign = "+" if inclusive else "-"
            if domain is not None and self.rng.random() < 0.4:
                objects.append(tracemalloc.DomainFilter(inclusive, domain))
                args += ["--filter=%s@domain=%s" % (sign, DOMAINS[domain])]
                continue
            name = self.rng.choice(names)
            pattern = self.rng.choice(["*", "*.c", "/*", glob.escape(name), os.path.dirname(glob.escape(name)) + "/*",
                                       "*[!a-z]", "*(*", "?" * len(name), "*" + glob.escape(name[-4:])])
            pattern = re.sub(r"(?<!\[)[@:]", lambda match: "[%s]" % match[0], pattern)
            # "[!x]" begins none of these with a sign, and an empty one is no pattern.
            if not pattern or "\0" in pattern:
                continue
            lines = [line for s in snapshots for trace in s.traces._traces for _, line in trace[2] if line]
            line = self.rng.choice(lines) if lines and self.rng.random() < 0.3 else None
            objects.append(tracemalloc.Filter(inclusive, pattern, line, everywhere, domain))
            text = sign + pattern + (":%d" % line if line else "") + ("@all" if everywhere else "")
            args += ["--filter=" + text + ("@domain=" + DOMAINS[domain] if domain is not None else "")]
        return objects, args

    def compare(self, old, new, key, cumulative, paths, args):
        """By one key; old is None for statistics alone."""
        arguments = list(args) + ["--by", key] + (["--cumulative"] if cumulative else [])
        if old is None:
            stats = new.statistics(key, cumulative)
        else:
            limit = min(old.traceback_limit, new.traceback_limit)
            if old.traceback_limit != new.traceback_limit:
                old, new = cut(old, limit), cut(new, limit)
            stats = new.compare_to(old, key, cumulative)
        if key == "traceback":
            limit = self.rng.choice([None, None, 2, -1])
            first = self.rng.random() < 0.3
            arguments += [] if limit is None else ["--frames-shown=%d" % limit]
            arguments += ["--most-recent-first"] if first else []
            want = "".join(group_of(stat, old is not None, limit, first) for stat in stats)
        else:
            want = "".join(line_of(stat) for stat in stats)
        self.expect(want, len(stats), "stats" if old is None else "diff", *paths, *arguments)

    def compare_exports(self, path, new, objects, args):
        """What is filtered, or for an older Python, holds the same traces."""
        if self.load(path, *args).traces != new.filter_traces(objects).traces:
            sys.exit("export of %s with %r is not what filter_traces() makes of it" % (path, args))
        older = self.load(path, "--python", "3.8").traces._traces
        if older != [trace[:3] for trace in new.traces._traces]:
            sys.exit("export of %s for Python 3.8 holds other traces" % path)
        self.texts += 2

    def compare_file(self, path, before):
        new = self.load(path)
        for key, cumulative in KEYS:
            self.compare(None, new, key, cumulative, [path], [])
            if before:
                self.compare(before[1], new, key, cumulative, [before[0], path], [])
        for _ in range(2):
            objects, args = self.filters([new])
            if not objects:
                continue
            self.filtered += 1
            key, cumulative = self.rng.choice(KEYS)
            chosen = new.filter_traces(objects)
            if self.rng.random() < 0.3:
                self.compare_exports(path, new, objects, args)
            self.compare(None, chosen, key, cumulative, [path], args)
            # Filters see all frames that are shown, so those of a pair with different limits see fewer.
            if before and before[1].traceback_limit == new.traceback_limit:
                self.compare(before[1].filter_traces(objects), chosen, key, cumulative, [before[0], path], args)
        limit = self.rng.randint(1, 12)
        self.expect(pretty(new.statistics("lineno"), limit), 1, "stats", path, "--pretty", "--limit", str(limit))
        return path, new


def main():
    program, seed, files = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    comparison = Comparison(program, random.Random(seed))
    before = None
    for path in files:
        before = comparison.compare_file(path, before)
    print("%d snapshots, %d rows in %d tables (%d filters) compared with tracemalloc, differing: 0"
          % (len(files), comparison.rows, comparison.texts, comparison.filtered))
    if comparison.rows == 0:
        sys.exit("nothing was compared")


if __name__ == "__main__":
    main()
