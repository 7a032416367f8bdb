#!/usr/bin/python3
"""What sampling costs real programs: redis under redis-benchmark, json in python3, and cc1.  Prints one JSON object a
line, judges nothing.

    bench_sampling.py [ROUNDS]             default 20; from the top of the build tree

Rounds without and with `--sample-bytes 512K` take turns in one process that is attached to and let go of in between, first
the one and then the other; of cc1 each is a process of its own, run by allocwatch or not.  What is compared is the processor
time of the program itself, in user and system mode.
"""
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 20
RATE = "512K"
START_TIMEOUT = 60
PORT = "17379"
REQUESTS = "10000"
WORKER = """
import json, sys, time
document = [{"name": "n%d" % i, "values": list(range(20)), "text": "x" * (i % 200)} for i in range(2000)]
for line in sys.stdin:
    before = time.process_time_ns()
    for _ in range(6):
        json.loads(json.dumps(document))
    print(time.process_time_ns() - before, flush=True)
"""


class Daemon:
    """A private daemon, and its client."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "socket")
        self.process = subprocess.Popen(["src/allocwatchd", "--foreground", "--private", "--idle-exit", "60", "--no-heal",
                                         "--socket", self.path, "--state", folder],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_TIMEOUT
        while not os.path.exists(self.path):
            if time.monotonic() > deadline:
                raise RuntimeError("the daemon does not start")
            time.sleep(0.01)

    def command(self, name, *words):
        return ["src/allocwatch", name, "--socket", self.path, *words]

    def do(self, name, *words):
        subprocess.run(self.command(name, *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    def end(self):
        self.process.terminate()
        self.process.wait()


def emit(name, pairs):
    """Of the ratios of neighbours: Student's interval, by the normal distribution from some 20 rounds on."""
    added = [100 * (on / off - 1) for off, on in pairs]
    half = 1.96 * statistics.stdev(added) / math.sqrt(len(added))
    print(json.dumps({"bench": "sampling", "program": name, "rate": RATE, "rounds": len(pairs),
                      "off_ms": statistics.median(off for off, _ in pairs) / 1e6,
                      "on_ms": statistics.median(on for _, on in pairs) / 1e6,
                      "added_percent": statistics.mean(added), "half_interval": half,
                      "median_percent": statistics.median(added)}), flush=True)


def in_turns(daemon, pid, once, rounds):
    """Rounds off and on, the order changing each time; before each one that is not counted."""
    pairs = []
    for number in range(rounds + 1):
        costs = {}
        for on in (False, True) if number % 2 else (True, False):
            if on:
                daemon.do("attach", "--sample-bytes", RATE, str(pid))
            once()                         # what is touched or learned for the first time is not what goes on
            costs[on] = once()
            if on:
                daemon.do("detach", str(pid))
        if number > 0:                     # the first one warms up
            pairs.append((costs[False], costs[True]))
    return pairs


def python_json(daemon, rounds):
    worker = subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def once():
        worker.stdin.write("\n")
        worker.stdin.flush()
        return int(worker.stdout.readline())

    try:
        emit("json in python3", in_turns(daemon, worker.pid, once, rounds))
    finally:
        worker.kill()
        worker.wait()


def schedule_ns(pid):
    """Of all its threads, by the scheduler."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total


def redis(daemon, rounds):
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(["redis-server", "--port", PORT, "--save", "", "--dir", folder], stdout=subprocess.DEVNULL)

        def once():
            before = schedule_ns(server.pid)
            subprocess.run(["redis-benchmark", "-p", PORT, "-q", "-n", REQUESTS, "-t", "set,get,lpush,lpop,sadd"],
                           stdout=subprocess.DEVNULL, check=True)
            return schedule_ns(server.pid) - before

        try:
            deadline = time.monotonic() + START_TIMEOUT
            while subprocess.run(["redis-cli", "-p", PORT, "ping"], stdout=subprocess.DEVNULL, check=False).returncode:
                if time.monotonic() > deadline:
                    raise RuntimeError("redis does not start")
                time.sleep(0.05)
            emit("redis-benchmark", in_turns(daemon, server.pid, once, rounds))
        finally:
            server.kill()
            server.wait()


def own_ns(command):
    """Of a command and those that it has waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e9)


def cc1(daemon, rounds):
    """The client's own part, and that of a start, are those of a program that does nothing."""
    compiler = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    run = daemon.command("run", "--sample-bytes", RATE, "--")
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source.c")
        with open(source, "w", encoding="ascii") as file:
            for i in range(150):
                file.write("int f%d(int *a, int n) { int s = %d; for (int i = 0; i < n; i++) "
                           "s += a[i] > s ? a[i] * %d : s / (i + 1); return s; }\n" % (i, i, i))
        compile_it = [compiler, "-quiet", "-O2", source, "-o", os.path.join(folder, "out.s")]
        start = statistics.median(own_ns(run + ["/bin/true"]) - own_ns(["/bin/true"]) for _ in range(9))
        pairs = []
        for number in range(rounds + 1):
            if number % 2:
                off, on = own_ns(compile_it), own_ns(run + compile_it) - start
            else:
                on, off = own_ns(run + compile_it) - start, own_ns(compile_it)
            if number > 0:
                pairs.append((off, on))
        emit("cc1", pairs)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(folder)
        try:
            python_json(daemon, rounds)
            if shutil.which("redis-server") and shutil.which("redis-benchmark"):
                redis(daemon, rounds)
            if shutil.which("gcc"):
                cc1(daemon, rounds)
        finally:
            daemon.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
