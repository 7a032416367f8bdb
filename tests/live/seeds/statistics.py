import tracemalloc as tm
tm.start()
# ... run your application ...
ss = tm.take_snapshot()
stats = ss.statistics("lineno")
for s in stats:
    print(s)
