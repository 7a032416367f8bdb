import tracemalloc as tm
tm.start(25)
# ... run your application ...
ss = tm.take_snapshot()
print("========== SNAPSHOT =============")
stats = ss.statistics("lineno")
for s in stats:
    print(s)
    print(s.traceback.format())
print("\n=========== USEFUL METHODS ===========")
print("\nTraceback Limit: ", tm.get_traceback_limit(), " Frames")
print("\nAllocation Location of List: ", tm.get_object_traceback(listFour))
print("\nTraced Memory (Current, Peak): ", tm.get_traced_memory())
tm.reset_peak()
print("\nTraced Memory After Reset: ", tm.get_traced_memory())
print("\nMemory Usage of tracemalloc Module: ", tm.get_tracemalloc_memory(), " bytes")
print("\nTracing Status: ", tm.is_tracing())
