#!/usr/bin/python3
"""Makes the tables of a run of the benchmarks, as Markdown, from its JSON alone.

    report.py RESULTS

The goals are the project's; whether one is met is worked out here, printed, and nothing more.
"""
import json
import re
import statistics
import sys

NUMBER = re.compile(r"[0-9.]+")

GOAL_MULTIPLE = 1.25
GOAL_WAITS = 2
GOAL_UNWIND = 50
GOAL_ATTACH_LARGE_MS = 20
GOAL_ATTACH_MS = 100
GOAL_SNAPSHOT_MS = 30
GOAL_BLOCK_BYTES = 40
GOAL_EVENT_NS = 100
GOAL_LONGEST_US = 1000
GOAL_SYMBOLS = 20000
GOAL_FILE_S = 5
GOAL_RING_NS = 300
GOAL_SAMPLING_PERCENT = 1
GOAL_SUSTAINED_NS = 600
GOAL_INT3_TIMES = 20
GOAL_HEAPTRACK = 0.9
GOAL_STATISTICS_MS = 50
FLAT = 1.01                    # of what was there before
GOAL_QUESTIONS = ("stats --by lineno", "diff --by lineno")

WAITS = ("waitid", "wait4")
READS = ("process_vm_readv", "pread64")


def table(head, rows):
    """Text to the left, numbers to the right; padded, so that it reads on a terminal, too."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    numeric = [all(NUMBER.fullmatch(row[i]) for row in cells[1:]) for i in range(len(head))]

    def line(row):
        parts = [cell.rjust(width) if right else cell.ljust(width)
                 for cell, width, right in zip(row, widths, numeric)]
        return "| " + " | ".join(parts) + " |"

    rule = "|" + "|".join("-" * (width + 1) + (":" if right else "-")
                          for width, right in zip(widths, numeric)) + "|"
    return "\n".join([line(cells[0]), rule] + [line(row) for row in cells[1:]]) + "\n"


def met(reached):
    return "met" if reached else "not met"


def paragraph(text):
    print(text + "\n")


def stops(documents):
    print("## A malloc+free pair, against three bare stops\n")
    paragraph("The victim's threads call `malloc(64)` and `free` at stack depth 20, without frame pointers; "
              "%d frames are kept. A bare stop is trap, look, get registers, set registers, continue, by the "
              "smallest loop that does that, of the same threads in the same run, by the victim's own clock. "
              "Times are microseconds a pair, over all threads; the smallest of %d rounds of %d pairs each."
              % (documents[0]["frames"], documents[0]["rounds"], documents[0]["pairs_per_round"]))
    print(table(("threads", "placement of the tracer", "priority", "untraced", "3 bare stops", "traced", "multiple",
                 "goal %.2f" % GOAL_MULTIPLE),
                [(d["threads"], d["placement"] if d["placement"] != "policy" else
                  "policy: ended on CPU " + d["tracer_cpus"], d["scheduling"],
                  "%.3f" % d["untraced_pair_us"], "%.1f" % d["bare_pair_us"], "%.1f" % d["traced_pair_us"],
                  "%.2f" % d["multiple"], met(d["multiple"] <= GOAL_MULTIPLE)) for d in documents]))
    paragraph("Same core, other core: victim and tracer are each held on one CPU. Policy: neither is, and the "
              "tracer's own rule decides, for the bare loop as well: it follows the thread that stops as long as "
              "it is one, and goes where the scheduler puts it when they are several. A median of the rounds in "
              "place of the smallest gives " +
              ", ".join("%.2f" % (statistics.median(d["traced_rounds_us"]) / statistics.median(d["bare_rounds_us"]))
                        for d in documents) + ".")


def added(document, tool, time):
    return document[tool][time] - document["untraced"][time]


def engines(documents):
    short, *long = documents
    print("## A malloc+free pair, by engine\n")
    paragraph("The victim of the table above; the ring engine and the int3 engine attached by PID, heaptrack launched with "
              "the program, its output thrown away. Nanoseconds a pair that are added to those untraced, the least of all "
              "rounds; one thread has a CPU, the tracer the other, four threads go where they are put. Bursts: %d pairs, "
              "which the ring has room for. The thread's own time, and by the victim's clock."
              % short["pairs_per_round"])
    rows = []
    for d in documents:
        for tool in ("ring", "int3", "heaptrack"):
            if d[tool]["clock_ns"] > 0:
                rows.append((d["threads"], "bursts" if d is short else "without end", tool, "%.1f" % d["untraced"]["cpu_ns"],
                             "%.0f" % added(d, tool, "cpu_ns"), "%.0f" % added(d, tool, "clock_ns"),
                             d["lost"] if tool == "ring" else ""))
    print(table(("threads", "how", "by", "untraced ns", "added, own time ns", "added, by the clock ns", "lost"), rows))
    ring, heaptrack = added(short, "ring", "cpu_ns"), added(short, "heaptrack", "cpu_ns")
    times = added(short, "int3", "cpu_ns") / ring
    paragraph("Goals: %d ns added to a pair, %s; %d times cheaper than int3, %s (%.0f); %.1f of heaptrack, %s (%.2f); "
              "sustained, reader included, %d ns: %s."
              % (GOAL_RING_NS, met(ring <= GOAL_RING_NS), GOAL_INT3_TIMES, met(times >= GOAL_INT3_TIMES), times,
                 GOAL_HEAPTRACK, met(ring <= GOAL_HEAPTRACK * heaptrack), ring / heaptrack, GOAL_SUSTAINED_NS,
                 "; ".join("%d thread%s %s" % (d["threads"], "s" if d["threads"] > 1 else "",
                                               met(added(d, "ring", "clock_ns") <= GOAL_SUSTAINED_NS)) for d in long)))


def sampling(documents):
    print("## What sampling costs real programs\n")
    paragraph("The processor time of the program's own threads without and with `--sample-bytes %s`, on a core of "
              "its own, by threes, two stretches without and one with, the order changing each time. Before each it is attached to and let go of, and "
              "its first blocks are not counted: what these took longer is the attach's. A stretch is the median of the others. cc1 is started for each, "
              "and attached to while it waits for its source. Added is the trimmed mean of the differences "
              "within the threes, with its 95 %% interval; the same of the two without is null, what the measurement itself makes of no "
              "difference. Here: what was added, of a pair of calls, which are counted. Reckoned: if a pair took %.1f ns more, as a malloc and a free in a loop; "
              "that is what the goal is of, unless all of added's interval is above it."
              % (documents[0]["rate"], documents[0]["pair_ns"]))
    rows = [(d["program"], d["blocks"], "%.1f" % d["block_ms"],
             "%+.2f +- %.2f %%" % (d["added_percent"], d["half_interval"]),
             "%+.2f +- %.2f %%" % (d["null_percent"], d["null_half_interval"]),
             "%.1f" % d["attach_ms"], "%.2f" % (d["pairs_per_second"] / 1e6), "%.1f +- %.1f" % (d["here_ns"], d["here_half_interval"]),
             "%.2f %%" % d["reckoned_percent"], goal_of_sampling(d)) for d in documents]
    print(table(("program", "threes", "a block, median ms", "added", "null", "attach, ms once", "million pairs/s", "here, ns a pair", "reckoned",
                 "goal %d %%" % GOAL_SAMPLING_PERCENT), rows))


def goal_of_sampling(document):
    """What is reckoned is judged, and the interval of what was measured must not say otherwise."""
    reckoned, least = document["reckoned_percent"], document["added_percent"] - document["half_interval"]
    return met(reckoned <= GOAL_SAMPLING_PERCENT and least <= GOAL_SAMPLING_PERCENT)


def an_event(calls, names, events):
    return sum(count for name, count in calls.items() if name in names) / events


def calls(documents):
    print("## System calls and requests for memory, an event\n")
    paragraph("Counted on the tracing thread, in the steady state; an event is one stop, and three make a pair. The "
              "pc is set alone, by PTRACE_POKEUSER, in place of PTRACE_SETREGS. Reads are those of the stack, "
              "one an allocation, and what is looked at by the clock (once a second every breakpoint).")
    rows = []
    for d in documents:
        waits = an_event(d["calls"], WAITS, d["events"])
        known = [an_event(d["calls"], names, d["events"]) for names in (
            ("PTRACE_GETREGS",), ("PTRACE_POKEUSER", "PTRACE_SETREGS"), READS, ("PTRACE_CONT",))]
        others = an_event(d["calls"], d["calls"], d["events"]) - waits - sum(known)
        rows.append((d["threads"], d["live_blocks"], *("%.3f" % x for x in (waits, *known, others)),
                     "%.4f" % (d["memory_requests"] / d["memory_events"]),
                     "%d in %.1f s" % (d["memory_requests"], d["memory_seconds"]),
                     met(waits <= GOAL_WAITS and all(x <= 1.05 for x in (known[0], known[1], known[2], known[3])) and
                         d["memory_requests"] / d["memory_events"] < 0.001)))
    print(table(("threads", "live blocks", "wait", "GETREGS", "set pc", "read", "CONT", "others", "requests", "in all",
                 "goal 2, 1, 1, 1, 1; 0"), rows))


def copy_or_walk(documents):
    print("## The ring: to copy a stack in the target, or to walk it there\n")
    paragraph("The same stacks, laid out as a thread's own, warm in the cache. Copied: just the bytes that a walk goes "
              "through, up to 41 frames. Walked: by a table of the rows of these return addresses, unchecked, which "
              "hands the return addresses over. Nanoseconds of the thread's own time a stack, of each the least of 7.")
    rows = [(d["recording"].rsplit("/", 1)[-1].split(".")[0], d["stacks"], "%.1f" % d["frames_a_stack"],
             "%.0f" % d["bytes_a_stack"], "%d" % d["table_bytes"], "%.0f" % d["copy_ns"], "%.0f" % d["walk_ns"],
             "%.1f" % (d["walk_ns"] / d["copy_ns"]), "%.0f %%" % (100 * d["walk_cheaper_share"]))
            for d in documents[-1]]
    print(table(("program", "stacks", "frames", "bytes of stack", "bytes of table", "copy ns", "walk ns", "ratio",
                 "stacks that a walk is cheaper for"), rows))


def reader(documents):
    print("## The ring: what its reader does, and what a helper takes over\n")
    paragraph("Stacks in the order in which they came, each as a malloc with a free before it, written on one core and "
              "read on another. The reader's own time, nanoseconds a malloc with its free, the least of 9 rounds: "
              "records looked at and passed; with pending calls; with live blocks; with stacks, which is all. Then "
              "the stacks alone, by a helper with an unwinder of its own, and what is left to the reader then: with a "
              "core for each, the longer of the two decides. Last the real thing: the reader with one helper on the other "
              "core, and the share of the stacks that it took from that.")
    rows = [(d["recording"].rsplit("/", 1)[-1].split("-")[0], d["stacks"], "%.1f" % d["frames"], "%.0f" % d["stack_bytes"],
             *("%.0f" % d[part + "_ns"] for part in ("pass", "calls", "heap", "all", "helper", "rest")),
             "%.1f" % (d["all_ns"] / max(d["helper_ns"], d["rest_ns"])), "%.0f" % d["with_1_ns"],
             "%.0f %%" % (100 * d["with_1_taken"]), "%.1f" % d["with_1_faster"]) for d in documents]
    print(table(("program", "stacks", "frames", "bytes of stack", "pass", "and calls", "and heap", "all", "helper", "rest",
                 "times as fast, at most", "with a helper", "taken", "times as fast"), rows))


def unwind(documents):
    total = next(d for d in documents if "total" in d)["total"]
    print("## Unwinds a second\n")
    paragraph("Distinct stacks recorded from live programs; cold: everything made anew, each miss included; warm: the "
              "same stacks again. libdw's walker has the same stacks in the same run.")
    rows = [(d["recording"].rsplit("/", 1)[-1].split(".")[0], d["stacks"], "%.1f" % d["frames_per_stack"],
             "%.2f" % d["ours"]["cold_us"], "%.2f" % d["ours"]["warm_us"], "%.1f" % d["libdw"]["cold_us"],
             "%.1f" % d["libdw"]["warm_us"], "%.0f" % d["times_faster_cold"], "%.0f" % d["times_faster_warm"],
             d["differ"]) for d in next(d for d in documents if "total" in d)["recordings"]]
    print(table(("program", "stacks", "frames", "cold us", "warm us", "libdw cold us", "libdw warm us",
                 "times faster, cold", "warm", "stacks that differ"), rows))
    paragraph("Together %d stacks: %.0f unwinds a second cold and %.0f warm, libdw's walker %.0f; %.0f and %.0f times "
              "faster. Goal %d, on %d stacks or more: %s cold, %s warm."
              % (total["stacks"], total["unwinds_per_second_cold"], total["unwinds_per_second_warm"],
                 total["libdw_unwinds_per_second"], total["times_faster_cold"], total["times_faster_warm"], GOAL_UNWIND,
                 10000, met(total["times_faster_cold"] >= GOAL_UNWIND and total["stacks"] >= 10000),
                 met(total["times_faster_warm"] >= GOAL_UNWIND and total["stacks"] >= 10000)))


def series(name, values, goal=None, machine_alone=()):
    """A machine that makes its programs wait longer than the goal by itself proves nothing."""
    judged = ""
    if goal is not None:
        judged = "%d: %s" % (goal, met(max(values) <= goal))
        if max(values) > goal and max(machine_alone) > goal:
            judged = "%d: not to be told, the machine alone takes longer" % goal
    return (name, len(values), "%.2f" % min(values), "%.2f" % statistics.median(values), "%.2f" % max(values), judged)


def latency(documents):
    print("## The target's own longest time between two mallocs\n")
    paragraph("By the target's clock, in milliseconds, while its threads allocate as fast as they can; over so many "
              "attempts. What it shows untraced, or traced with nothing else going on, is the machine's. Stopped and let go: by the smallest "
              "loops that seize all threads, interrupt each, wait for it, read its registers and detach, in the same run; no tracer does with less.")
    rows = []
    for d in documents:
        if d["bench"] == "attach":
            of = "1 thread" if d["threads"] == 1 else "%d threads" % d["threads"]
            of = "%s: %s%s" % (d["engine"], of, ", %d objects" % d["objects"] if d["objects"] else "")
            goal = GOAL_ATTACH_LARGE_MS if d["objects"] else GOAL_ATTACH_MS
            rows.append(series(of + ", untraced", d["untraced_longest_ms"]))
            # Results from before that was measured have none.
            if "empty_stop_held_ms" in d:
                rows += [series(of + ", stopped and let go", d["empty_stop_longest_ms"]),
                         series(of + ", stopped and let go, by the clock of who did that", d["empty_stop_held_ms"])]
            rows += [series(of + ", attach", d["attach_longest_ms"], goal, d["untraced_longest_ms"]),
                     series(of + ", attach, held by the tracer's clock", d["attach_held_ms"]),
                     series(of + ", detach", d["detach_longest_ms"])]
        elif d["bench"] == "snapshot":
            of = "%d live blocks" % d["blocks"]
            rows += [series(of + ", traced only", d["traced_longest_ms"]),
                     series(of + ", snapshot", d["snapshot_longest_ms"], GOAL_SNAPSHOT_MS,
                            d["traced_longest_ms"]),
                     series(of + ", snapshot --blocks", d["snapshot_blocks_longest_ms"], GOAL_SNAPSHOT_MS,
                            d["traced_longest_ms"])]
    print(table(("during", "attempts", "shortest", "median", "longest", "goal, of the longest"), rows))
    for d in documents:
        if d["bench"] == "snapshot":
            paragraph("A snapshot takes %.3f s and %d bytes, with blocks %.3f s and %d bytes; the target runs on "
                      "meanwhile." % (d["seconds"], d["image_bytes"], d["seconds_with_blocks"],
                                      d["image_bytes_with_blocks"]))


def memory(documents):
    print("## The tracer's memory a live block\n")
    rows = [("%d" % d["blocks"], "%.1f" % (d["block_table_bytes"] / d["blocks"]),
             "%.1f" % (d["tables_bytes"] / d["blocks"]), "%.1f" % (d["resident_bytes"] / d["blocks"]),
             met(d["block_table_bytes"] / d["blocks"] <= GOAL_BLOCK_BYTES)) for d in documents]
    print(table(("live blocks", "table of blocks, bytes", "all tables, bytes", "resident, stacks included, bytes",
                 "goal %d" % GOAL_BLOCK_BYTES), rows))
    paragraph("Grown while a target allocated its blocks, from some thousand different stacks.")


def heap(documents):
    print("## The table of live blocks by itself\n")
    paragraph("An event is a birth or a death of a block; \"any\" frees any of them, \"young\" one of the newest "
              "thousands, as most programs do. A random read is the floor of the same run: one dependent read in "
              "as much memory as the table takes. Processor time.")
    print(table(("blocks", "bytes a block", "after churn", "goal %d" % GOAL_BLOCK_BYTES, "grow, ns an event",
                 "any", "young", "shrink", "random read, ns", "goal %d, any" % GOAL_EVENT_NS),
                [(d["blocks"], "%.1f" % d["bytes_per_block"], "%.1f" % d["bytes_per_block_after_churn"],
                  met(max(d["bytes_per_block"], d["bytes_per_block_after_churn"]) <= GOAL_BLOCK_BYTES),
                  "%.0f" % d["grow_ns_per_event"], "%.0f" % d["churn_ns_per_event"], "%.0f" % d["young_ns_per_event"],
                  "%.0f" % d["shrink_ns_per_event"], "%.0f" % d["random_read_ns"],
                  met(d["churn_ns_per_event"] <= GOAL_EVENT_NS)) for d in documents]))
    print("## The longest single update of the table\n")
    print(table(("blocks", "growing to them, us", "and churning, shrinking, us", "goal %d, growing" % GOAL_LONGEST_US),
                [(d["blocks"], "%.0f" % d["longest_growing_us"], "%.0f" % d["longest_operation_us"],
                  met(d["longest_growing_us"] <= GOAL_LONGEST_US)) for d in documents]))
    print("## Memory over a long churn\n")
    print(table(("blocks, always", "events", "tables before, bytes", "after", "resident before, bytes", "after",
                 "goal: flat"),
                [(d["blocks"], d["long_churn_events"], d["long_churn_bytes_before"], d["long_churn_bytes_after"],
                  d["long_churn_resident_before"], d["long_churn_resident_after"],
                  met(d["long_churn_bytes_after"] <= d["long_churn_bytes_before"] * FLAT and
                      d["long_churn_resident_after"] <= d["long_churn_resident_before"] * FLAT))
                 for d in documents if "long_churn_events" in d]))


def symbol(documents):
    print("## Names of frames\n")
    print(table(("case", "frames", "seconds", "frames a second", "goal %d" % GOAL_SYMBOLS),
                [(d["case"], d["frames"], "%.3f" % d["seconds"], "%.0f" % d["frames_per_second"],
                  met(d["frames_per_second"] >= GOAL_SYMBOLS) if d["case"] != "libdw" else "")
                 for d in by_bench(documents, "symbol")]))
    paragraph("Of `%s`; \"libdw\" asks libdw for each frame by itself." % documents[0]["file"])
    for d in by_bench(documents, "symbol_memory"):
        paragraph("The process had %.0f MiB at most, with what it had mapped of the file of %.0f MiB." % (d["peak_mib"], d["file_mib"]))


def by_bench(documents, bench):
    return [d for d in documents if d["bench"] == bench]


def goal_of_question(question, ms):
    return met(ms <= GOAL_STATISTICS_MS) if question in GOAL_QUESTIONS else ""


def questions(documents):
    print("## Statistics and differences of large snapshots\n")
    print(table(("question", "index", "stacks", "rows", "ms", "CPU ms", "goal %d" % GOAL_STATISTICS_MS),
                [(d["question"], d["index"], d["stacks"], d["rows"], "%.1f" % d["ms"], "%.1f" % d["cpu_ms"],
                  goal_of_question(d["question"], d["ms"]) if d["index"] == "kept" else "")
                 for d in by_bench(documents, "statistics")]))
    paragraph("By the library alone. A question is asked several times, and the smallest time counts; "
              "`leaks` is the one with an age. What never changes about a snapshot is in its index, which the first "
              "question to a daemon makes and all others find; a command that reads a file makes what it needs and throws "
              "it away. " + ", ".join("It takes %d bytes beside the %d of the snapshot"
                                      % (d["index_bytes"], d["snapshot_bytes"] - d["index_bytes"])
                                      for d in by_bench(documents, "statistics-memory")) + ".")
    print(table(("question on the socket", "stacks", "rows", "of these sent", "ms", "median", "daemon's CPU ms",
                 "goal %d" % GOAL_STATISTICS_MS),
                [(d["question"], d["stacks"], d["rows"], d["rows_sent"], "%.1f" % d["ms"], "%.1f" % d["median_ms"],
                  "%.1f" % d["daemon_cpu_ms"],
                  goal_of_question(d["question"], d["ms"]) if d["rows_sent"] < d["rows"] else "")
                 for d in by_bench(documents, "socket")]))
    paragraph("From the question to the last byte of the answer, by a client in Python that does not decode it. "
              "The first question of all, which reads the snapshot from its file, takes %s ms."
              % ", ".join("%.0f" % d["ms"] for d in by_bench(documents, "first")))


def commands(documents):
    print("## The same by commands\n")
    print(table(("command", "stacks", "seconds", "its CPU seconds"),
                [(d["command"], d["stacks"], "%.2f" % d["seconds"], "%.2f" % d["cpu_seconds"])
                 for d in by_bench(documents, "command")]))
    paragraph("The smallest of a few rounds; `ID` is of a kept snapshot, of which the daemon answers.")


def beside_tracemalloc(documents):
    print("## The same statistics by CPython's tracemalloc\n")
    ours = {}
    for d in by_bench(documents, "socket"):
        ours[d["question"]] = d                     # the last one is that with all rows
    alone = {d["question"]: d for d in by_bench(documents, "statistics") if d["index"] == "kept"}
    rows = []
    for d in by_bench(documents, "tracemalloc"):
        mine = ours.get(d["question"])
        rows.append((d["question"], d["rows"], "%.0f" % d["ms"],
                     "%.0f" % alone[d["question"]]["cpu_ms"] if d["question"] in alone else "",
                     "%.0f" % mine["daemon_cpu_ms"] if mine else "", "" if d["differ"] is None else d["differ"]))
    print(table(("question", "rows", "tracemalloc, CPU ms", "allocwatch, CPU ms", "and with all rows as JSON, CPU ms",
                 "rows that differ"), rows))
    paragraph("On the pickle of the same snapshots that `allocwatch export` wrote; every row is compared, with its order.")


def store(documents):
    print("## Snapshot files\n")
    print(table(("phase", "traces", "stack nodes", "seconds", "CPU seconds", "file, bytes", "goal %d s" % GOAL_FILE_S),
                [(d["phase"], d["traces"], d["nodes"], "%.2f" % d["seconds"], "%.2f" % d["cpu_seconds"],
                  d["file_bytes"], met(d["seconds"] <= GOAL_FILE_S)) for d in documents]))


SECTIONS = {"stops": (stops,), "engines": (engines,), "sampling": (sampling,), "calls": (calls,), "unwind": (unwind, copy_or_walk),
            "reader": (reader,), "heap": (heap,), "symbol": (symbol,),
            "statistics": (questions, commands, beside_tracemalloc), "store": (store,)}


def section(result):
    documents = result["documents"]
    if result["failure"]:
        paragraph("**%s: not measured.** %s" % (result["name"], result["failure"]))
    elif result["name"] == "latency":
        latency(documents)
        memory([d for d in documents if d["bench"] == "memory"])
    else:
        for make in SECTIONS[result["name"]]:
            make(documents)


def runs(results):
    """By when they began, to the hour, and their commit: the names of the benchmarks."""
    names = {}
    for result in results["benchmarks"]:
        began, commit = result.get("began", results["began"]), result.get("commit", results["commit"]) or "unknown"
        names.setdefault((began[:13] + " h UTC", commit), []).append(result["name"])
    return names


def machine(results):
    m = results["machine"]
    known = ["%s" % m["processor"], "%d processors%s" % (m["processors"], ", virtual" if m["virtual"] else ""),
             m["memory"], m["system"], "Linux " + m["kernel"], m["libc"],
             m["elfutils"] and "elfutils " + m["elfutils"], "as root" if m["root"] else "as an ordinary user"]
    return "; ".join(part for part in known if part)


def main():
    if len(sys.argv) != 2:
        print("usage: report.py RESULTS", file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)
    print("# What allocwatch costs\n")
    paragraph("Printed by `tests/bench/report.py` from what `tests/bench/run.py` has measured; no number here was typed.")
    paragraph("%s." % machine(results))
    paragraph("Begun: " + "; ".join("%s, commit %s: %s" % (*run, ", ".join(names)) for run, names in runs(results).items()) + ".")
    paragraph("Load of the machine before and after each part (what else ran adds to the times): " +
              ", ".join("%s %.1f to %.1f in %.0f s" % (r["name"], r["load_before"], r["load_after"], r["seconds"])
                        for r in results["benchmarks"]) + ".")
    for result in results["benchmarks"]:
        section(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
