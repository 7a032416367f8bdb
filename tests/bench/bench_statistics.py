#!/usr/bin/python3
"""What questions about large snapshots cost from end to end: by a client on the daemon's socket, by the
commands, and by CPython's own tracemalloc on the exported pickle.  Prints one JSON object a line, judges nothing.

    bench_statistics.py [STACKS]           default 100000; from the top of the build tree

The daemon's own part is the processor time of all its threads, by the scheduler's clock.
"""
import glob
import json
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc

STACKS = 100000
ROUNDS = 9
ROUNDS_SECONDS = 4             # then there are fewer rounds
COMMAND_ROUNDS = 3
START_TIMEOUT = 60
IDLE_EXIT = "60"               # should this script be killed
BENCH = "tests/bench/bench_statistics"
DAEMON = "src/allocwatchd"
CLIENT = "src/allocwatch"
OLD, NEW = "s1", "s2"
CONTINUES = re.compile(rb'"continues": ?true')
KEYS = ("lineno", "filename")


def emit(**document):
    print(json.dumps(document), flush=True)


class Daemon:
    """A private daemon that finds the snapshots in its state, and one connection to it."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "socket")
        self.process = subprocess.Popen([DAEMON, "--foreground", "--private", "--idle-exit", IDLE_EXIT, "--no-heal",
                                         "--socket", self.path, "--state", folder],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.socket = self._connect()
        self.received = b""

    def _connect(self):
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(self.path)
                return connection
            except OSError:
                connection.close()
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise
            select_nothing(0.01)

    def close(self):
        self.socket.close()
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(START_TIMEOUT) != 0:
            raise RuntimeError("the daemon ended with %d" % self.process.returncode)

    def processor_ns(self):
        total = 0
        for path in glob.glob("/proc/%d/task/*/schedstat" % self.process.pid):
            with open(path, encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total

    def _reply(self):
        pieces = [self.received]
        while b"\0" not in pieces[-1]:
            piece = self.socket.recv(1 << 18)
            if not piece:
                raise RuntimeError("the daemon closed the connection")
            pieces.append(piece)
        message, self.received = b"".join(pieces).split(b"\0", 1)
        return message

    def call(self, method, parameters, more=False):
        """The texts of all replies."""
        request = {"method": "org.allocwatch.Tracer." + method, "parameters": parameters, "more": more}
        self.socket.sendall(json.dumps(request).encode() + b"\0")
        replies = [self._reply()]
        while CONTINUES.search(replies[-1]):
            replies.append(self._reply())
        return replies


def select_nothing(seconds):
    """Waits for the next look at something that tells nobody when it changes."""
    time.sleep(seconds)


def rows_of(replies):
    """Of all replies, and how many there are in all."""
    rows = []
    for text in replies:
        reply = json.loads(text)
        if "error" in reply:
            raise RuntimeError("the daemon said %s" % text[:500])
        rows += reply["parameters"]["statistics"]
    return rows, json.loads(replies[-1])["parameters"]["rows"]


# --- by the socket ---

def question(key, diff, everything):
    query = {"key": key}
    if everything:
        query["limit"] = 0
    return ("Compare", {"old": OLD, "new": NEW, "query": query}) if diff else \
        ("Statistics", {"snapshot": OLD, "query": query})


def ask(daemon, stacks, key, diff, everything):
    """Measures, and returns the rows."""
    method, parameters = question(key, diff, everything)
    walls, processors = [], []
    until = time.monotonic() + ROUNDS_SECONDS
    while len(walls) < ROUNDS and (not walls or time.monotonic() < until):
        began, used = time.perf_counter(), daemon.processor_ns()
        replies = daemon.call(method, parameters, more=everything)
        walls.append((time.perf_counter() - began) * 1000)
        processors.append((daemon.processor_ns() - used) / 1e6)
    rows, count = rows_of(replies)
    emit(bench="socket", question="%s --by %s" % ("diff" if diff else "stats", key), stacks=stacks, rows=count,
         rows_sent=len(rows), ms=min(walls), median_ms=statistics.median(walls), daemon_cpu_ms=min(processors))
    return rows


def first_questions(daemon, stacks):
    """Of snapshots that are on the disk only."""
    for name in (OLD, NEW):
        began = time.perf_counter()
        rows_of(daemon.call("Statistics", {"snapshot": name}))
        emit(bench="first", snapshot=name, stacks=stacks, ms=(time.perf_counter() - began) * 1000)


# --- by commands ---

def command(name, arguments, stacks):
    walls, processors = [], []
    until = time.monotonic() + ROUNDS_SECONDS
    while len(walls) < COMMAND_ROUNDS and (not walls or time.monotonic() < until):
        used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([CLIENT] + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        walls.append(time.perf_counter() - began)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        processors.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
    emit(bench="command", command=name, stacks=stacks, seconds=min(walls), cpu_seconds=min(processors))


def commands(daemon, folder, stacks):
    here = ["--socket", daemon.path]
    file = os.path.join(folder, OLD + ".allocwatch")
    command("stats ID", here + ["stats", OLD], stacks)
    command("diff ID ID", here + ["diff", OLD, NEW], stacks)
    command("stats FILE", ["stats", file], stacks)
    command("dump ID FILE", here + ["dump", OLD, os.path.join(folder, "dumped.awsnap")], stacks)
    command("load FILE", ["load", file], stacks)
    for name in (OLD, NEW):
        command("export FILE", ["export", "--format", "tracemalloc", "--output", os.path.join(folder, name + ".pickle"),
                                os.path.join(folder, name + ".allocwatch")], stacks)


# --- by tracemalloc ---

def timed(work):
    began = time.process_time()
    result = work()
    return result, (time.process_time() - began) * 1000


def flat(rows, diff):
    """Ours, as tracemalloc's are made flat."""
    return [(tuple((frame["file"], frame["line"]) for frame in row["traceback"]), row["size"], row["count"])
            + ((row["size_diff"], row["count_diff"]) if diff else ()) for row in rows]


def flat_python(rows, key, diff):
    return [(tuple((frame.filename, 0 if key == "filename" else frame.lineno) for frame in row.traceback), row.size,
             row.count) + ((row.size_diff, row.count_diff) if diff else ()) for row in rows]


def compare_with_tracemalloc(folder, ours, stacks):
    snapshots = {}
    for name in (OLD, NEW):
        snapshots[name], ms = timed(lambda name=name: tracemalloc.Snapshot.load(os.path.join(folder, name + ".pickle")))
        emit(bench="tracemalloc", question="load " + name, stacks=stacks, ms=ms, rows=len(snapshots[name].traces),
             differ=None)
    for (key, diff), rows in ours.items():
        if diff:
            theirs, ms = timed(lambda key=key: snapshots[NEW].compare_to(snapshots[OLD], key))
        else:
            theirs, ms = timed(lambda key=key: snapshots[OLD].statistics(key))
        mine = flat(rows, diff)
        their = flat_python(theirs, key, diff)
        differ = sum(a != b for a, b in zip(mine, their)) + abs(len(mine) - len(their))
        emit(bench="tracemalloc", question="%s --by %s" % ("diff" if diff else "stats", key), stacks=stacks, ms=ms,
             rows=len(theirs), differ=differ)


def main():
    stacks = int(sys.argv[1]) if len(sys.argv) > 1 else STACKS
    with tempfile.TemporaryDirectory(prefix="allocwatch-bench-") as folder:
        subprocess.run([BENCH, "--write", folder, str(stacks)], check=True)
        daemon = Daemon(folder)
        try:
            first_questions(daemon, stacks)
            ours = {}
            for diff in (False, True):
                for key in KEYS:
                    ask(daemon, stacks, key, diff, False)
                    ours[key, diff] = ask(daemon, stacks, key, diff, True)
            commands(daemon, folder, stacks)
        finally:
            daemon.close()
        compare_with_tracemalloc(folder, ours, stacks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
