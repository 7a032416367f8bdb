"""Answers with Python's own tracemalloc and fnmatch, one JSON document a line in and out.

Names travel as hexadecimal bytes, so that those that are no UTF-8 come through as Python's file
names do (surrogateescape).
"""
import fnmatch
import json
import sys
import tracemalloc


def text(name):
    return bytes.fromhex(name).decode("utf-8", "surrogateescape")


def name(text):
    return text.encode("utf-8", "surrogateescape").hex()


def make_snapshot(traces, limit):
    made = []
    for domain, sizes, frames in traces:
        frames = tuple((text(file), line) for file, line in frames)
        for size in sizes:
            made.append((domain, size, frames[:limit], len(frames)))
    return tracemalloc.Snapshot(made, limit)


def make_filter(f):
    if f["pattern"] is None:
        return tracemalloc.DomainFilter(f["inclusive"], f["domain"])
    return tracemalloc.Filter(f["inclusive"], text(f["pattern"]), f["lineno"],
                              f["all_frames"], f["domain"])


def make_row(stat):
    frames = [[name(frame.filename), frame.lineno] for frame in stat.traceback]
    return [stat.size, stat.count, getattr(stat, "size_diff", 0), getattr(stat, "count_diff", 0),
            frames]


def answer_query(request, query):
    old, new = (make_snapshot(request[which], query["limit"]) for which in ("old", "new"))
    if query["filters"]:
        filters = [make_filter(f) for f in query["filters"]]
        old, new = old.filter_traces(filters), new.filter_traces(filters)
    if not query["diff"]:
        stats = new.statistics(query["key"], query["cumulative"])
    else:
        stats = new.compare_to(old, query["key"], query["cumulative"])
        if query["sort"] == "growth":
            stats.sort(key=lambda stat: stat.size_diff, reverse=True)
        elif query["sort"] == "shrink":
            stats.sort(key=lambda stat: stat.size_diff)
    totals = [sum(trace[1] for trace in s.traces._traces) for s in (new, old)]
    counts = [len(s.traces) for s in (new, old)]
    return {"rows": [make_row(stat) for stat in stats], "totals": totals, "counts": counts}


def answer(request):
    if "fnmatch" in request:
        return [fnmatch.fnmatchcase(text(string), text(pattern))
                for pattern, string in request["fnmatch"]]
    return [answer_query(request, query) for query in request["queries"]]


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
