"""What 'allocwatch trend' says, computed anew from what 'allocwatch stats' says of each snapshot's file.

    trends.py ALLOCWATCH TREND.json FILE..."""
import json
import sqlite3
import statistics
import subprocess
import sys


def main():
    allocwatch, answer, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    times, sizes = [], []
    for path in files:
        times.append(sqlite3.connect(path).execute("SELECT clock_ns FROM snapshot").fetchone()[0] / 3.6e12)
        rows = json.loads(subprocess.run([allocwatch, "stats", "--json", path], check=True, capture_output=True).stdout)
        sizes.append({json.dumps(row["traceback"]): row["size"] for row in rows["statistics"]})
    pairs = [(i, j) for j in range(len(files)) for i in range(j)]
    expected = {}
    for key in set().union(*sizes):
        series = [size.get(key, 0) for size in sizes]
        slope = statistics.median((series[j] - series[i]) / (times[j] - times[i]) for i, j in pairs)
        tau = sum((series[j] > series[i]) - (series[j] < series[i]) for i, j in pairs) / len(pairs)
        expected[key] = series, slope, tau
    with open(answer, encoding="utf-8") as file:
        rows = json.load(file)["statistics"]
    bad = [row for row in rows if json.dumps(row["traceback"]) not in expected]
    last = float("inf")
    for row in rows:
        series, slope, tau = expected[json.dumps(row["traceback"])]
        rank = row["growth_per_hour"] * abs(row["steadiness"])
        if (row["sizes"] != series or abs(row["growth_per_hour"] - slope) > 1e-6 * max(1, abs(slope)) or
                abs(row["steadiness"] - tau) > 1e-9 or rank > last or row["size"] != series[-1]):
            bad.append((row, series, slope, tau))
        last = rank
    print(f"{len(rows)} groups in {len(files)} snapshots compared, {len(bad)} differ")
    if bad or len(rows) != len(expected) or not rows:
        print(bad)
        sys.exit(1)


main()
