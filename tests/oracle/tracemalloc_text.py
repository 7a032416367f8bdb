"""Prints what tracemalloc itself makes of random statistics, one JSON document a line.

usage: tracemalloc_text.py FOLDER COUNT SEED

FOLDER receives source files that the tracebacks name.  Each line holds the input of one comparison
and, as "text", the bytes that a program with the same input has to print.
"""
import json
import linecache
import os
import random
import sys
import tracemalloc

SPACES = ["", " ", "\t", "    ", "\t\t ", "\u00a0", "\u2003", "\x0b", "\x0c", "\x1f"]
WORDS = ["malloc(n);", "x = y", "return p;", "}", "\u00e9t\u00e9 = \u4e2d;", "a\tb", "// note"]


def random_number(rng):
    """Numbers of every magnitude, and those beside the borders of the units."""
    border = rng.choice([0, 1, 100, 1024, 10240, 100 * 1024, 10240 * 1024, 100 << 20, 10 << 30, 1 << 40, 10 << 40])
    return max(0, rng.choice([
        border + rng.randint(-3, 3),
        rng.randrange(1 << rng.randint(1, 53)),
        rng.randrange(200),
    ]))


def random_sign(rng, number):
    return rng.choice([-1, 1]) * number


def write_sources(rng, folder):
    paths = []
    for number in range(20):
        parts = [rng.choice(["src", "lib", "\u00fcber", "a b"]) for _ in range(rng.randint(0, 3))]
        path = os.path.join(folder, *parts, "file%d.c" % number)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        end = rng.choice(["\n", "\r\n"])
        lines = [rng.choice(SPACES) + " ".join(rng.choices(WORDS, k=rng.randint(0, 3))) + rng.choice(SPACES)
                 for _ in range(rng.randint(0, 40))]
        text = end.join(lines) + rng.choice(["", end])
        if rng.random() < 0.2:
            text = "\ufeff" + text
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        paths.append(path)
    return paths


def random_frame(rng, paths):
    name = rng.choice(paths + ["/nowhere/gone.c", "relative.c", "x/y/z/w.c", "/top.c"])
    return [name, rng.randint(0, 45)]


def size_case(rng):
    size = random_sign(rng, random_number(rng) / rng.choice([1, 1, 3, 7, 1000]))
    sign = rng.random() < 0.5
    return {"kind": "size", "size": size, "sign": sign, "text": tracemalloc._format_size(size, sign)}


def row_case(rng, paths):
    frame = random_frame(rng, paths)
    size, count = random_number(rng), random_number(rng)
    size_diff, count_diff = random_sign(rng, random_number(rng)), random_sign(rng, random_number(rng))
    traceback = tracemalloc.Traceback((tuple(frame),))
    diff = rng.random() < 0.5
    if diff:
        text = str(tracemalloc.StatisticDiff(traceback, size, size_diff, count, count_diff))
    else:
        text = str(tracemalloc.Statistic(traceback, size, count))
    return {"kind": "row", "diff": diff, "frame": frame, "size": size, "count": count,
            "size_diff": size_diff, "count_diff": count_diff, "text": text + "\n"}


def traceback_case(rng, paths):
    frames = [random_frame(rng, paths) for _ in range(rng.randint(1, 8))]
    limit = rng.choice([None, 0, rng.randint(-10, 10)])
    first = rng.random() < 0.5
    # tracemalloc's constructor takes the most recent frame first.
    traceback = tracemalloc.Traceback(tuple(tuple(frame) for frame in reversed(frames)))
    lines = traceback.format(limit, first)
    return {"kind": "traceback", "frames": frames, "limit": limit, "most_recent_first": first,
            "text": "".join(line + "\n" for line in lines)}


def group_case(rng, paths):
    """The documentation's way to print one group of a traceback."""
    case = traceback_case(rng, paths)
    traceback = tracemalloc.Traceback(tuple(tuple(frame) for frame in reversed(case["frames"])))
    size, count = random_number(rng), random_number(rng)
    lines = ["%s memory blocks: %.1f KiB" % (count, size / 1024)] + traceback.format()
    return {"kind": "group", "frames": case["frames"], "size": size, "count": count,
            "text": "".join(line + "\n" for line in lines)}


def pretty_case(rng, paths):
    rows = [[random_frame(rng, paths), random_number(rng) >> 4] for _ in range(rng.randint(0, 12))]
    limit = rng.randint(1, 14)
    out = ["Top %s lines" % limit]
    for number, ((name, line), size) in enumerate(rows[:limit]):
        short = "/".join(name.split("/")[-2:])
        out.append("#%d: %s:%d: %.1f KiB" % (number + 1, short, line, size / 1024))
        source = linecache.getline(name, line).strip()
        out += ["    " + source] if source else []
    rest = [size for _, size in rows[limit:]]
    if rest:
        out.append("%d other: %.1f KiB" % (len(rest), sum(rest) / 1024))
    out.append("Total allocated size: %.1f KiB" % (sum(size for _, size in rows) / 1024))
    return {"kind": "pretty", "rows": rows, "limit": limit, "text": "".join(line + "\n" for line in out)}


def main():
    folder, count, rng = sys.argv[1], int(sys.argv[2]), random.Random(int(sys.argv[3]))
    paths = write_sources(rng, folder)
    for _ in range(count):
        for case in (size_case(rng), row_case(rng, paths), traceback_case(rng, paths), group_case(rng, paths),
                     pretty_case(rng, paths)):
            print(json.dumps(case))


if __name__ == "__main__":
    main()
