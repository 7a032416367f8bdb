# SPDX-License-Identifier: MIT
# Copyright: the allocwatch developers.  See the file LICENSE beside this one.
"""Python's tracemalloc for any running program.

    import allocwatch

    tracemalloc = allocwatch.attach(4242)
    before = tracemalloc.take_snapshot()
    ...
    for stat in tracemalloc.take_snapshot().compare_to(before, "lineno")[:10]:
        print(stat)

The names are those of the module tracemalloc, and so are the objects: Snapshot, Statistic, Traceback and
the filters are tracemalloc's own classes, only that they tell of another process.  What is written for
tracemalloc runs on a native program with its import changed:

    import allocwatch as tracemalloc            # the process is $ALLOCWATCH_PID
    tracemalloc = allocwatch.connect(4242)      # or this one

allocwatch(1) does the work: it must be in the PATH, or be named by $ALLOCWATCH.  It finds the daemon, or
starts one, and decides nothing about who may trace whom.
"""
import json
import operator
import os
import pickle
import re
import subprocess
import sys
import tempfile
import tracemalloc as _tracemalloc
from tracemalloc import DomainFilter, Filter, Frame, Snapshot, Statistic, StatisticDiff, Trace, Traceback

__all__ = [
    "AllocwatchError", "StatisticTrend", "Target", "attach", "connect", "events", "keep_snapshot", "load", "traced",
    "trend",
    "DomainFilter", "Filter", "Frame", "Snapshot", "Statistic", "StatisticDiff", "Trace", "Traceback",
    "clear_traces", "get_object_traceback", "get_traceback_limit", "get_traced_memory",
    "get_tracemalloc_memory", "is_tracing", "reset_peak", "start", "stop", "take_snapshot",
]

_DOMAINS = {0: "malloc", 1: "mmap", 2: "new", 3: "python"}
#: Most frames of a traceback unless start() is told otherwise.
DEFAULT_LIMIT = 25


class AllocwatchError(RuntimeError):
    """What allocwatch said: what failed, on what, why, and what to do."""


# --- the client ---

def _program():
    return os.environ.get("ALLOCWATCH", "allocwatch")


def _command(arguments, socket):
    return [_program()] + (["--socket", os.fspath(socket)] if socket is not None else []) + arguments


def _cannot_run(command, error):
    return AllocwatchError("cannot run %s: %s; install it, or name it in $ALLOCWATCH" % (command[0], error.strerror))


def _run(arguments, socket=None, stdout=subprocess.PIPE):
    command = _command(arguments, socket)
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE)
    except OSError as error:
        raise _cannot_run(command, error) from error


def _popen(command, stderr):
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr)
    except OSError as error:
        raise _cannot_run(command, error) from error


def _reason(done):
    text = done.stderr.decode("utf-8", "surrogateescape").strip()
    lines = text.splitlines() or ["allocwatch ended with status %d" % done.returncode]
    return lines[-1][len("allocwatch: "):] if lines[-1].startswith("allocwatch: ") else lines[-1]


def _check(done):
    if done.returncode != 0:
        raise AllocwatchError(_reason(done))
    return done.stdout


def _json(output):
    return json.loads(output.decode("utf-8"))


_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")


def _text(text):
    """A name as Python has file names: bytes that are no UTF-8, written \\xNN in JSON, as surrogates."""
    def unescape(match):
        code = int(match.group(1), 16)
        return chr(code if code < 0x80 else 0xdc00 + code)
    return None if text is None else _ESCAPE.sub(unescape, text)


# --- objects ---

class _Unpickler(pickle.Unpickler):
    """Nothing but what a snapshot consists of: a pickle could name any function."""

    def find_class(self, module, name):
        if module == "tracemalloc" and name in ("Snapshot", "_Traces"):
            return getattr(_tracemalloc, name)
        raise pickle.UnpicklingError("a snapshot has no %s.%s" % (module, name))


def _export(snap, arguments, socket):
    version = "%d.%d" % sys.version_info[:2]
    with tempfile.TemporaryFile() as out:
        _check(_run(["export", snap, "--format", "tracemalloc", "--python", version] + arguments, socket, out))
        out.seek(0)
        return _Unpickler(out).load()


def _frame(frame):
    """tracemalloc's frame: file name and line."""
    if frame["file"] is not None:
        return _text(frame["file"]), frame["line"]
    return "%s(%s+0x%x)" % (_text(frame["object"]) or "[unknown]", _text(frame["function"]) or "",
                            frame["offset"]), 0


def _traceback(row):
    # The constructor takes the most recent frame first.
    made = tuple(_frame(frame) for frame in reversed(row["traceback"])) or (("<unknown>", 0),)
    return Traceback(made, row.get("total_frames") or len(made)) if sys.version_info >= (3, 9) else Traceback(made)


class StatisticTrend(Statistic):
    """A group over several snapshots: what it has in the last one, its size in each, how many bytes it grows in an
    hour, and how steadily: 1 each time, -1 when it shrinks each time, about 0 when it goes up and down."""

    __slots__ = ("growth_per_hour", "steadiness", "sizes")

    def __init__(self, traceback, size, count, growth_per_hour, steadiness, sizes):
        super().__init__(traceback, size, count)
        self.growth_per_hour = growth_per_hour
        self.steadiness = steadiness
        self.sizes = sizes

    def _values(self):
        return self.traceback, self.size, self.count, self.growth_per_hour, self.steadiness, self.sizes

    def __hash__(self):
        return hash(self._values())

    def __eq__(self, other):
        return self._values() == other._values() if isinstance(other, StatisticTrend) else NotImplemented

    def __str__(self):
        return "%s/h, steadiness %+.2f: %s" % (_tracemalloc._format_size(self.growth_per_hour, True), self.steadiness,
                                               super().__str__())

    def __repr__(self):
        return ("<StatisticTrend traceback=%r size=%i count=%i growth_per_hour=%r steadiness=%r sizes=%r>"
                % self._values())


def _pattern(pattern):
    """tracemalloc's pattern as allocwatch(1) reads it: there, what follows an @ or a : is no part of it."""
    out, at = [], 0
    while at < len(pattern):
        character, end = pattern[at], at + 1
        if character == "[":
            end += pattern[end:end + 1] == "!"
            end += pattern[end:end + 1] == "]"
            end = pattern.find("]", end) + 1
            if end == 0:
                character, end = "[[]", at + 1        # one that opens no set
            else:
                character = pattern[at:end]
        elif character in "@:":
            character = "[%s]" % character
        out.append(character)
        at = end
    return "".join(out)


def _filter(chosen):
    """A filter of tracemalloc's, or one written as for allocwatch(1)."""
    if isinstance(chosen, str):
        return "--filter=" + chosen
    text = "+" if chosen.inclusive else "-"
    if isinstance(chosen, Filter):
        text += _pattern(chosen.filename_pattern)
        text += ":%d" % chosen.lineno if chosen.lineno is not None else ""
        text += "@all" if chosen.all_frames else ""
    if chosen.domain is not None:
        text += "@domain=%s" % _DOMAINS.get(chosen.domain, chosen.domain)
    return "--filter=" + text


class Target:
    """A process, with the functions of the module tracemalloc.  Use connect() or attach()."""

    DomainFilter = DomainFilter
    Filter = Filter
    Frame = Frame
    Snapshot = Snapshot
    Statistic = Statistic
    StatisticDiff = StatisticDiff
    StatisticTrend = StatisticTrend
    Trace = Trace
    Traceback = Traceback
    #: What a filter may leave out, as examples do with tracemalloc's own file.
    __file__ = __file__

    def __init__(self, pid, socket=None):
        self.pid = operator.index(pid)
        self.socket = socket

    def __repr__(self):
        return "<allocwatch.Target of process %d>" % self.pid

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()

    def _run(self, *arguments):
        return _run(list(arguments), self.socket)

    def _status(self):
        """None when the process is not traced."""
        done = self._run("status", str(self.pid), "--json")
        if done.returncode == 0:
            status = _json(done.stdout)
            return status if status["state"] == "tracing" else None
        if self.pid in traced(self.socket):
            raise AllocwatchError(_reason(done))
        return None

    def start(self, nframe=DEFAULT_LIMIT):
        """Starts tracing; nothing happens when the process is traced already."""
        nframe = operator.index(nframe)
        if nframe < 1:
            raise ValueError("the number of frames must be at least 1")
        done = self._run("attach", str(self.pid), "--frames", str(nframe))
        if done.returncode != 0 and not self.is_tracing():
            raise AllocwatchError(_reason(done))

    def stop(self):
        """Stops tracing: the process is then as it was before."""
        done = self._run("detach", str(self.pid))
        if done.returncode != 0 and self.is_tracing():
            raise AllocwatchError(_reason(done))

    def is_tracing(self):
        return self._status() is not None

    def get_traceback_limit(self):
        status = self._status()
        return status["frames_limit"] if status else DEFAULT_LIMIT

    def get_traced_memory(self):
        """Bytes now and at the peak."""
        status = self._status()
        return (status["traced_current"], status["traced_peak"]) if status else (0, 0)

    def get_tracemalloc_memory(self):
        """Bytes that the tracer of the process needs for it."""
        status = self._status()
        return status["tracer_memory"] if status else 0

    def reset_peak(self):
        if self.is_tracing():
            _check(self._run("reset-peak", str(self.pid)))

    def clear_traces(self):
        if self.is_tracing():
            _check(self._run("clear", str(self.pid)))

    def take_snapshot(self, blocks=True):
        """A tracemalloc.Snapshot of the process.  Without blocks it has one trace for each block all the
        same, but sizes made up from the sums of their groups: cheaper with millions of blocks."""
        if not self.is_tracing():
            raise RuntimeError("process %d must be traced to take a snapshot of it: start() does that" % self.pid)
        return _export(str(self.pid), ["--blocks"] if blocks else [], self.socket)

    def keep_snapshot(self, name=None, blocks=False):
        """Takes a snapshot that allocwatch keeps: its id, such as "s17", for load() and trend()."""
        arguments = (["--name", name] if name else []) + (["--blocks"] if blocks else [])
        return _json(_check(self._run("snapshot", str(self.pid), "--json", *arguments)))["id"]

    def trend(self, snaps, key_type="lineno", cumulative=False, filters=()):
        return trend(snaps, key_type, cumulative, filters, self.socket)

    def events(self):
        return events(self.pid, self.socket)

    def get_object_traceback(self, address):
        """The Traceback of the block that holds an address; None when no block that is known does."""
        if not self.is_tracing():
            return None
        done = self._run("block", str(self.pid), hex(operator.index(address)), "--json")
        if not done.stdout:
            raise AllocwatchError(_reason(done))
        found = _json(done.stdout)["blocks"]
        return _traceback(found[0]) if found else None


# --- the module as tracemalloc itself ---

_default = None


def connect(pid, socket=None):
    """A process, traced or not, whose functions are those of tracemalloc; from now on, the one that the
    functions of this module mean.  socket: the daemon's, if not the one that allocwatch(1) finds."""
    global _default
    _default = Target(pid, socket)
    return _default


def attach(pid, nframe=DEFAULT_LIMIT, socket=None):
    """connect(), and start()."""
    target = connect(pid, socket)
    target.start(nframe)
    return target


def traced(socket=None):
    """The PIDs of the traced processes."""
    done = _run(["list", "--json"], socket)
    if done.returncode != 0 and "no daemon " in _reason(done):
        return []
    return [target["pid"] for target in _json(_check(done))["targets"]]


def events(pid=None, socket=None):
    """What happens from now on, as it happens: dictionaries with a "kind" such as "snapshot" or "exited".  The first is
    "subscribed": from then on nothing is missed but what a "missed" counts.  Of everything that the user may see, or of
    one traced process, until it is no longer traced.  close() ends it, as does the end of the loop that it feeds."""
    command = _command(["events", "--json"] + ([str(operator.index(pid))] if pid is not None else []), socket)
    with tempfile.TemporaryFile() as said, _popen(command, said) as process:
        try:
            for line in process.stdout:
                yield _json(line)
        except GeneratorExit:
            process.kill()
            raise
        if process.wait() != 0:
            said.seek(0)
            raise AllocwatchError(_reason(subprocess.CompletedProcess(command, process.returncode, b"", said.read())))


def _snap(snap):
    """What allocwatch(1) is told: there, a file has a / in its name."""
    name = os.fspath(snap)
    return os.path.join(os.curdir, name) if os.path.exists(name) and os.sep not in name else name


def load(snap, socket=None):
    """A tracemalloc.Snapshot of a file that `allocwatch dump` wrote, or of a kept snapshot: "s17",
    "4242:before"."""
    return _export(_snap(snap), [], socket)


def trend(snaps, key_type="lineno", cumulative=False, filters=(), socket=None):
    """What grows over three or more snapshots, named as for load(), in the order in which they were taken: a list of
    StatisticTrend, the fastest growth, as far as it is steady, first.  filters: tracemalloc's."""
    if key_type not in ("traceback", "filename", "lineno"):
        raise ValueError("unknown key_type: %r" % (key_type,))
    if cumulative and key_type == "traceback":
        raise ValueError("cumulative mode cannot be used with key type %r" % key_type)
    arguments = ["trend", "--json", "--by", key_type] + (["--cumulative"] if cumulative else [])
    arguments += [_filter(chosen) for chosen in filters] + ["--"] + [_snap(snap) for snap in snaps]
    return [StatisticTrend(_traceback(row), row["size"], row["count"], row["growth_per_hour"], row["steadiness"],
                           tuple(row["sizes"]))
            for row in _json(_check(_run(arguments, socket)))["statistics"]]


def _target():
    if _default is not None:
        return _default
    pid = os.environ.get("ALLOCWATCH_PID", "")
    if not pid.isdecimal():
        raise AllocwatchError("no process was named: use connect(PID), or set ALLOCWATCH_PID")
    return connect(int(pid))


def start(nframe=DEFAULT_LIMIT):
    _target().start(nframe)


def stop():
    _target().stop()


def is_tracing():
    return _target().is_tracing()


def get_traceback_limit():
    return _target().get_traceback_limit()


def get_traced_memory():
    return _target().get_traced_memory()


def get_tracemalloc_memory():
    return _target().get_tracemalloc_memory()


def reset_peak():
    _target().reset_peak()


def clear_traces():
    _target().clear_traces()


def take_snapshot(blocks=True):
    return _target().take_snapshot(blocks)


def keep_snapshot(name=None, blocks=False):
    return _target().keep_snapshot(name, blocks)


def get_object_traceback(address):
    return _target().get_object_traceback(address)
