#!/usr/bin/python3
"""Runs the benchmarks and keeps what they say, as one JSON document.

    run.py RESULTS [NAME...]

from the top of the build tree; NAMEs are those of the benchmarks (all).  With NAMEs what others there are in RESULTS stay, if they are of
the same machine; of each it is noted when it began, and of which commit it is.  A benchmark that cannot measure is a
failure: it is noted in the document, and the exit status is 1.  A slow result is none: nothing is judged here.
"""
import json
import os
import subprocess
import sys
import time

SOURCE = os.environ.get("srcdir", ".")
# Program, distinct stacks (redis has no more at its allocations in reasonable time), one in so many allocations.
RECORDED = (("redis", 800, 1), ("python3", 6000, 3), ("cc1", 4000, 1))
RECORDING = "tests/bench/%s.stacks"

# Name, seconds it may take, commands one after the other; they print JSON documents on stdout, but for
# those in SILENT.
BENCHMARKS = (
    ("stops", 240, (["tests/bench/bench_stops"],)),
    ("engines", 600, (["tests/bench/bench_engines"],)),
    ("sampling", 900, ([SOURCE + "/tests/bench/bench_sampling.py"],)),
    ("calls", 120, (["tests/bench/bench_calls"],)),
    ("latency", 240, (["tests/bench/bench_latency"],)),
    ("unwind", 240, tuple(
        ["tests/bench/record_stacks", "-n", str(stacks), "-e", str(every), "-c", SOURCE + "/src/probe/engine_int3.c",
         "-o", RECORDING % name, name] for name, stacks, every in RECORDED)
        + (["tests/bench/bench_unwind"] + [RECORDING % name for name, _, _ in RECORDED],
           ["tests/bench/bench_walk"] + [RECORDING % name for name, _, _ in RECORDED])),
    ("reader", 240, tuple(
        ["tests/bench/record_stacks", "-a", "-n", "6000", "-e", "3", "-c", SOURCE + "/src/probe/engine_int3.c",
         "-o", RECORDING % (name + "-all"), name] for name, _, _ in RECORDED)
        + (["tests/bench/bench_reader"] + [RECORDING % (name + "-all") for name, _, _ in RECORDED],)),
    ("heap", 240, (["tests/bench/bench_heap"],)),
    ("symbol", 120, (["tests/bench/bench_symbol"],)),
    ("statistics", 300, (["tests/bench/bench_statistics"], [SOURCE + "/tests/bench/bench_statistics.py"])),
    ("store", 120, (["tests/bench/bench_store", "tests/bench/bench_store.awsnap"],)),
)
SILENT = {"tests/bench/record_stacks"}


def first_line(path, key):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith(key):
                    return line.split(":" if ":" in line else "=", 1)[1].strip().strip('"')
    except OSError:
        pass
    return None


def version_of(package):
    try:
        return subprocess.run(["pkg-config", "--modversion", package], stdout=subprocess.PIPE, check=True,
                              text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def commit():
    try:
        return subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def describe_machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        virtual = " hypervisor" in file.read()
    return {
        "processor": first_line("/proc/cpuinfo", "model name"),
        "processors": len(os.sched_getaffinity(0)),
        "virtual": virtual,
        "memory": first_line("/proc/meminfo", "MemTotal"),
        "system": first_line("/etc/os-release", "PRETTY_NAME"),
        "kernel": os.uname().release,
        "libc": os.confstr("CS_GNU_LIBC_VERSION"),
        "elfutils": version_of("libdw"),
        "root": os.geteuid() == 0,
    }


def documents(text):
    decoder = json.JSONDecoder()
    at = 0
    while at < len(text):
        document, end = decoder.raw_decode(text, at)
        yield document
        while end < len(text) and text[end].isspace():
            end += 1
        at = end


def run_command(command, seconds):
    """What it printed, decoded; raises RuntimeError."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=seconds, check=False, text=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(str(error)) from error
    if done.returncode != 0:
        raise RuntimeError("%s exited with %d" % (command[0], done.returncode))
    if command[0] in SILENT:
        return []
    try:
        found = list(documents(done.stdout.strip()))
    except ValueError as error:
        raise RuntimeError("%s printed no JSON: %s" % (command[0], error)) from error
    if not found:
        raise RuntimeError("%s measured nothing" % command[0])
    return found


def run_benchmark(name, seconds, commands):
    deadline = time.monotonic() + seconds
    result = {"name": name, "load_before": os.getloadavg()[0], "documents": [], "failure": None}
    try:
        for command in commands:
            result["documents"] += run_command(command, max(1, deadline - time.monotonic()))
    except RuntimeError as error:
        result["failure"] = str(error)
        print("bench %s failed: %s" % (name, error), file=sys.stderr)
    result["load_after"] = os.getloadavg()[0]
    result["seconds"] = round(time.monotonic() - deadline + seconds, 1)
    return result


def now():
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())


def earlier(path, machine):
    """The benchmarks that there are in a document of this machine, by name."""
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    except FileNotFoundError:
        return {}
    if results["machine"] != machine:
        return {}
    return {result["name"]: {"began": results["began"], "commit": results["commit"], **result} for result in results["benchmarks"]}


def main():
    if len(sys.argv) < 2:
        print("usage: run.py RESULTS [NAME...]", file=sys.stderr)
        return 2
    wanted = sys.argv[2:] or [name for name, _, _ in BENCHMARKS]
    unknown = set(wanted) - {name for name, _, _ in BENCHMARKS}
    if unknown:
        print("no such benchmark: " + ", ".join(sorted(unknown)), file=sys.stderr)
        return 2
    results = {"machine": describe_machine(), "commit": commit(), "began": now(), "benchmarks": []}
    kept = earlier(sys.argv[1], results["machine"]) if sys.argv[2:] else {}
    for name, seconds, commands in BENCHMARKS:
        if name in wanted:
            print("bench %s ..." % name, file=sys.stderr)
            results["benchmarks"].append({"began": now(), "commit": commit(), **run_benchmark(name, seconds, commands)})
        elif name in kept:
            results["benchmarks"].append(kept[name])
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    return int(any(result["failure"] for result in results["benchmarks"]))


if __name__ == "__main__":
    sys.exit(main())
