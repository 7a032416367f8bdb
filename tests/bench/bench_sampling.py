#!/usr/bin/python3
"""What sampling costs real programs: redis under redis-benchmark, json in python3, and cc1.  Prints one JSON object a
line, judges nothing.

    bench_sampling.py [THREES [PROGRAM...]]        default 16, of all; from the top of the build tree

What is compared is the processor time of the program's own threads, in user and system mode, which waiting for a processor does
not change; other work on the machine does, by the caches and the cores that it shares.  So the program has a core for itself and all else
the other one, and stretches of work come by threes, in an order that changes: two without, one with `--sample-bytes 512K`, in one process that
is attached to and let go of before each.  A stretch is the median of MEASURED blocks, behind WARM ones that show what an attach costs
and not what sampling does: new pages, stacks that nothing is known of, a tracer that reads tables.  That is told by itself ("attach_ms": how
much longer the first blocks took, with samples, than as many of the stretch).  Of cc1 each block is a process of its own, attached to while it waits for its
source, and so long that an attach is little of it.  Of the differences within a three a fifth at each end is left out (Yuen's interval for
trimmed means).  "null" is the same comparison of the two stretches without: what the measurement itself takes for a difference.

"here_ns" is what was added, of a pair of calls; "reckoned" is what would be if a pair cost what it costs in a loop (bench_ring): it
knows nothing of the caches, nor of what is recorded.
"""
import json
import math
import os
import re
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

THREES = 16
WARM = 3
MEASURED = 7
RATE = "512K"
CORES = sorted(os.sched_getaffinity(0))
TRIMMED = 0.2
LOOPS = 9
PATIENCE = 60
PORT = 17379
FUNCTIONS = 400                            # of cc1's source
REQUESTS = "2000"
PIPELINE = "32"
WORKER = """
import json, sys
document = [{"name": "n%d" % i, "values": list(range(20)), "text": "x" * (i % 200)} for i in range(500)]
for line in sys.stdin:
    for _ in range(24):
        json.loads(json.dumps(document))
    print("done", flush=True)
"""


class Daemon:
    """A private daemon, and its client."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "socket")
        self.process = subprocess.Popen(["src/allocwatchd", "--foreground", "--private", "--idle-exit", "60", "--no-heal",
                                         "--socket", self.path, "--state", folder],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(self.path):
            if time.monotonic() > deadline:
                raise RuntimeError("the daemon does not start")
            time.sleep(0.01)

    def command(self, name, *words):
        return ["src/allocwatch", name, "--socket", self.path, *words]

    def do(self, name, *words):
        return subprocess.run(self.command(name, *words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout

    def calls(self, pid):
        """Allocations and frees so far, all of which are recorded."""
        status = json.loads(self.do("status", "--json", str(pid)))
        return status["allocations"] + status["frees"]

    def end(self):
        self.process.terminate()
        self.process.wait()


def trimmed(values):
    """The mean of what is left, and half of its interval of 95 %, by the normal distribution."""
    values = sorted(values)
    out = int(TRIMMED * len(values))
    kept = values[out:len(values) - out]
    winsorized = [min(max(value, kept[0]), kept[-1]) for value in values]
    error = statistics.stdev(winsorized) / ((1 - 2 * TRIMMED) * math.sqrt(len(values)))
    return statistics.mean(kept), 1.96 * error


def pair_ns():
    """What a malloc and a free take more in a loop: the least with samples, less the least without, for the machine is never
    quiet, and each run measures both."""
    plain, sampled = [], []
    for _ in range(LOOPS):
        out = subprocess.run(["tests/bench/bench_ring", "4", "samples"], stdout=subprocess.PIPE, check=True, text=True).stdout
        plain.append(float(re.search(r"a pair costs ([0-9.]+) ns", out).group(1)))
        sampled.append(plain[-1] + float(re.search(r"^sampled every 512 KiB +(-?[0-9.]+) ns", out, re.M).group(1)))
    return min(sampled) - min(plain)


def emit(name, blocks, calls, pair, attach=0.0):
    """blocks: (off, off, on) in ns; calls: of allocator functions, in a block; attach: ns."""
    off = statistics.median(statistics.mean(block[:2]) for block in blocks)
    added, half = trimmed([100 * (on / statistics.mean(offs) - 1) for *offs, on in blocks])
    null, null_half = trimmed([100 * (second / first - 1) for first, second, _ in blocks])
    print(json.dumps({"bench": "sampling", "program": name, "rate": RATE, "blocks": len(blocks), "block_ms": off / 1e6,
                      "added_percent": added, "half_interval": half, "null_percent": null, "null_half_interval": null_half,
                      "attach_ms": attach / 1e6, "pairs_per_second": calls / 2 / off * 1e9, "pair_ns": pair,
                      "here_ns": added / 100 * off / (calls / 2), "here_half_interval": half / 100 * off / (calls / 2),
                      "reckoned_percent": 100 * calls / 2 * pair / off}), flush=True)


ORDERS = (("off", "again", "on"), ("on", "again", "off"), ("off", "on", "again"), ("again", "on", "off"))


def stretch(daemon, pid, once, sampled):
    """What a block takes, and how much more the first ones did."""
    daemon.do("attach", "--sample-bytes", RATE, str(pid))
    if not sampled:
        daemon.do("detach", str(pid))
    first = [once() for _ in range(WARM)]
    block = statistics.median(once() for _ in range(MEASURED))
    if sampled:
        daemon.do("detach", str(pid))
    return block, sum(first) - WARM * block


def in_turns(daemon, pid, once, threes):
    """(off, off, on) of each, and what an attach took."""
    took, attaches = [], []
    once()
    for number in range(threes):
        three = {which: stretch(daemon, pid, once, which == "on") for which in ORDERS[number % len(ORDERS)]}
        took.append(tuple(three[which][0] for which in ("off", "again", "on")))
        attaches.append(three["on"][1])
    return took, statistics.median(attaches)


def on_its_core():
    """Of a program that is measured, before it runs; the first core is its own."""
    os.sched_setaffinity(0, {CORES[0]})


def calls_of(daemon, pid, once):
    daemon.do("attach", "--sample-bytes", "0", "--engine", "ring", "--ring-wait", "30s", str(pid))
    before = daemon.calls(pid)
    once()
    calls = daemon.calls(pid) - before
    daemon.do("detach", str(pid))
    return calls


def schedule_ns(pid):
    """Of all its threads, by the scheduler."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def python_json(daemon, blocks, pair):
    worker = subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              preexec_fn=on_its_core)

    def once():
        before = schedule_ns(worker.pid)
        worker.stdin.write("\n")
        worker.stdin.flush()
        worker.stdout.readline()
        return schedule_ns(worker.pid) - before

    try:
        took, attach = in_turns(daemon, worker.pid, once, blocks)
        emit("json in python3", took, calls_of(daemon, worker.pid, once), pair, attach)
    finally:
        worker.kill()
        worker.wait()


def wait_for_redis():
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.create_connection(("127.0.0.1", PORT)) as asked:
                asked.sendall(b"PING\r\n")
                if asked.recv(16).startswith(b"+PONG"):
                    return
        except OSError:
            pass
        if time.monotonic() > deadline:
            raise RuntimeError("redis does not start")
        time.sleep(0.05)


def redis(daemon, blocks, pair):
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(["redis-server", "--port", str(PORT), "--save", "", "--dir", folder], stdout=subprocess.DEVNULL,
                                  preexec_fn=on_its_core)

        def once(*options, requests=REQUESTS):
            before = schedule_ns(server.pid)
            subprocess.run(["redis-benchmark", "-p", str(PORT), "-q", "-n", requests, "-t", "set,get,lpush,lpop,sadd", *options],
                           stdout=subprocess.DEVNULL, check=True)
            return schedule_ns(server.pid) - before

        def pipelined():
            return once("-P", PIPELINE, requests=str(10 * int(REQUESTS)))

        try:
            wait_for_redis()
            for name, work in (("redis-benchmark", once), ("redis-benchmark -P " + PIPELINE, pipelined)):
                took, attach = in_turns(daemon, server.pid, work, blocks)
                emit(name, took, calls_of(daemon, server.pid, work), pair, attach)
        finally:
            server.kill()
            server.wait()


def source():
    return "".join("int f%d(int *a, int n) { int s = %d; for (int i = 0; i < n; i++) "
                   "s += a[i] > s ? a[i] * %d : s / (i + 1); return s; }\n" % (i, i, i) for i in range(FUNCTIONS)).encode()


def waits_for_its_source(pid):
    with open("/proc/%d/syscall" % pid, encoding="ascii") as file:
        return file.read().split()[:2] == ["0", "0x0"]          # read(0, ...)


def compile_once(compiler, prepare=None):
    """Its process, and its time behind what is done before it has its source."""
    process = subprocess.Popen([compiler, "-quiet", "-O2", "-", "-o", "/dev/null"], stdin=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, preexec_fn=on_its_core)
    deadline = time.monotonic() + PATIENCE
    while not waits_for_its_source(process.pid):
        if time.monotonic() > deadline:
            raise RuntimeError("cc1 does not read its source")
        time.sleep(0.001)
    if prepare:
        prepare(process.pid)
    before = schedule_ns(process.pid)
    process.stdin.write(source())
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.pid, (usage.ru_utime + usage.ru_stime) * 1e9 - before


def calls_of_cc1(daemon, compiler, folder):
    pid, _ = compile_once(compiler, lambda pid: daemon.do("attach", "--sample-bytes", "0", "--engine", "ring", "--ring-wait",
                                                          "30s", str(pid)))
    path = os.path.join(folder, "cc1")
    daemon.do("dump", "%d:exit" % pid, path)
    with sqlite3.connect(path) as database:
        return sum(database.execute("SELECT allocations, frees FROM snapshot").fetchone())


def cc1(daemon, blocks, pair, folder):
    compiler = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()

    def sample(pid):
        daemon.do("attach", "--sample-bytes", RATE, str(pid))

    def once(which):
        return compile_once(compiler, sample if which == "on" else None)[1]

    took = []
    for number in range(blocks + 1):
        block = {which: once(which) for which in ORDERS[number % len(ORDERS)]}
        if number > 0:
            took.append((block["off"], block["again"], block["on"]))
    emit("cc1", took, calls_of_cc1(daemon, compiler, folder), pair)


def main():
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else THREES
    wanted = sys.argv[2:] or ["json", "cc1", "redis"]
    pair = pair_ns()
    os.sched_setaffinity(0, {CORES[-1]})
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(folder)
        try:
            if "json" in wanted:
                python_json(daemon, blocks, pair)
            if "cc1" in wanted and shutil.which("gcc"):
                cc1(daemon, blocks, pair, folder)
            if "redis" in wanted and shutil.which("redis-server") and shutil.which("redis-benchmark"):
                redis(daemon, blocks, pair)
        finally:
            daemon.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
