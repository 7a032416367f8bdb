import tracemalloc as tm
tm.start()
# ... run your application ...
ss_1 = tm.take_snapshot()
print("================ SNAPSHOT 1 =================")
stats = ss_1.statistics("lineno")
for s in stats:
    print(s)
# ... run your application ...
ss_2 = tm.take_snapshot()
print("\n================ SNAPSHOT 2 =================")
stats = ss_2.statistics("lineno")
for s in stats:
    print(s)
tm.clear_traces()
# ... run your application ...
ss_3 = tm.take_snapshot()
print("\n================ SNAPSHOT 3 =================")
stats = ss_3.statistics("lineno")
for s in stats:
    print(s)
print("\nTracing Status: ", tm.is_tracing())
tm.stop()
print("\nTracing Status: ", tm.is_tracing())
try:
    print("\nTrying to Take Snapshot After Tracing is Stopped.")
    the_snap = tm.take_snapshot()
except Exception as e:
    print("Exception: ", e)
