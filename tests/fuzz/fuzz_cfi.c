/* Unwind tables and a stack of somebody who means harm: reading the tables, making rows of them, and walking.
 *
 * An input: a byte of options, a byte for the number of words on the stack, these words of two bytes each, the table.
 * A small word is an offset in the text or in the stack, by its lowest bit, so that stacks lead from function to
 * function. */
#define _GNU_SOURCE              /* memfd_create */
#include "fuzz.h"
#include "tracer.h"

#include "unwind/cfi_program.h"
#include "unwind/cfi_section.h"
#include "unwind/dwarf.h"
#include "unwind/unwind.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT_AT 0x1000u
#define TEXT_SIZE 0x8000u
#define TABLE_AT 0x10000u
#define STACK_AT 0x700000u
#define WORDS_MAX 255u
#define FRAMES_MAX 600u          /* more than there are words: a walk that goes in circles is found */
#define LOOKED_AT_MAX 48u        /* functions of one table */

static uint64_t words[WORDS_MAX + 1];
static size_t word_count;

/* --- the stack --- */

static uint64_t word(uint16_t from)
{
	if (from == 0xffff)
		return UINT64_MAX;
	if (from & 1)
		return TEXT_AT + (from >> 1) % TEXT_SIZE;
	return STACK_AT - 64 + (from >> 1) % (sizeof(words) + 128);
}

static void take_words(struct fuzz_bytes *bytes)
{
	word_count = fuzz_take_number(bytes, 1);
	for (size_t i = 0; i < word_count; i++)
		words[i] = word((uint16_t)fuzz_take_number(bytes, 2));
}

static int read_stack(void *context, raddr at, void *buf, size_t len)
{
	size_t size = word_count * sizeof(words[0]);

	(void)context;
	if (at < STACK_AT || at > STACK_AT + size || len > STACK_AT + size - at)
		return -EFAULT;
	memcpy(buf, (char *)words + (at - STACK_AT), len);
	return 0;
}

/* --- the table --- */

static int elf_file(const uint8_t *table, size_t len, bool eh_frame)
{
	static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_DYN,
		.e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof(Elf64_Ehdr), .e_shoff = 64,
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 2,
	};
	const Elf64_Shdr sections[3] = {
		[1] = { .sh_name = eh_frame ? 1 : 11, .sh_type = SHT_PROGBITS, .sh_addralign = 8,
			.sh_addr = eh_frame ? TABLE_AT : 0, .sh_offset = 512, .sh_size = len },
		[2] = { .sh_name = 24, .sh_type = SHT_STRTAB, .sh_offset = 384, .sh_size = sizeof(names) },
	};
	int fd = memfd_create("table", MFD_CLOEXEC);

	MUST(fd >= 0 && pwrite(fd, &header, sizeof(header), 0) == sizeof(header));
	MUST(pwrite(fd, sections, sizeof(sections), 64) == sizeof(sections));
	MUST(pwrite(fd, names, sizeof(names), 384) == sizeof(names));
	MUST(len == 0 || pwrite(fd, table, len, 512) == (ssize_t)len);
	return fd;
}

static bool same_row(const struct cfi_row *a, const struct cfi_row *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Of two functions that have an address in common libdw finds the one that it knows already. */
static bool is_of_one(const struct cfi_index *index, uint64_t address)
{
	size_t count = 0;

	for (size_t i = 0; i < index->fdes.count; i++)
		count += address >= index->fdes.items[i].start && address < index->fdes.items[i].end;
	return count == 1;
}

/* Both ways to make it say the same, or one does not know. */
static void make_row(struct dwarf_cfi *cfi, const struct cfi_index *index, uint64_t address)
{
	struct cfi_row fast = { 0 }, slow = { 0 };
	Dwarf_Frame *frame = NULL, *slow_frame = NULL;
	int r = dwarf_cfi_row(cfi, address, &fast, &frame), slow_r;

	MUST(r == 0 || (r < 0 && !frame));
	slow_r = dwarf_cfi_row_by_libdw(cfi, address, &slow, &slow_frame);
	if (r == 0) {
		fuzz_reached(1);
		MUST(fast.kind == CFI_ROW_PLAIN || fast.kind == CFI_ROW_END || fast.kind == CFI_ROW_FULL);
		MUST((fast.kind == CFI_ROW_FULL) == (frame != NULL));
		MUST(slow_r < 0 || same_row(&fast, &slow) || !is_of_one(index, address));
	}
	free(frame);
	free(slow_frame);
}

static void make_rows(int fd, const struct cfi_index *index)
{
	struct dwarf_cfi *cfi;

	if (dwarf_cfi_open(fd, &cfi) < 0)
		return;
	for (size_t i = 0; i < index->fdes.count && i < LOOKED_AT_MAX; i++) {
		const struct cfi_fde *fde = &index->fdes.items[i];

		make_row(cfi, index, fde->start);
		make_row(cfi, index, fde->start + (fde->end - fde->start) / 2);
		make_row(cfi, index, fde->end - 1);
		make_row(cfi, index, fde->end);
	}
	dwarf_cfi_close(cfi);
}

static void check_index(const struct cfi_index *index, size_t len)
{
	for (size_t i = 0; i < index->fdes.count; i++) {
		const struct cfi_fde *fde = &index->fdes.items[i];

		MUST(fde->offset < len && fde->start < fde->end);
		MUST(i == 0 || fde[-1].start <= fde->start);
	}
}

/* --- the walk --- */

struct process {
	struct module_map map;
	struct stack_table *stacks;
	struct unwinder *unwinder;
};

static void process_init(struct process *p, int fd)
{
	const struct module module = { .path = (char *)"hostile" };

	module_map_init(&p->map);
	p->stacks = stack_table_new(1u << 16);
	p->unwinder = unwinder_new(&p->map, p->stacks);
	MUST(p->stacks && p->unwinder && module_map_add(&p->map, &module) == 0);
	MUST(module_map_add_range(&p->map, TEXT_AT, TEXT_AT + TEXT_SIZE, 0) == 0);
	unwinder_add_module(p->unwinder, 0, fd);
}

static void process_fini(struct process *p)
{
	unwinder_free(p->unwinder);
	stack_table_free(p->stacks);
	module_map_fini(&p->map);
}

/* Each stack ends: at its outermost frame, or with the reason. */
static void check_stack(const struct process *p, uint32_t node)
{
	size_t frames = 0;
	bool truncated = false;

	for (; node != STACK_ROOT; node = stack_table_node(p->stacks, node).parent) {
		struct frame frame = stack_table_get_frame(p->stacks, stack_table_node(p->stacks, node).frame);

		truncated |= frame.kind == FRAME_TRUNCATED;
		MUST(++frames <= FRAMES_MAX + 1);
	}
	if (frames > 2)
		fuzz_reached(2);
	if (frames > 1 && !truncated)
		fuzz_reached(3);
}

static void walk_from(struct process *p, uint64_t pc, uint64_t sp, uint64_t bp)
{
	struct arch_regs regs = { .reg = { [ARCH_DWARF_PC] = pc, [ARCH_DWARF_SP] = sp, [ARCH_DWARF_BP] = bp } };
	const struct reader reader = { .read = read_stack };
	struct unwind_frame chain[UNWIND_CHAIN_MAX];
	struct unwind_reach reach;
	uint32_t count;
	bool whole;

	for (unsigned i = 0; i < ARCH_CALLEE_SAVED; i++)
		if (i != ARCH_CALLEE_SAVED_BP)
			regs.reg[arch_callee_saved[i]] = words[i];
	check_stack(p, unwinder_unwind(p->unwinder, &regs, &reader, FRAMES_MAX, &reach));
	/* Again: now rows and a trail are known. */
	check_stack(p, unwinder_unwind(p->unwinder, &regs, &reader, FRAMES_MAX, &reach));
	count = unwinder_chain(p->unwinder, &regs, &reader, UINT64_MAX, chain, &whole);
	MUST(count >= 1 && count <= UNWIND_CHAIN_MAX);
}

static void walk(int fd, const struct cfi_index *index)
{
	struct process p;
	uint64_t bp = word_count > 1 ? words[1] : 0;

	process_init(&p, fd);
	for (size_t i = 0; i < index->fdes.count && i < LOOKED_AT_MAX / 4; i++) {
		walk_from(&p, index->fdes.items[i].start, STACK_AT, bp);
		walk_from(&p, index->fdes.items[i].end - 1, STACK_AT + 8, bp);
	}
	if (word_count > 0)
		walk_from(&p, words[0], STACK_AT + 8, bp);
	unwinder_counters(p.unwinder);
	process_fini(&p);
}

void fuzz_cfi_run(const uint8_t *data, size_t len)
{
	struct fuzz_bytes bytes = { data, len };
	bool eh_frame = !(fuzz_take_number(&bytes, 1) & 1);
	struct cfi_section section = { .address = eh_frame ? TABLE_AT : 0, .eh_frame = eh_frame };
	struct cfi_index index;
	int fd;

	memset(words, 0, sizeof(words));
	take_words(&bytes);
	section.bytes = bytes.at;
	section.size = bytes.left;
	MUST(cfi_section_index(&section, &index) == 0);
	check_index(&index, bytes.left);
	if (index.fdes.count > 0) {
		fuzz_reached(0);
		fd = elf_file(bytes.at, bytes.left, eh_frame);
		make_rows(fd, &index);
		walk(fd, &index);
		close(fd);
	}
	cfi_index_fini(&index);
}
