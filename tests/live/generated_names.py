#!/usr/bin/env python3
"""usage: generated_names.py SNAPSHOT MAP

Reads a perf map by itself and compares each frame in no object with what is in the snapshot.  Fails when a name
differs, or when fewer than three were compared."""
import sqlite3
import sys

FRAMES = """select frame.offset, frame.kind, string.text from frame
    left join location on location.frame = frame.id and location.position = 0
    left join string on string.id = location.function
    where frame.module is null and frame.kind in (1, 2)"""


def entries(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            start, size, name = line.rstrip("\n").split(" ", 2)
            yield int(start, 16), int(size, 16), name


def main():
    told = list(entries(sys.argv[2]))
    named = wrong = 0
    for offset, kind, name in sqlite3.connect(sys.argv[1]).execute(FRAMES):
        at = offset - 1 if kind == 1 else offset
        here = [entry[2] for entry in told if entry[0] <= at < entry[0] + entry[1]]
        if (here[-1] if here else None) != name:
            print("%#x: %r, and the map says %r" % (offset, name, here))
            wrong += 1
        named += name is not None
    print("%d frames in no object have the map's names, %d have not" % (named, wrong))
    return 0 if named >= 3 and wrong == 0 else 1


sys.exit(main())
