import tracemalloc as tm
tm.start(10)
# ... run your application ...
ss = tm.take_snapshot()
print("========== Original Snapshot ===========")
stats = ss.statistics("lineno")
for s in stats:
    print(s)
print("\n========= Filtered Snapshot 1 =============")
filterSS = tm.DomainFilter(inclusive=True, domain=0)
snapShot = ss.filter_traces(filters=[filterSS])
stats = snapShot.statistics("lineno")
for s in stats:
    print(s)
filterSS = tm.DomainFilter(inclusive=False, domain=0)
snapShot = ss.filter_traces(filters=[filterSS])
print("\n========= Filtered Snapshot 2 =============")
stats = snapShot.statistics("lineno")
for s in stats:
    print(s)
filterSS = tm.Filter(inclusive=True, filename_pattern="*leaky.c")
snapShot = ss.filter_traces([filterSS])
print("\n========= Filtered Snapshot 3 =============")
stats = snapShot.statistics("lineno")
for s in stats:
    print(s)
filterSS = tm.Filter(inclusive=False, filename_pattern="*leaky.c")
snapShot = ss.filter_traces([filterSS])
print("\n========= Filtered Snapshot 4 =============")
stats = snapShot.statistics("lineno")
for s in stats:
    print(s)
