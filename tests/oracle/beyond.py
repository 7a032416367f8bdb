"""What tracemalloc cannot say - ages, churn, the peak, histograms, trends - worked out anew from what a snapshot is:
traces with their frames and numbers, and blocks.  Only which traces pass the filters is asked of tracemalloc.

As a program: one request a line, {"snapshots": [...], "queries": [...]}, and one line with the answers, each as the
daemon's and the client's JSON, or null for a question that has none.  Names come as hexadecimal bytes.
"""
import itertools
import json
import re
import statistics
import sys
import tracemalloc

DOMAINS = {0: "malloc", 1: "mmap", 2: "new", 3: "python"}
#: What a group has, and what differences are made of.
#: What compilers append to a function's name.
COMPILERS_OWN = re.compile(r"(?<=.)(\.(cold|localalias|omp_outlined)(\.\d+)?|\.(constprop|isra|part|lto_priv|llvm|__uniq|_omp_fn)\.\d+"
                           r"| \[clone \.[^]]*\])+\Z")
NUMBERS = ("size", "count", "made_size", "made_count", "freed", "temporary")


def text(name):
    return bytes.fromhex(name).decode("utf-8", "surrogateescape")


def shown(name):
    """As JSON has names: bytes that are no UTF-8 as \\xNN."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


class Frame:
    def __init__(self, file, line, function, object_, offset, inlined):
        self.file, self.line, self.function, self.object = file, line, function, object_
        self.offset, self.inlined = offset, inlined
        self.name = file if file is not None else "%s(%s+0x%x)" % (object_ or "[unknown]", function or "", offset)

    def json(self, file=False, line=0, function=False, object_=False, offset=False, inlined=False):
        """With the parts that a key keeps."""
        name, function = self.file if file else None, self.function if function else None
        return {"file": None if name is None else shown(name), "line": line,
                "function": None if function is None else shown(function),
                "object": shown(self.object) if object_ else "", "offset": self.offset if offset else 0,
                "inlined": self.inlined if inlined else False}

    def whole(self):
        return self.json(True, self.line, True, True, True, True)


#: Names of the objects that there are builds of.
PROGRAM, LIBRARY = "p", "lib y.so"
NO_FRAME = Frame("<unknown>", 0, None, "", 0, False)


class Snapshot:
    """limit: frames; traces: {"domain", "frames" most recent first, "total", and numbers}; blocks: (trace, size, age,
    thread), or None; builds: of PROGRAM and LIBRARY."""

    builds, symbolized = (0, 0), True

    def __init__(self, document, make_text=text):
        self.__dict__.update(document)
        frames = {}
        for trace in self.traces:
            made = []
            for frame in trace["frames"]:
                key = tuple(frame)
                if key not in frames:
                    file, line, function, object_, offset, inlined = frame
                    frames[key] = Frame(file and make_text(file), line, function and make_text(function),
                                        make_text(object_), offset, bool(inlined))
                made.append(frames[key])
            trace["frames"] = made


class Group:
    def __init__(self, label, key):
        self.label, self.key = label, key
        self.new, self.old = dict.fromkeys(NUMBERS, 0), dict.fromkeys(NUMBERS, 0)
        self.ages, self.sizes, self.histogram = [], [], {}
        self.rounds = []                 # the snapshots that have it


def key_of(key, frame):
    """What tells groups apart and orders them, and how the group is shown."""
    if key == "lineno":
        return (frame.name, frame.line), frame.whole()
    if key == "filename":
        return (frame.name, 0), frame.json(True) if frame.file is not None else frame.whole()
    if key == "function":
        if frame.function is not None:
            return (frame.function, 0), frame.json(function=True, object_=True)
        return (frame.name, 0), frame.json(True, object_=True, offset=frame.file is None)
    if key == "definition":
        place = frame.file if frame.file is not None else frame.object or "[unknown]"
        function = COMPILERS_OWN.sub("", frame.function or "")
        label = dict(frame.json(True, object_=True), function=shown(function) if frame.function is not None else None)
        return (place, 0, function), label
    return (frame.object or "[unknown]", 0), frame.json(object_=True)


def likeness(a, b):
    """Folders that two paths have in common, from the end and from the beginning."""
    a, b = a.split("/")[:-1], b.split("/")[:-1]
    count = lambda pairs: len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return count(zip(a[::-1], b[::-1])), count(zip(a, b))


def object_name(path):
    return re.sub(r"(?<=.)(\.so)\..*", r"\1", path.rpartition("/")[2])


class Question:
    def __init__(self, query):
        self.__dict__.update(query)
        self.groups = {}
        self.totals = []
        self.same = {}                   # keys of groups that became part of another one
        self.round = 0                   # of the snapshot at hand
        self.added = []
        self.shown = []                  # the groups of the answer's rows

    def contradicts(self, series):
        about_blocks = self.older_ns is not None or self.born or self.key == "thread"
        if self.cumulative and self.key in ("traceback", "thread", "domain"):
            return True
        if about_blocks and (self.churn or self.peak) or self.churn and self.peak:
            return True
        if self.histogram and (self.cumulative or self.key == "thread" or self.peak):
            return True
        if len(series) > 2 and (self.churn or self.histogram or self.born or self.sort != "abs"):
            return True
        needing = series[-1:] if self.born else series
        return (about_blocks or self.histogram) and any(snapshot.blocks is None for snapshot in needing)

    def measure(self, snapshot, number, trace, below):
        """What counts of a trace: its numbers, and the blocks that count."""
        blocks = [block for block in snapshot.of_trace.get(number, ())
                  if (self.older_ns is None or block[2] > self.older_ns) and (below is None or block[2] < below)]
        if self.older_ns is not None or below is not None:
            made = dict(size=sum(block[1] for block in blocks), count=len(blocks))
        elif self.peak:
            made = dict(size=trace["peak_bytes"], count=trace["peak_blocks"])
        else:
            made = dict(size=trace["live_bytes"], count=trace["live_blocks"])
        if self.churn:
            made.update(made_size=trace["total_bytes"], made_count=trace["total_blocks"],
                        freed=trace["total_blocks"] - trace["live_blocks"], temporary=trace["temporary_blocks"])
        return dict(dict.fromkeys(NUMBERS, 0), **made), blocks

    def places(self, trace, limit, blocks):
        """The groups that a trace counts in: (key, how it is shown, blocks of it that belong there)."""
        if self.key == "domain":
            domain = trace["domain"]
            yield (("", domain),), dict(traceback=[], domain=DOMAINS.get(domain, "user" if domain == 100 else str(domain))), blocks
        elif self.key == "thread":
            for thread in dict.fromkeys(block[3] for block in blocks):
                yield ((("", thread),), dict(traceback=[], thread=thread),
                       [block for block in blocks if block[3] == thread])
        elif self.key == "traceback":
            frames = trace["frames"][:limit] or [NO_FRAME]
            label = dict(traceback=[frame.whole() for frame in reversed(frames)])
            if trace["frames"]:
                label["total_frames"] = len(trace["frames"])
            if len(trace["frames"]) > limit:
                label["truncated"] = "frames limit reached"
            elif trace["truncated"]:
                label["truncated"] = trace["truncated"]
            yield tuple((frame.name, frame.line) for frame in reversed(frames)), label, blocks
        else:
            frames = trace["frames"][:limit] or [NO_FRAME]
            for frame in frames if self.cumulative else frames[:1]:
                key, label = key_of(self.key, frame)
                yield (key,), dict(traceback=[label]), blocks

    def chosen(self, snapshot, limit):
        """Numbers of the traces that pass the filters."""
        if not self.filters:
            return range(len(snapshot.traces))
        filters = []
        for one in self.filters:
            if one["pattern"] is None:
                filters.append(tracemalloc.DomainFilter(one["inclusive"], one["domain"]))
            else:
                filters.append(tracemalloc.Filter(one["inclusive"], text(one["pattern"]), one["lineno"],
                                                  one["all_frames"], one["domain"]))
        traces = [(trace["domain"], number, tuple((f.name, f.line) for f in trace["frames"][:limit] or [NO_FRAME]), 1)
                  for number, trace in enumerate(snapshot.traces)]
        return [trace[1] for trace in tracemalloc.Snapshot(traces, limit).filter_traces(filters).traces._traces]

    def add(self, snapshot, limit, side, below):
        """side: "new", "old", or None for one of many."""
        snapshot.of_trace = {}
        for block in snapshot.blocks or ():
            snapshot.of_trace.setdefault(block[0], []).append(block)
        total = dict.fromkeys(NUMBERS, 0)
        self.round += 1
        for number in self.chosen(snapshot, limit):
            trace = snapshot.traces[number]
            measure, blocks = self.measure(snapshot, number, trace, below)
            if measure["count"] == 0 and measure["made_count"] == 0:
                continue
            for name in NUMBERS:
                total[name] += measure[name]
            for key, label, own in self.places(trace, limit, blocks):
                key = self.same.get(key, key)
                group = self.groups.setdefault(key, Group(label, key))
                group.rounds.append(self.round)
                if self.key == "thread":
                    measure = dict(measure, size=sum(block[1] for block in own), count=len(own))
                numbers = group.new if side != "old" else group.old
                for name in NUMBERS:
                    numbers[name] += measure[name]
                if side != "old":
                    group.ages += [block[2] for block in own]
                    for block in own:
                        group.histogram[block[1].bit_length()] = group.histogram.get(block[1].bit_length(), 0) + 1
        self.totals.append(total)
        self.added.append(snapshot)
        if self.key == "definition" and self.round > 1:
            self.match_places()
            self.match_functions()
            self.match_objects()

    def side(self, group):
        if self.round not in group.rounds:
            return "earlier"
        return "latest" if min(group.rounds) == self.round else "both"

    def is_built_anew(self, group):
        """Since a snapshot last had the group."""
        name = object_name(group.label["traceback"][0]["object"])
        if name not in (PROGRAM, LIBRARY):
            return False
        number = (PROGRAM, LIBRARY).index(name)
        return self.added[max(group.rounds) - 1].builds[number] != self.added[-1].builds[number]

    def match_places(self):
        """Of an object that was built anew, a function of a file of one base name."""
        kinds = {}
        for group in self.groups.values():
            frame = group.label["traceback"][0]
            if frame["object"] and self.side(group) != "both":
                file = frame["file"] and frame["file"].rpartition("/")[2]
                kind = kinds.setdefault((object_name(frame["object"]), frame["function"], file), {"earlier": [], "latest": []})
                kind[self.side(group)].append(group)
        for kind in kinds.values():
            left = [(likeness(*(group.label["traceback"][0]["file"] or "" for group in pair)), pair)
                    for pair in itertools.product(kind["earlier"], kind["latest"]) if self.is_built_anew(pair[0])]
            while left:
                best = max(like for like, _ in left)
                pairs = [pair for like, pair in left if like == best]
                met = [group for pair in pairs for group in pair]
                left = [(like, pair) for like, pair in left if not any(group in met for group in pair)]
                for earlier, latest in pairs:
                    if met.count(earlier) == met.count(latest) == 1:
                        self.join(*((earlier, latest) if self.newest_first else (latest, earlier)))

    def match_objects(self):
        """Of an object that was built anew, where one side has functions and the other has none."""
        kinds = {}
        for group in self.groups.values():
            if group.label["traceback"][0]["object"]:
                kinds.setdefault(object_name(group.label["traceback"][0]["object"]), []).append(group)
        for groups in kinds.values():
            bare = [group for group in groups if group.label["traceback"][0]["file"] is None
                    and group.label["traceback"][0]["function"] is None]
            if len(bare) == 1 and all(self.is_built_anew(group) for group in groups if self.side(group) == "earlier"):
                self.join_unlike(bare[0], [group for group in groups if group is not bare[0]])

    def join_unlike(self, bare, others):
        if self.side(bare) != "both" and not any(self.side(group) in ("both", self.side(bare)) for group in others):
            for group in others:
                self.join(bare, group)

    def match_functions(self):
        """Where one side has files of a function's and the other has none: by function and object."""
        kinds = {}
        for group in self.groups.values():
            frame = group.label["traceback"][0]
            if frame["object"] and frame["function"] is not None:
                kinds.setdefault((object_name(frame["object"]), frame["function"]), []).append(group)
        for groups in kinds.values():
            bare = [group for group in groups if group.label["traceback"][0]["file"] is None]
            if len(bare) == 1:
                self.join_unlike(bare[0], [group for group in groups if group is not bare[0]])

    def join(self, group, other):
        for name in NUMBERS:
            group.new[name] += other.new[name]
            group.old[name] += other.old[name]
        group.ages += other.ages
        for step, count in other.histogram.items():
            group.histogram[step] = group.histogram.get(step, 0) + count
        length = max(len(group.sizes), len(other.sizes))
        sizes = [one.sizes + [0] * (length - len(one.sizes)) for one in (group, other)]
        group.sizes = [a + b for a, b in zip(*sizes)]
        group.rounds += other.rounds
        self.same.update({key: group.key for key, to in self.same.items() if to == other.key})
        self.same[other.key] = group.key
        del self.groups[other.key]

    def row(self, group, diff, ages):
        row = dict(group.label, size=group.new["size"], count=group.new["count"])
        changes = {name: group.new[name] - group.old[name] for name in NUMBERS}
        if diff:
            row.update(size_diff=changes["size"], count_diff=changes["count"])
            if changes["size"] > 0 and changes["count"] <= 0 and group.old["count"] > 0:
                row["bigger"] = True
        if ages:
            row.update(youngest_seconds=min(group.ages, default=0) / 1e9, oldest_seconds=max(group.ages, default=0) / 1e9)
        if self.churn:
            row.update(allocations=changes["made_count"], allocated_size=changes["made_size"],
                       frees=changes["freed"], temporary=changes["temporary"])
        if self.histogram and group.histogram:
            row["histogram"] = [dict(least=2 ** step // 2, most=min(2 ** step - 1, 2 ** 63 - 1), count=count)
                                for step, count in sorted(group.histogram.items())]
        return row

    def order(self, diff):
        """Descending."""
        def by(item):
            key, group = item
            change = {name: group.new[name] - group.old[name] for name in NUMBERS}
            values = [group.new["size"], group.new["count"], key]
            if diff:
                values = [abs(change["size"]), group.new["size"], abs(change["count"]), group.new["count"], key]
            if self.sort == "churn":
                values = [change["made_count"], change["made_size"]] + values
            elif diff and self.sort != "abs":
                values.insert(0, change["size"] if self.sort == "growth" else -change["size"])
            return values
        return sorted(self.groups.items(), key=by, reverse=True)

    def limit(self, series):
        """The frames that are looked at, and whether it is said that snapshots differ in them."""
        common = min(snapshot.limit for snapshot in series)
        seen = self.key == "traceback" or self.cumulative or any(one["all_frames"] for one in self.filters)
        differ = any(snapshot.limit != common for snapshot in series)
        limit = min(common, self.frames or common)
        return limit, differ and seen and limit == common and self.frames != limit

    def frame(self, rows, total, series, differ):
        unnamed = {} if all(snapshot.symbolized for snapshot in series) else {"unnamed": True}
        return {"statistics": rows, "total": total, "exact": all(snapshot.exact for snapshot in series),
                "unknown": series[-1].unknown, "rows": len(self.groups), "key": self.key,
                "limits_differ": differ} | unnamed

    def trend(self, series):
        same = all((s.pid, s.start) == (series[0].pid, series[0].start) and s.clock for s in series)
        times = [s.clock if same else s.taken for s in series]
        if any(times[i] <= times[i - 1] for i in range(1, len(times))):
            return None
        limit, differ = self.limit(series)
        self.newest_first = False
        for number, snapshot in enumerate(series):
            for group in self.groups.values():
                group.new, group.ages = dict.fromkeys(NUMBERS, 0), []
            self.add(snapshot, limit, None, None)
            for group in self.groups.values():
                group.sizes += [0] * (number - len(group.sizes)) + [group.new["size"]]
        pairs = [(i, j) for j in range(len(series)) for i in range(j)]
        ranked = []
        for key, group in self.order(False):
            sizes = group.sizes
            slope = statistics.median((float(sizes[j]) - float(sizes[i])) / (float(times[j] - times[i]) / 3600e9)
                                      for i, j in pairs)
            tau = sum((sizes[j] > sizes[i]) - (sizes[j] < sizes[i]) for i, j in pairs) / len(pairs)
            row = self.row(group, False, self.older_ns is not None)
            ranked.append((dict(row, growth_per_hour=slope, steadiness=tau, sizes=sizes), group))
        ranked.sort(key=lambda item: item[0]["growth_per_hour"] * abs(item[0]["steadiness"]), reverse=True)
        self.shown, total = [group for _, group in ranked], self.totals[-1]
        return self.frame([row for row, _ in ranked], {"size": total["size"], "count": total["count"]}, series, differ)

    def answer(self, snapshots):
        series = [snapshots[number] for number in self.of]
        if self.contradicts(series):
            return None
        if len(series) > 2:
            return self.trend(series)
        diff, below, differ = len(series) == 2 and not self.born, None, False
        if self.born:
            old, new = series
            if (old.pid, old.start) != (new.pid, new.start) or not 0 < old.clock <= new.clock:
                return None
            below, series = new.clock - old.clock, [new]
        limit, differ = self.limit(series)
        self.newest_first = True
        self.add(series[-1], limit, "new", below)
        total = {"size": self.totals[0]["size"], "count": self.totals[0]["count"]}
        if diff:
            self.add(series[0], limit, "old", None)
            total["size_diff"] = self.totals[0]["size"] - self.totals[1]["size"]
            total["count_diff"] = self.totals[0]["count"] - self.totals[1]["count"]
        ages = self.older_ns is not None or self.born
        self.shown = [group for _, group in self.order(diff)]
        return self.frame([self.row(group, diff, ages) for group in self.shown], total, series, differ)


def main():
    for line in sys.stdin:
        request = json.loads(line)
        snapshots = [Snapshot(document) for document in request["snapshots"]]
        print(json.dumps([Question(query).answer(snapshots) for query in request["queries"]]), flush=True)


if __name__ == "__main__":
    main()
