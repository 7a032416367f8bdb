import tracemalloc

tracemalloc.start(25)

before = tracemalloc.take_snapshot()        # baseline

# ... run your application ...

after = tracemalloc.take_snapshot()         # after the workload

# Diff grouped by source line; default ordering is by ABSOLUTE size_diff.
diff = after.compare_to(before, "lineno")

# Re-sort for pure growth so reclaimed lines do not surface at the top.
diff.sort(key=lambda stat: stat.size_diff, reverse=True)

for stat in diff[:5]:
    print(
        f"{stat.size_diff/1024:+9.1f} KiB  "      # byte change (+ = growth)
        f"blocks {stat.count_diff:+7d}  "          # block change
        f"{stat.traceback[0]}"                     # the source line
    )

diff_tb = after.compare_to(before, "traceback")
diff_tb.sort(key=lambda stat: stat.size_diff, reverse=True)
print("\n".join(diff_tb[0].traceback.format()))   # full path to the growing line

# To see what was reclaimed instead, sort ascending.
diff = before.compare_to(after, "lineno")
for stat in sorted(diff, key=lambda s: s.size_diff)[:3]:
    if stat.size_diff < 0:
        print(f"freed {(-stat.size_diff)/1024:.1f} KiB at {stat.traceback[0]}")
