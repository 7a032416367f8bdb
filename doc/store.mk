dist_man_MANS += doc/allocwatch-snapshot.5
