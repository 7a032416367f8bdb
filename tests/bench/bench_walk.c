/* The two ways to hand a stack over from within the target: to copy the piece that the unwinder will need, as the ring engine
 * does, or to walk it there by a table of the unwind rows and to hand over return addresses.
 *
 *	bench_walk RECORDING...
 *
 * Stacks of real programs (record_stacks), each laid out at one place as a thread's own stack would be: just used, so in the
 * cache.  Both ways are at their barest: the copy is `rep movsq' of just the bytes that the walk goes through, the table has a
 * slot for each return address and is three quarters empty, and nothing is checked that a target may not be trusted with.  What
 * is measured is the thread's own time, of each stack the least of several, less that of a measurement of nothing. */
#include "recording.h"

#include "unwind/unwinder.h"

#include "base/fd.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#define ROUNDS 7
#define FRAMES 41                      /* of a traceback of 25, as the tracer takes them */
#define SINK_SIZE (8u << 20)           /* the ring's default size: what is written is not in the nearest cache */
#define SLOTS_BITS_MIN 10
#define SLOTS_BITS_MAX 22

struct walk_slot {
	uint64_t pc;
	int32_t cfa;                   /* bytes from rsp, or from rbp */
	int16_t bp;                    /* bytes from the CFA */
	uint8_t from_bp, saves_bp;
};

struct place {
	uint64_t pc, sp, bp;
};

struct measured {
	struct place at;
	const uint8_t *bytes;          /* from at.sp on */
	size_t length;                 /* of what the walk goes through */
	unsigned frames;
	uint64_t walk, copy;           /* ticks, the least */
};

struct bench {
	struct recording recording;
	struct stack_table *stacks;
	struct unwinder *unwinder;
	struct walk_slot *table;
	unsigned bits;
	struct measured *measured;
	size_t entered;
	size_t count, unusual;         /* stacks with a row that the table cannot hold are left out */
};

static uint8_t stack[RECORDING_READ_MAX] __attribute__((aligned(64)));
static uint8_t sink[SINK_SIZE];
static size_t sink_at;

/* Of this address, or an empty one. */
static inline struct walk_slot *slot_of(const struct bench *b, uint64_t pc)
{
	size_t at = pc * 0x9e3779b97f4a7c15ULL >> (64 - b->bits);

	while (b->table[at].pc != pc && b->table[at].pc != 0)
		at = (at + 1) & (((size_t)1 << b->bits) - 1);
	return &b->table[at];
}

static inline uint64_t word_at(uint64_t address)
{
	uint64_t word;

	memcpy(&word, (const void *)address, sizeof(word));
	return word;
}

/* Innermost first, up to FRAMES; returns how many.  `moved`: where the bytes are, from where they were.  *ret_end: the stack was
 * read up to there. */
static inline __attribute__((always_inline)) unsigned walk(const struct bench *b, struct place at, uint64_t moved,
							     uint64_t *pcs, uint64_t *ret_end)
{
	unsigned count = 0;

	while (count < FRAMES) {
		const struct walk_slot *slot = slot_of(b, at.pc);
		uint64_t cfa;

		pcs[count++] = at.pc;
		if (slot->pc != at.pc)
			break;
		cfa = (slot->from_bp ? at.bp : at.sp) + (uint64_t)(int64_t)slot->cfa;
		at.pc = word_at(cfa - 8 + moved);
		if (slot->saves_bp)
			at.bp = word_at(cfa + (uint64_t)(int64_t)slot->bp + moved);
		at.sp = cfa;
	}
	*ret_end = at.sp;
	return count;
}

/* --- the table, from what the unwinder finds --- */

static bool make_table(struct bench *b, unsigned bits)
{
	free(b->table);
	b->bits = bits;
	b->entered = 0;
	b->table = calloc((size_t)1 << bits, sizeof(*b->table));
	return b->table != NULL;
}

/* False: the table is too full. */
static bool enter(struct bench *b, uint64_t pc)
{
	const struct cfi_slot *found = cfi_rows_find(&b->unwinder->rows, cfi_key(pc, false));
	const struct cfi_row *row = found ? &b->unwinder->rows.rows.items[found->row] : NULL;
	struct walk_slot *slot = slot_of(b, pc);

	if (!row || row->kind != CFI_ROW_PLAIN)
		return true;
	b->entered += slot->pc == 0;
	*slot = (struct walk_slot){
		.pc = pc,
		.cfa = row->cfa_offset,
		.from_bp = row->from_bp,
		.saves_bp = row->saved_mask >> ARCH_CALLEE_SAVED_BP & 1,
		.bp = row->saved[ARCH_CALLEE_SAVED_BP],
	};
	return b->entered <= (size_t)1 << (b->bits - 2);
}

static bool enter_frames(struct bench *b)
{
	struct unwind_frame frames[UNWIND_CHAIN_MAX];
	bool whole;

	for (size_t i = 0; i < b->recording.stacks.count; i++) {
		const struct recorded_stack *recorded = &b->recording.stacks.items[i];
		struct reader reader = recording_reader(recorded);
		uint32_t count = unwinder_chain(b->unwinder, &recorded->regs, &reader, UINT64_MAX, frames, &whole);

		for (uint32_t f = 1; f < count; f++)
			if (!enter(b, frames[f].pc))
				return false;
	}
	return true;
}

static bool fill_table(struct bench *b)
{
	for (unsigned bits = SLOTS_BITS_MIN; bits <= SLOTS_BITS_MAX; bits++)
		if (make_table(b, bits) && enter_frames(b))
			return true;
	return false;
}

/* --- the stacks --- */

/* Where the first frame was called from, as the ring's code finds it at an entry. */
static bool find_place(struct bench *b, const struct recorded_stack *recorded, struct place *ret)
{
	struct reader reader = recording_reader(recorded);
	struct unwind_frame frames[UNWIND_CHAIN_MAX];
	bool whole;

	if (unwinder_chain(b->unwinder, &recorded->regs, &reader, UINT64_MAX, frames, &whole) < 3 || frames[1].interrupted)
		return false;
	*ret = (struct place){ frames[1].pc, frames[1].sp, recorded->regs.reg[ARCH_DWARF_BP] };
	return true;
}

static void lay_out(const struct measured *m)
{
	memcpy(stack, m->bytes, m->length);
}

/* False: a walk of it by the table would end early, where the unwinder goes on. */
static bool prepare(struct bench *b, const struct recorded_stack *recorded, struct measured *m)
{
	uint64_t pcs[FRAMES], end, last;
	size_t offset;

	if (!find_place(b, recorded, &m->at))
		return false;
	offset = m->at.sp - recorded->address;
	if (offset >= recorded->len)
		return false;
	m->bytes = recorded->bytes + offset;
	m->length = recorded->len - offset < sizeof(stack) ? recorded->len - offset : sizeof(stack);
	lay_out(m);
	m->frames = walk(b, m->at, (uintptr_t)stack - m->at.sp, pcs, &end);
	last = pcs[m->frames - 1];
	m->length = end - m->at.sp;
	m->walk = m->copy = UINT64_MAX;
	return m->frames > 2 && m->length <= recorded->len - offset && (m->frames == FRAMES || slot_of(b, last)->pc != last);
}

static bool prepare_all(struct bench *b)
{
	b->measured = calloc(b->recording.stacks.count, sizeof(*b->measured));
	if (!b->measured)
		return false;
	for (size_t i = 0; i < b->recording.stacks.count; i++)
		if (prepare(b, &b->recording.stacks.items[i], &b->measured[b->count]))
			b->count++;
		else
			b->unusual++;
	return b->count != 0;
}

/* --- measuring --- */

static uint64_t *take(size_t length)
{
	if (sink_at + length > SINK_SIZE)
		sink_at = 0;
	sink_at += length;
	return (uint64_t *)(sink + sink_at - length);
}

static uint64_t begin(void)
{
	_mm_lfence();
	return __rdtsc();
}

static uint64_t end_of(uint64_t began)
{
	unsigned aux;
	uint64_t ended = __rdtscp(&aux);

	_mm_lfence();
	return ended - began;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t walk_ticks(const struct bench *b, const struct measured *m)
{
	uint64_t *to = take(FRAMES * sizeof(uint64_t)), end, began;

	lay_out(m);
	began = begin();
	walk(b, m->at, (uintptr_t)stack - m->at.sp, to, &end);
	return end_of(began);
}

static uint64_t copy_ticks(const struct measured *m)
{
	void *to = take(m->length);
	const void *from = stack;
	size_t words = m->length / 8;
	uint64_t began;

	lay_out(m);
	began = begin();
	__asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
	return end_of(began);
}

static uint64_t nothing_ticks(void)
{
	uint64_t ticks = UINT64_MAX;

	for (unsigned i = 0; i < 1000; i++)
		ticks = least(ticks, end_of(begin()));
	return ticks;
}

static double ns_a_tick(void)
{
	struct timespec from, to;
	uint64_t began, ticks;
	double ns;

	clock_gettime(CLOCK_MONOTONIC, &from);
	began = __rdtsc();
	do {
		clock_gettime(CLOCK_MONOTONIC, &to);
		ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
	} while (ns < 1e8);
	ticks = __rdtsc() - began;
	return ns / (double)ticks;
}

static void measure_all(struct bench *b)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < b->count; i++) {
			struct measured *m = &b->measured[i];

			m->walk = least(m->walk, walk_ticks(b, m));
			m->copy = least(m->copy, copy_ticks(m));
		}
}

static json_t *bench_json(const struct bench *b, const char *path)
{
	double nothing = (double)nothing_ticks(), ns = ns_a_tick(), walk_sum = 0, copy_sum = 0, frames = 0, bytes = 0;
	double count = (double)b->count;
	size_t cheaper = 0;

	for (size_t i = 0; i < b->count; i++) {
		const struct measured *m = &b->measured[i];

		walk_sum += (double)m->walk - nothing;
		copy_sum += (double)m->copy - nothing;
		frames += m->frames;
		bytes += (double)m->length;
		cheaper += m->walk < m->copy;
	}
	return json_pack("{s:s, s:I, s:I, s:f, s:f, s:I, s:f, s:f, s:f}", "recording", path, "stacks", (json_int_t)b->count,
			 "not_walked", (json_int_t)b->unusual, "frames_a_stack", frames / count, "bytes_a_stack",
			 bytes / count, "table_bytes", (json_int_t)(sizeof(*b->table) << b->bits), "walk_ns",
			 walk_sum * ns / count, "copy_ns", copy_sum * ns / count, "walk_cheaper_share", (double)cheaper / count);
}

static int make_unwinder(struct bench *b)
{
	b->stacks = stack_table_new(1 << 22);
	b->unwinder = b->stacks ? unwinder_new(&b->recording.map, b->stacks) : NULL;
	if (!b->unwinder)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->recording.map.modules.count; i++) {
		int fd = recording_open_module(&b->recording, i);

		if (fd >= 0) {
			unwinder_add_module(b->unwinder, i, fd);
			fd_close(&fd);
		}
	}
	return 0;
}

static void fini(struct bench *b)
{
	free(b->measured);
	free(b->table);
	unwinder_free(b->unwinder);
	stack_table_free(b->stacks);
	recording_fini(&b->recording);
}

int main(int argc, char **argv)
{
	json_t *list = json_array();

	memset(sink, 1, sizeof(sink));
	if (argc < 2) {
		fprintf(stderr, "usage: bench_walk RECORDING...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		struct bench b = { 0 };
		int err = recording_read(argv[i], &b.recording);

		if (err < 0 || make_unwinder(&b) < 0 || !fill_table(&b) || !prepare_all(&b)) {
			fprintf(stderr, "bench_walk: %s: %s\n", argv[i], err < 0 ? strerror(-err) : "no stacks that can be walked");
			return 1;
		}
		measure_all(&b);
		json_array_append_new(list, bench_json(&b, argv[i]));
		fini(&b);
	}
	json_dumpf(list, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(4));
	putchar('\n');
	json_decref(list);
	return 0;
}
