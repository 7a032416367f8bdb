import tracemalloc as tm
tm.start()
# ... run your application ...
ss_1 = tm.take_snapshot()
print("SNAPSHOT ONE")
stats = ss_1.statistics("lineno")
for s in stats:
    print(s)
# ... run your application ...
print("\nSNAPSHOT TWO")
ss_2 = tm.take_snapshot()
filterSS = tm.Filter(inclusive=False, filename_pattern=tm.__file__)
ss_2 = ss_2.filter_traces([filterSS])
stats = ss_2.statistics("lineno")
for s in stats:
    if "leaky.c" in str(s):
        print(s)
print("\nDIFFERENCE")
diff = ss_2.compare_to(ss_1, "lineno")
for s in diff:
    if "leaky.c" in str(s):
        print(s)
