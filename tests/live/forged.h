/* ELF files as no linker makes them, for a process to map the second page of. */
#ifndef ALLOCWATCH_TESTS_FORGED_H
#define ALLOCWATCH_TESTS_FORGED_H

enum forged {
	FORGED_PLAIN,                  /* nothing is wrong with it */
	FORGED_GIANT_TABLE,            /* .eh_frame of 2 GB, of nothing */
	FORGED_FULL_TABLE,             /* one of 200 MB, full of entries for one function */
	FORGED_LOOPS,                  /* entries that are their own heads, and lengths that lead back */
	FORGED_SECTION_COUNT,          /* 2^60 sections */
	FORGED_SECTIONS_PAST_END,
	FORGED_SEGMENT_COUNT,          /* as many as can be said, none of them there */
	FORGED_SEGMENTS_OVERLAP,
	FORGED_GIANT_SYMBOLS,          /* a table of symbols of 2 GB, and of names without an end */
	FORGED_SIZES,                  /* offsets and sizes that overflow */
	FORGED_COUNT,
};

/* Makes one in the case's folder; its path.  They are sparse. */
const char *forged_file(enum forged kind);

#endif
