/* The ELF file of an object: what the tracer looks for in it before it plants anything. */
#define _GNU_SOURCE
#include "fuzz.h"
#include "tracer.h"

#include "probe/plan.h"
#include "target/elf_file.h"
#include "unwind/dwarf.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SITES_MAX (PLAN_FUNCTIONS_MAX * 4096u)

/* Segments, build-id, symbols, text: what target/ asks for. */
static void look_at_segments(int fd)
{
	static const char *const names[] = { "_dl_debug_state", "_r_debug", "sigaction", "malloc" };
	uint64_t vaddrs[4];
	uint8_t text[64];
	struct elf_file file;
	size_t len = 0;

	if (elf_file_read(fd, &file) < 0)
		return;
	fuzz_reached(0);
	MUST(file.segments.count <= ELF_SEGMENTS_MAX && file.build_id_len <= BUILD_ID_MAX);
	elf_file_symbols(fd, names, 4, vaddrs);
	for (size_t i = 0; i < 4; i++) {
		if (elf_file_text(fd, vaddrs[i], text, sizeof(text), &len) == 0)
			MUST(len > 0 && len <= sizeof(text));
	}
	for (size_t i = 0; i < file.segments.count; i++) {
		elf_file_segment_at(&file, file.segments.items[i].offset, true);
		if (elf_file_text(fd, file.segments.items[i].vaddr, text, sizeof(text), &len) == 0)
			MUST(len > 0 && len <= sizeof(text));
	}
	elf_file_fini(&file);
}

static void make_plan(int fd)
{
	struct plan plan;
	int r = plan_make(fd, NULL, "", true, &plan);

	if (r < 0) {
		MUST(r == -ENOEXEC || r == -ENOMEM);
		return;
	}
	if (plan.functions.count > 0)
		fuzz_reached(1);
	if (plan.sites.count > 0)
		fuzz_reached(2);
	MUST(plan.functions.count <= PLAN_FUNCTIONS_MAX && plan.sites.count <= SITES_MAX);
	for (size_t i = 0; i < plan.sites.count; i++) {
		const struct plan_site *site = &plan.sites.items[i];

		MUST(site->text_len > 0 && site->text_len <= PLAN_TEXT_MAX && site->kinds);
		MUST(!(site->kinds & SITE_ENTRY) || site->entry_index < plan.functions.count);
	}
	MUST(plan_memory(&plan) < (64u << 20));
	plan_fini(&plan);
}

static void make_row(struct dwarf_cfi *cfi, uint64_t address)
{
	Dwarf_Frame *frame = NULL;
	struct cfi_row row;

	if (dwarf_cfi_row(cfi, address, &row, &frame) == 0)
		fuzz_reached(3);
	free(frame);
}

/* Of the first functions of each segment. */
static void look_at_tables(int fd)
{
	struct elf_file file;
	struct dwarf_cfi *cfi;

	if (dwarf_cfi_open(fd, &cfi) < 0)
		return;
	if (elf_file_read(fd, &file) == 0) {
		for (size_t i = 0; i < file.segments.count && i < 16; i++) {
			const struct elf_segment *segment = &file.segments.items[i];

			for (uint64_t at = 0; segment->executable && at < 0x1000; at += 0x53)
				make_row(cfi, segment->vaddr + at);
		}
		elf_file_fini(&file);
	}
	dwarf_cfi_close(cfi);
}

void fuzz_elf_run(const uint8_t *data, size_t len)
{
	int fd = fuzz_file(data, len);

	look_at_segments(fd);
	make_plan(fd);
	look_at_tables(fd);
	close(fd);
}
