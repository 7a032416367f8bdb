/* Unwind tables of somebody who means harm: built by hand, and real ones with mutations. */
#include "base/clock.h"
#include "base/fd.h"
#include "unwind/cfi_section.h"
#include "unwind/unwind.h"
#include "random.h"
#include "share.h"

#include <check.h>
#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_AT 0x1000u
#define TEXT_SIZE 0x1000u
#define TABLE_AT 0x4000u
#define STACK_AT 0x700000u

/* --- a small ELF file around a table --- */

struct bytes {
	uint8_t *at;
	size_t len, space;
};

static void put(struct bytes *b, const void *data, size_t len)
{
	while (b->len + len > b->space) {
		b->space = b->space ? b->space * 2 : 256;
		b->at = realloc(b->at, b->space);
		ck_assert_ptr_nonnull(b->at);
	}
	memcpy(b->at + b->len, data, len);
	b->len += len;
}

static void put_u8(struct bytes *b, unsigned int value)
{
	uint8_t byte = (uint8_t)value;

	put(b, &byte, 1);
}

static void put_u32(struct bytes *b, uint32_t value)
{
	put(b, &value, 4);
}

static void put_u64(struct bytes *b, uint64_t value)
{
	put(b, &value, 8);
}

static void put_uleb(struct bytes *b, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_u8(b, (value & 0x7f) | 0x80);
	put_u8(b, (unsigned int)value);
}

static size_t start_entry(struct bytes *b)
{
	put_u32(b, 0);
	return b->len;
}

static void end_entry(struct bytes *b, size_t start)
{
	uint32_t length;

	while (b->len % 8 != 4)
		put_u8(b, DW_CFA_nop);
	length = (uint32_t)(b->len - start);
	memcpy(b->at + start - 4, &length, 4);
}

/* rsp + 8, the return address at its top; absolute pointers.  Returns its offset. */
static uint32_t put_cie(struct bytes *b, const char *augmentation, const void *data, size_t len)
{
	size_t start = start_entry(b);

	put_u32(b, 0);
	put_u8(b, 1);
	put(b, augmentation, strlen(augmentation) + 1);
	put_uleb(b, 1);
	put_u8(b, 0x78);                                /* -8 */
	put_u8(b, ARCH_DWARF_PC);
	if (*augmentation == 'z') {
		put_uleb(b, len);
		put(b, data, len);
	}
	put_u8(b, DW_CFA_def_cfa);
	put_uleb(b, ARCH_DWARF_SP);
	put_uleb(b, 8);
	put_u8(b, DW_CFA_offset | ARCH_DWARF_PC);
	put_uleb(b, 1);
	end_entry(b, start);
	return (uint32_t)(start - 4);
}

static size_t start_fde(struct bytes *b, uint32_t cie, uint64_t from, uint64_t size)
{
	size_t start = start_entry(b);

	put_u32(b, (uint32_t)(b->len - cie));
	put_u64(b, from);
	put_u64(b, size);
	return start;
}

/* The byte behind is an empty augmentation where there is one, else an instruction that does nothing. */
static void put_good_fde(struct bytes *b, uint32_t cie, uint64_t from, uint64_t size)
{
	size_t start = start_fde(b, cie, from, size);

	put_u8(b, 0);
	end_entry(b, start);
}

static int elf_file(const char *section, const struct bytes *table)
{
	static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab";
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3, .e_shstrndx = 2,
	};
	bool eh_frame = strcmp(section, ".eh_frame") == 0;
	Elf64_Shdr sections[3] = {
		[1] = { .sh_name = eh_frame ? 1 : 11, .sh_type = SHT_PROGBITS, .sh_addralign = 8,
			.sh_addr = eh_frame ? TABLE_AT : 0, .sh_offset = 4096, .sh_size = table->len },
		[2] = { .sh_name = 24, .sh_type = SHT_STRTAB, .sh_offset = 1024, .sh_size = sizeof(names) },
	};
	int fd = memfd_create("table", MFD_CLOEXEC);

	header.e_shoff = 512;
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	ck_assert_int_eq(pwrite(fd, sections, sizeof(sections), 512), sizeof(sections));
	ck_assert_int_eq(pwrite(fd, names, sizeof(names), 1024), sizeof(names));
	ck_assert_int_eq(pwrite(fd, table->at, table->len, 4096), (ssize_t)table->len);
	return fd;
}

/* --- a process that has it mapped --- */

static struct module_map map;
static struct stack_table *stacks;
static struct unwinder *unwinder;
static uint64_t stack_words[512];

static int read_stack(void *context, raddr at, void *buf, size_t len)
{
	(void)context;
	if (at < STACK_AT || at > STACK_AT + sizeof(stack_words) || len > STACK_AT + sizeof(stack_words) - at)
		return -EFAULT;
	memcpy(buf, (char *)stack_words + (at - STACK_AT), len);
	return 0;
}

static const struct reader reader = { .read = read_stack };

static void setup(void)
{
	const struct module module = { .path = (char *)"hostile" };

	module_map_init(&map);
	stacks = stack_table_new(1u << 20);
	unwinder = unwinder_new(&map, stacks);
	ck_assert_ptr_nonnull(unwinder);
	ck_assert_int_eq(module_map_add(&map, &module), 0);
	ck_assert_int_eq(module_map_add_range(&map, TEXT_AT, TEXT_AT + TEXT_SIZE, 0), 0);
	for (unsigned int i = 0; i < 512; i++)
		stack_words[i] = TEXT_AT + 0x800 + i;
}

static void teardown(void)
{
	unwinder_free(unwinder);
	stack_table_free(stacks);
	module_map_fini(&map);
}

static int add_table(const char *section, struct bytes *table)
{
	int fd = elf_file(section, table), err = unwinder_add_module(unwinder, 0, fd);

	close(fd);
	free(table->at);
	*table = (struct bytes){ 0 };
	return err;
}

/* How many frames come of a stop at a pc, and why no more. */
static unsigned int frames_at(raddr pc, enum truncation *ret_reason)
{
	struct arch_regs regs = { .reg = { [ARCH_DWARF_PC] = pc, [ARCH_DWARF_SP] = STACK_AT + 256,
					   [ARCH_DWARF_BP] = STACK_AT + 512 } };
	uint32_t node = unwinder_unwind(unwinder, &regs, &reader, 32, NULL);
	unsigned int count = 0;

	*ret_reason = TRUNCATED_NONE;
	for (; node != STACK_ROOT; node = stack_table_node(stacks, node).parent) {
		struct frame frame = stack_table_get_frame(stacks, stack_table_node(stacks, node).frame);

		if (frame.kind == FRAME_TRUNCATED)
			*ret_reason = (enum truncation)frame.offset;
		else
			count++;
	}
	return count;
}

static void check_known(raddr pc)
{
	enum truncation reason;

	ck_assert_uint_ge(frames_at(pc, &reason), 2);
}

static void check_unknown(raddr pc)
{
	enum truncation reason;

	ck_assert_uint_eq(frames_at(pc, &reason), 1);
	ck_assert_int_eq(reason, TRUNCATED_NO_CFI);
}

/* --- by hand --- */

typedef void program_fn(struct bytes *b);

static void remember_without_end(struct bytes *b)
{
	for (unsigned int i = 0; i < 20000; i++)
		put_u8(b, DW_CFA_remember_state);
}

static void restore_what_was_not_remembered(struct bytes *b)
{
	put_u8(b, DW_CFA_restore_state);
}

static void name_a_huge_register(struct bytes *b)
{
	put_u8(b, DW_CFA_same_value);
	put_uleb(b, 100u << 20);
}

static void name_a_register_of_70_bits(struct bytes *b)
{
	put_u8(b, DW_CFA_same_value);
	for (unsigned int i = 0; i < 12; i++)
		put_u8(b, 0xff);
	put_u8(b, 0);
}

static void run_past_the_end(struct bytes *b)
{
	while (b->len % 8 != 3)
		put_u8(b, DW_CFA_nop);
	put_u8(b, DW_CFA_advance_loc1);
}

static void block_past_the_end(struct bytes *b)
{
	put_u8(b, DW_CFA_def_cfa_expression);
	put_uleb(b, 1000);
}

static void empty_block(struct bytes *b)
{
	put_u8(b, DW_CFA_val_expression);
	put_uleb(b, ARCH_DWARF_SP);
	put_uleb(b, 0);
}

static void unknown_instruction(struct bytes *b)
{
	put_u8(b, 0x3f);
}

static void program_too_long(struct bytes *b)
{
	for (unsigned int i = 0; i <= CFI_PROGRAM_MAX; i++)
		put_u8(b, DW_CFA_nop);
}

static program_fn *const refused_programs[] = {
	remember_without_end, restore_what_was_not_remembered, name_a_huge_register,
	name_a_register_of_70_bits, run_past_the_end, block_past_the_end, empty_block,
	unknown_instruction, program_too_long,
};

START_TEST(a_bad_program_is_refused_and_its_neighbours_are_not)
{
	struct bytes table = { 0 };
	uint32_t cie = put_cie(&table, "", "", 0);
	size_t start;

	put_good_fde(&table, cie, TEXT_AT, 0x100);
	start = start_fde(&table, cie, TEXT_AT + 0x100, 0x100);
	refused_programs[_i](&table);
	end_entry(&table, start);
	put_good_fde(&table, cie, TEXT_AT + 0x200, 0x100);
	ck_assert_int_eq(add_table(".eh_frame", &table), 0);
	check_known(TEXT_AT + 0x80);
	check_unknown(TEXT_AT + 0x180);
	check_known(TEXT_AT + 0x280);
	check_unknown(TEXT_AT + 0x380);
}
END_TEST

static void put_loop(struct bytes *b)
{
	put_u8(b, DW_CFA_def_cfa_expression);
	put_uleb(b, 3);
	put_u8(b, DW_OP_skip);
	put_u8(b, 0xfd);
	put_u8(b, 0xff);
}

static void put_deep(struct bytes *b)
{
	put_u8(b, DW_CFA_def_cfa_expression);
	put_uleb(b, 1000);
	for (unsigned int i = 0; i < 1000; i++)
		put_u8(b, DW_OP_lit1);
}

static void put_empty_stack(struct bytes *b)
{
	put_u8(b, DW_CFA_expression);
	put_uleb(b, ARCH_DWARF_PC);
	put_uleb(b, 3);
	put_u8(b, DW_OP_drop);
	put_u8(b, DW_OP_drop);
	put_u8(b, DW_OP_drop);
}

static void put_odd_cfa(struct bytes *b)
{
	put_u8(b, DW_CFA_def_cfa_register);
	put_uleb(b, 150);
}

static void put_no_cfa(struct bytes *b)
{
	put_u8(b, DW_CFA_def_cfa_expression);
	put_uleb(b, 1);
	put_u8(b, DW_OP_lit0);
	put_u8(b, DW_CFA_def_cfa_offset);
	put_uleb(b, 8);
}

static program_fn *const senseless_programs[] = {
	put_loop, put_deep, put_empty_stack, put_odd_cfa, put_no_cfa,
};

START_TEST(a_senseless_row_ends_the_stack)
{
	struct bytes table = { 0 };
	uint32_t cie = put_cie(&table, "", "", 0);
	size_t start = start_fde(&table, cie, TEXT_AT, 0x100);

	senseless_programs[_i](&table);
	end_entry(&table, start);
	ck_assert_int_eq(add_table(".eh_frame", &table), 0);
	check_unknown(TEXT_AT + 0x80);
}
END_TEST

/* Callers of callers without end: the stack is finite and the limit is, too. */
START_TEST(a_recursion_that_never_ends_is_cut)
{
	struct bytes table = { 0 };
	uint32_t cie = put_cie(&table, "", "", 0);
	enum truncation reason;

	put_good_fde(&table, cie, TEXT_AT, TEXT_SIZE);
	ck_assert_int_eq(add_table(".eh_frame", &table), 0);
	ck_assert_uint_eq(frames_at(TEXT_AT + 0x80, &reason), 32);
	ck_assert_int_eq(reason, TRUNCATED_LIMIT);
}
END_TEST

START_TEST(a_cfa_that_goes_down_for_ever_is_cut)
{
	struct bytes table = { 0 };
	uint32_t cie = put_cie(&table, "", "", 0);
	size_t start = start_fde(&table, cie, TEXT_AT, TEXT_SIZE);
	enum truncation reason;

	put_u8(&table, DW_CFA_def_cfa_offset_sf);
	put_u8(&table, 1);                              /* -8 */
	end_entry(&table, start);
	ck_assert_int_eq(add_table(".eh_frame", &table), 0);
	ck_assert_uint_le(frames_at(TEXT_AT + 0x80, &reason), 20);
	ck_assert(reason == TRUNCATED_LOOP || reason == TRUNCATED_MEMORY);
}
END_TEST

START_TEST(a_bad_head_takes_its_functions_with_it)
{
	static const struct {
		const char *augmentation;
		const char *data;
		size_t len;
	} heads[] = {
		{ "zLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL", "\0", 1 },
		{ "zR", "", 0 },
		{ "zR", "\xff", 1 },                    /* omitted */
		{ "zR", "\x80", 1 },                    /* indirect */
		{ "zR", "\x50", 1 },                    /* aligned */
		{ "zR", "\x01", 1 },                    /* uleb128 */
		{ "zP", "\x00\x01\x02", 3 },            /* cut pointer */
		{ "zQ", "\x00", 1 },
		{ "eh", "", 0 },
		{ "R", "", 0 },
	};
	struct bytes table = { 0 };
	uint32_t good, bad;

	good = put_cie(&table, "zR", "\0", 1);
	bad = put_cie(&table, heads[_i].augmentation, heads[_i].data, heads[_i].len);
	put_good_fde(&table, bad, TEXT_AT, 0x100);
	put_good_fde(&table, good, TEXT_AT + 0x100, 0x100);
	ck_assert_int_eq(add_table(".eh_frame", &table), 0);
	check_unknown(TEXT_AT + 0x80);
	check_known(TEXT_AT + 0x180);
}
END_TEST

/* Heads that are none: a function's entry, the middle of one, behind the function, before the section. */
START_TEST(a_function_needs_a_real_head)
{
	struct bytes table = { 0 };
	uint32_t cie = put_cie(&table, "", "", 0), fde = (uint32_t)table.len;

	put_good_fde(&table, cie, TEXT_AT, 0x100);
	put_good_fde(&table, fde, TEXT_AT + 0x100, 0x100);
	put_good_fde(&table, cie + 4, TEXT_AT + 0x200, 0x100);
	put_good_fde(&table, (uint32_t)table.len + 4096, TEXT_AT + 0x300, 0x100);
	put_good_fde(&table, (uint32_t)-4096, TEXT_AT + 0x400, 0x100);
	ck_assert_int_eq(add_table(".eh_frame", &table), 0);
	check_known(TEXT_AT + 0x80);
	for (unsigned int i = 1; i <= 4; i++)
		check_unknown(TEXT_AT + i * 0x100 + 0x80);
}
END_TEST

START_TEST(a_broken_length_ends_the_table)
{
	static const uint32_t lengths[] = { 0xffffff00, 0x7fffffff, 3, 0xffffffff, 10000 };
	struct bytes table = { 0 };
	uint32_t cie = put_cie(&table, "", "", 0);

	put_good_fde(&table, cie, TEXT_AT, 0x100);
	put_u32(&table, lengths[_i]);
	put_u64(&table, UINT64_MAX - 3);
	put_good_fde(&table, cie, TEXT_AT + 0x100, 0x100);
	ck_assert_int_eq(add_table(".eh_frame", &table), 0);
	check_known(TEXT_AT + 0x80);
	check_unknown(TEXT_AT + 0x180);
}
END_TEST

START_TEST(a_table_of_nothing_but_lies_is_no_table)
{
	struct bytes table = { 0 };

	put_u32(&table, 0xfffffff0);
	put_u64(&table, 1);
	ck_assert_int_eq(add_table(".eh_frame", &table), -ENODATA);
	put_u64(&table, 0);
	put_u64(&table, 0);
	ck_assert_int_eq(add_table(".eh_frame", &table), -ENODATA);
}
END_TEST

/* .debug_frame differs from .eh_frame in the ids: 0xffffffff for a head, an offset in the section to name it. */
static void put_debug_frame(struct bytes *table, bool good)
{
	size_t start = start_entry(table);
	uint32_t cie = 0;

	put_u32(table, 0xffffffff);
	put_u8(table, 4);
	put_u8(table, 0);
	put_u8(table, 8);
	put_u8(table, 0);
	put_uleb(table, 1);
	put_u8(table, 0x78);
	put_uleb(table, ARCH_DWARF_PC);
	put_u8(table, DW_CFA_def_cfa);
	put_uleb(table, ARCH_DWARF_SP);
	put_uleb(table, 8);
	put_u8(table, DW_CFA_offset | ARCH_DWARF_PC);
	put_uleb(table, 1);
	end_entry(table, start);
	for (unsigned int i = 0; i < 8; i++) {
		start = start_entry(table);
		put_u32(table, cie);
		put_u64(table, TEXT_AT + i * 0x100);
		put_u64(table, 0x100);
		if (!good && i == 5)
			name_a_huge_register(table);
		end_entry(table, start);
	}
}

START_TEST(a_debug_frame_serves_when_there_is_nothing_else)
{
	struct bytes table = { 0 };

	put_debug_frame(&table, true);
	ck_assert_int_eq(add_table(".debug_frame", &table), 0);
	check_known(TEXT_AT + 0x80);
	check_known(TEXT_AT + 0x780);
	check_unknown(TEXT_AT + 0x880);
}
END_TEST

/* libdw reads it from start to end, so one bad entry spoils it. */
START_TEST(a_bad_debug_frame_is_refused_as_a_whole)
{
	struct bytes table = { 0 };

	put_debug_frame(&table, false);
	ck_assert_int_eq(add_table(".debug_frame", &table), -ENODATA);
	check_unknown(TEXT_AT + 0x80);
}
END_TEST

/* --- mutations of a real file --- */

#define MUTATIONS 4000u
#define STOPS 8u
#define VICTIM "/usr/lib/x86_64-linux-gnu/libgcc_s.so.1"
#define ROUND_MAX_NS (2 * NSEC_PER_SEC)   /* processor time: a bound on disasters, not a measurement */

/* Where to hit: the tables for the most part, the file's own headers now and then. */
struct places {
	uint64_t offset[4], size[4];
	unsigned int count;
	uint64_t text, text_size;
};

static void find_places(int fd, struct places *places)
{
	Elf_Scn *section = NULL;
	size_t names;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	ck_assert_ptr_nonnull(elf);
	elf_getshdrstrndx(elf, &names);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		gelf_getshdr(section, &header);
		name = elf_strptr(elf, names, header.sh_name);
		if (strcmp(name, ".text") == 0) {
			places->text = header.sh_addr;
			places->text_size = header.sh_size;
		}
		if (strncmp(name, ".eh_frame", 9) != 0)
			continue;
		places->offset[places->count] = header.sh_offset;
		places->size[places->count++] = header.sh_size;
	}
	places->offset[places->count] = 0;
	places->size[places->count++] = 1024;
	elf_end(elf);
}

static uint8_t mutated(uint8_t byte)
{
	static const uint8_t special[] = { 0, 0xff, 0x7f, 0x80, 0x0a, 0x0f, 0x10, 0x16, 0x40 };

	if (random_u64() % 2)
		return byte ^ (uint8_t)(1u << random_u64() % 8);
	return special[random_u64() % sizeof(special)];
}

static void mutate(int fd, const struct places *places)
{
	unsigned int times = 1 + (unsigned int)(random_u64() % 8);

	while (times-- > 0) {
		unsigned int which = random_u64() % 16 == 0 ? places->count - 1 :
				     (unsigned int)(random_u64() % (places->count - 1));
		off_t at = (off_t)(places->offset[which] + random_u64() % places->size[which]);
		uint8_t byte;

		ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
		byte = mutated(byte);
		ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	}
}

static int copy_file(const char *path, uint8_t **ret_bytes, size_t *ret_size)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("mutant", MFD_CLOEXEC);
	struct stat st;

	ck_assert_int_ge(from, 0);
	ck_assert_int_eq(fstat(from, &st), 0);
	*ret_size = (size_t)st.st_size;
	*ret_bytes = malloc(*ret_size);
	ck_assert_int_eq(pread(from, *ret_bytes, *ret_size, 0), (ssize_t)*ret_size);
	ck_assert_int_eq(fd_write_all(to, *ret_bytes, *ret_size), 0);
	close(from);
	return to;
}

static int read_random(void *context, raddr at, void *buf, size_t len)
{
	const struct places *places = context;
	uint64_t *words = buf;

	if (at % 4096 + len > 65536 || at < 65536)
		return -EFAULT;
	memset(buf, 0, len);
	for (size_t i = 0; i < len / 8; i++)
		words[i] = random_u64() % 4 == 0 ? at + random_u64() % 512 :
			   places->text + random_u64() % places->text_size;
	return 0;
}

static uint64_t unwind_mutant(const struct places *places)
{
	const struct reader random_reader = { .read = read_random, .context = (void *)(uintptr_t)places };
	uint64_t frames = unwinder_counters(unwinder).frames;

	for (unsigned int i = 0; i < STOPS; i++) {
		struct arch_regs regs;

		for (unsigned int r = 0; r < ARCH_DWARF_REGS; r++)
			regs.reg[r] = STACK_AT + random_u64() % 4096;
		regs.reg[ARCH_DWARF_PC] = places->text + random_u64() % places->text_size;
		unwinder_unwind(unwinder, &regs, &random_reader, 64, NULL);
	}
	return unwinder_counters(unwinder).frames - frames;
}

START_TEST(mutated_tables_harm_nobody)
{
	struct places places = { 0 };
	uint64_t longest = 0, frames = 0;
	unsigned int accepted = 0;
	uint8_t *bytes;
	size_t size;
	int fd = copy_file(VICTIM, &bytes, &size);

	find_places(fd, &places);
	ck_assert_uint_eq(places.count, 3);
	module_map_remove(&map, 0);
	ck_assert_int_eq(module_map_add_range(&map, places.text, places.text + places.text_size, 0), 0);
	for (unsigned int i = 0; i < share_of(MUTATIONS); i++) {
		uint64_t start = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID), took;

		ck_assert_int_eq(pwrite(fd, bytes, size, 0), (ssize_t)size);
		mutate(fd, &places);
		if (unwinder_add_module(unwinder, 0, fd) == 0)
			accepted++;
		frames += unwind_mutant(&places);
		unwinder_remove_module(unwinder, 0);
		took = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
		longest = took > longest ? took : longest;
		ck_assert_uint_lt(took, ROUND_MAX_NS);
	}
	printf("%u mutants, %u of them used, %lu frames, the longest took %lu us\n", share_of(MUTATIONS), accepted,
	       (unsigned long)frames, (unsigned long)(longest / 1000));
	ck_assert_uint_gt(accepted, share_of(MUTATIONS) / 2);
	ck_assert_uint_gt(frames, share_of(MUTATIONS) * STOPS);
	ck_assert_uint_lt(unwinder_memory(unwinder), 64u << 20);
	close(fd);
	free(bytes);
}
END_TEST

static Suite *hostile_suite(void)
{
	Suite *suite = suite_create("unwind hostile");
	TCase *tcase = tcase_create("hostile");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, a_bad_program_is_refused_and_its_neighbours_are_not, 0,
			    (int)(sizeof(refused_programs) / sizeof(*refused_programs)));
	tcase_add_loop_test(tcase, a_senseless_row_ends_the_stack, 0,
			    (int)(sizeof(senseless_programs) / sizeof(*senseless_programs)));
	tcase_add_test(tcase, a_recursion_that_never_ends_is_cut);
	tcase_add_test(tcase, a_cfa_that_goes_down_for_ever_is_cut);
	tcase_add_loop_test(tcase, a_bad_head_takes_its_functions_with_it, 0, 10);
	tcase_add_test(tcase, a_function_needs_a_real_head);
	tcase_add_loop_test(tcase, a_broken_length_ends_the_table, 0, 5);
	tcase_add_test(tcase, a_table_of_nothing_but_lies_is_no_table);
	tcase_add_test(tcase, a_debug_frame_serves_when_there_is_nothing_else);
	tcase_add_test(tcase, a_bad_debug_frame_is_refused_as_a_whole);
	tcase_add_test(tcase, mutated_tables_harm_nobody);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(hostile_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
