/* A process that means harm, seen by its tracer: its files, its code, its stacks, its memory; and what a tracer before
 * this one has stored. */
#include "fuzz.h"
#include "tracer.h"

const struct fuzz_target fuzz_targets[] = {
	{ "elf", fuzz_elf_run, NULL, { "an ELF file", "allocator functions", "probes planned", "unwind tables" } },
	{ "code", fuzz_code_run, NULL, { "an instruction", "displaced", "a function" } },
	{ "cfi", fuzz_cfi_run, NULL, { "an entry", "a row", "a step", "a whole stack" } },
	{ "maps", fuzz_maps_run, NULL, { "a line", "a file" } },
	{ "resident", fuzz_resident_run, NULL, { "found", "adopted", "with breakpoints" } },
	{ "refuge", fuzz_refuge_run, NULL, { "an image", "a module's file looked for" } },
	{ 0 }
};
