/* Snapshot files, the images that tracers hand over, filters. */
#include "files.h"
#include "fuzz.h"

const struct fuzz_target fuzz_targets[] = {
	{ "store", fuzz_store_run, fuzz_store_restructure, { "a database", "read and used" } },
	{ "image", fuzz_image_run, fuzz_image_restructure, { "whole", "read and used" } },
	{ "filter", fuzz_filter_run, NULL, { "a filter", "matched" } },
	{ 0 }
};
