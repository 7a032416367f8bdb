import tracemalloc as tm
tm.start()
# ... run your application ...
ss = tm.take_snapshot()
print("========== SNAPSHOT =============")
stats = ss.statistics("lineno")
for s in stats:
    print(s)
ss.dump("snap.out")
print("========== LOADED SNAPSHOT =============")
ss = tm.Snapshot.load("snap.out")
stats = ss.statistics("lineno")
for s in stats:
    print(s)
