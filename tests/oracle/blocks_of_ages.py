"""The rows of a statistic about the ages of blocks, against the blocks of the snapshot's file, read as what it
is: an SQLite database.

    blocks_of_ages.py SOURCE ANSWER.json NEW.aw [OLD.aw | SECONDS]

SOURCE: the name of the source file whose lines are the groups.  With OLD: blocks born after it; with SECONDS: older
than that.  Prints how many blocks were looked at; exit status 1 when a row differs."""
import collections
import json
import sqlite3
import sys


def snapshot(path):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    number, clock = database.execute("SELECT number, clock_ns FROM snapshot").fetchone()
    return database, number, clock


def line_of(database, source, node):
    """The innermost position in the source file, whatever lies further in."""
    while node:
        node, frame = database.execute("SELECT parent, frame FROM node WHERE id = ?", (node,)).fetchone()
        for line, name in database.execute("SELECT line, text FROM location JOIN string ON string.id = file "
                                           "WHERE frame = ? ORDER BY position", (frame,)):
            if name.endswith("/" + source):
                return line
    return 0


def main():
    source, answer, new = sys.argv[1:4]
    database, number, clock = snapshot(new)
    least, below = 0, 1 << 63
    if sys.argv[4].endswith(".aw"):
        below = clock - snapshot(sys.argv[4])[2]
    else:
        least = float(sys.argv[4]) * 1e9 + 1
    lines, groups, blocks = {}, collections.defaultdict(list), 0
    for stack, size, age in database.execute("SELECT stack, size, age_ns FROM block JOIN trace ON trace.id = trace "
                                             "WHERE block.snapshot = ?", (number,)):
        blocks += 1
        if least <= age < below:
            if stack not in lines:
                lines[stack] = line_of(database, source, stack)
            groups[lines[stack]].append((size, age))
    expected = sorted((line, sum(size for size, _ in group), len(group), min(age for _, age in group) / 1e9,
                       max(age for _, age in group) / 1e9) for line, group in groups.items())
    with open(answer, encoding="utf-8") as file:
        rows = json.load(file)["statistics"]
    found = sorted((row["traceback"][-1]["line"], row["size"], row["count"], row["youngest_seconds"],
                    row["oldest_seconds"]) for row in rows)
    print(f"{blocks} blocks, of which {sum(len(group) for group in groups.values())} in {len(expected)} groups count")
    if blocks == 0 or found != expected:
        print("expected", expected, "found", found)
        sys.exit(1)


main()
