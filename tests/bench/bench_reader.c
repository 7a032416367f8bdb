/* What a record of the ring costs its reader, and what of that a second thread could take over: prints one JSON object a
 * line and judges nothing.
 *
 *	bench_reader RECORDING...
 *
 * Stacks of real programs in the order in which they came (record_stacks -a), each as a malloc with a free of some block before
 * it: a thread on one core writes them into a ring of the default size, and is at rest when a thread on the other one reads them.
 * So each of them comes out of the other core's caches, as with a program that is traced, and nobody waits for anybody.  What is
 * measured is the reader's own time, the least of several rounds, in nanoseconds a malloc with its free.
 *
 * "pass": records are looked at and passed; "calls": pending calls as well; "heap": live blocks as well; "all": their stacks
 * as well.  "helper": the stacks alone, unwound by an unwinder of its own with its own table; "rest": all, but that a stack is
 * one of the helper's, translated.  So with a helper on a third core none is faster than the longer of the two.
 * "with_1", "with_2": all, with as many helpers (probe/ring_ahead.h) that begin when the reader does, on the other cores; where there are
 * two, on the writer's, which is at rest.  "taken": which part of the stacks was theirs then. */
#include "recording.h"

#include "base/clock.h"
#include "base/fd.h"
#include "model/heap.h"
#include "probe/calls.h"
#include "probe/catalog.h"
#include "probe/probe.h"
#include "probe/ring_ahead.h"
#include "probe/ring_stack.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 9
#define FRAMES 41                      /* of a traceback of 25, as the tracer takes them */
#define RING_SIZE ((uint64_t)8 << 20)
#define STACKS_MAX (1u << 20)
#define LIVE 4096                      /* blocks, of which each malloc frees one before */
#define THREAD 1
#define MALLOC 1                       /* numbers of sites */
#define FREE 2
#define FIRST_BLOCK 0x10000000u

#define FIRST_PLACE 3                  /* of returns, by function */
#define PLACES_MAX 64
#define PASS_EVERY 64

enum part { PASS, CALLS, HEAP, ALL, HELPER, REST, WITH_1, WITH_2, PARTS };

static const char *const part_names[PARTS] = { "pass", "calls", "heap", "all", "helper", "rest", "with_1", "with_2" };

/* A stack with as much of it as the tracer has learned to ask for. */
struct piece {
	const struct recorded_stack *stack;
	const uint8_t *bytes;          /* from its stack pointer on */
	uint32_t length;
	uint32_t node, helpers;        /* in the table of the reader, and of the helper */
	uint32_t site;                 /* of its function's return */
};

/* An unwinder and what it needs. */
struct walker {
	struct stack_table *stacks;
	struct unwinder *unwinder;
};

struct bench {
	struct recording recording;
	struct walker reader, helper;
	struct ring *ring;
	uint64_t written;              /* position behind the last record */
	struct piece *pieces;
	uint32_t count, next;          /* next one to be written */
	raddr live[LIVE];
	uint64_t random;
	struct heap *heap;
	struct calls calls;
	struct probe malloc_probe, free_probe;
	uint32_t *translation;         /* a helper's node: ours */
	uint32_t *prepared;            /* the helper's nodes, by record */
	uint64_t frames;
	raddr functions[PLACES_MAX];   /* by place */
	uint32_t places;
	int *files;                    /* of modules */
	uint64_t text;
	struct ring_ahead *ahead;
	unsigned cpus;
	double ns[PARTS], taken[PARTS];
};

static void fail(const char *what)
{
	fprintf(stderr, "bench_reader: %s\n", what);
	exit(1);
}

static void stay_on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void leave_cpu(const struct bench *b, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned i = 0; i < b->cpus; i++) {
		if (i != (unsigned)cpu)
			CPU_SET(i, &set);
	}
	sched_setaffinity(0, sizeof(set), &set);
}

/* --- the program's side --- */

static uint64_t next_random(struct bench *b)
{
	b->random = b->random * 6364136223846793005u + 1442695040888963407u;
	return b->random >> 33;
}

static void *reserve(struct bench *b, uint32_t length, uint32_t site)
{
	struct ring_control *control = ring_control(b->ring);
	uint8_t *data = (uint8_t *)control + RING_CONTROL_SIZE;
	struct ring_head *head = (void *)(data + (b->written & (RING_SIZE - 1)));

	head->length = length;
	head->site = site;
	head->thread = THREAD;
	return head;
}

static void commit(struct bench *b, struct ring_head *head)
{
	struct ring_control *control = ring_control(b->ring);

	__atomic_store_n(&head->mark, (b->written ^ control->key) | RING_COMMITTED, __ATOMIC_RELEASE);
	b->written += head->length;
	__atomic_store_n(&control->head, b->written, __ATOMIC_RELEASE);
}

static void write_call(struct bench *b, uint32_t site, raddr sp, uint64_t argument)
{
	struct ring_call *call = reserve(b, sizeof(*call), site);

	call->head.sp = sp;
	call->args[0] = argument;
	commit(b, &call->head);
}

static void write_return(struct bench *b, const struct piece *piece, raddr result)
{
	uint32_t space = (uint32_t)sizeof(struct ring_return) + piece->length;
	struct ring_return *part = reserve(b, (space + RING_UNIT - 1) / RING_UNIT * RING_UNIT, piece->site | RING_RETURN);

	part->head.sp = piece->stack->regs.reg[ARCH_DWARF_SP];
	part->time = (uint64_t)(piece - b->pieces);
	part->result = result;
	part->stack_length = piece->length;
	part->other_start = 0;
	for (unsigned i = 0; i < ARCH_CALLEE_SAVED; i++)
		part->saved[i] = piece->stack->regs.reg[arch_callee_saved[i]];
	part->length_key = (uint32_t)part->time;
	memcpy(part->stack, piece->bytes, piece->length);
	commit(b, &part->head);
}

/* Most of the ring, so that no room is waited for. */
static void *fill(void *context)
{
	struct bench *b = context;
	uint64_t began = b->written;

	stay_on_cpu(0);
	while (b->written - began < RING_SIZE / 8 * 7) {
		const struct piece *piece = &b->pieces[b->next];
		raddr sp = piece->stack->regs.reg[ARCH_DWARF_SP], *block = &b->live[next_random(b) % LIVE], freed = *block;

		write_call(b, FREE, sp, freed);
		write_call(b, MALLOC, sp, 64);
		write_return(b, piece, freed);
		b->next = (b->next + 1) % b->count;
	}
	return NULL;
}

/* --- the reader's --- */

static int read_nothing(void *context, raddr at, void *buf, size_t len)
{
	(void)context, (void)at, (void)buf, (void)len;
	return -EFAULT;
}

static struct ring_stack unwind(const struct bench *b, const struct walker *walker, const struct ring_record *record)
{
	static const struct reader none = { .read = read_nothing };
	const struct piece *piece = &b->pieces[record->time];

	return ring_stack_unwind(walker->unwinder, &b->recording.map, &none, record, piece->stack->regs.reg[ARCH_DWARF_PC], FRAMES);
}

static bool continues(const struct probe *outer, const struct probe *probe)
{
	(void)outer, (void)probe;
	return false;
}

static enum call_standing standing(void *context, const struct call *call)
{
	(void)context, (void)call;
	return CALL_LEFT;
}

static void not_expected(void *context, const struct call *call)
{
	(void)context, (void)call;
	fail("a call was left");
}

static void kept(void *context, const struct held_block *block)
{
	(void)context, (void)block;
	fail("a block was held");
}

static uint32_t stack_of(struct bench *b, enum part part, const struct ring_record *record, uint32_t number)
{
	struct ring_ahead_found found;
	struct ring_stack stack;

	if (part == REST)
		return b->translation[b->prepared[number]];
	if (part < ALL)
		return b->pieces[record->time].node;
	if (!ring_ahead_take(b->ahead, record, b->functions[record->site - FIRST_PLACE], &stack, &found)) {
		stack = unwind(b, &b->reader, record);
		if (b->ahead)
			ring_ahead_note(b->ahead, &found, &stack);
	}
	ring_stack_learn(b->ring, record, &stack);
	return stack.node;
}

static void serve(struct bench *b, enum part part, const struct ring_record *record, uint32_t number)
{
	const struct calls_eyes eyes = { .continues = continues, .standing = standing, .abandoned = not_expected, .kept = kept };
	struct alloc_event event = { .tid = THREAD, .time_ns = record->time };
	struct call call;

	if (record->site == FREE) {
		calls_free(&b->calls, &b->free_probe, record->sp, 0, record->args[0], true, &eyes);
		event.kind = ALLOC_FREED;
		event.old_address = record->args[0];
	} else if (!record->is_return) {
		calls_enter(&b->calls, &b->malloc_probe, record->sp, record->args[0], &eyes);
		return;
	} else {
		if (!calls_leave(&b->calls, record->sp, &call, &eyes))
			fail("a return without a call");
		event.kind = ALLOC_BORN;
		event.address = record->result;
		event.size = call.size;
		event.stack = stack_of(b, part, record, number);
	}
	if (part >= HEAP && heap_apply(b->heap, &event) < 0)
		fail("the heap is full");
}

static void pass_one(struct bench *b, enum part part, const struct ring_record *record, uint32_t number)
{
	ring_ahead_prefetch(b->ahead, record->position);
	if (part == HELPER && record->is_return)
		b->prepared[number] = unwind(b, &b->helper, record).node;
	if (part != PASS && part != HELPER)
		serve(b, part, record, number);
}

/* Returns how many returns there were. */
static uint32_t drain(struct bench *b, enum part part)
{
	struct ring_record record;
	uint32_t returns = 0, records = 0;

	while (ring_next(b->ring, &record) == 1) {
		pass_one(b, part, &record, returns);
		returns += record.is_return;
		ring_done(b->ring);
		if (++records % PASS_EVERY == 0)
			ring_ahead_pass(b->ahead, ring_position(b->ring));
	}
	return returns;
}

static void fill_by_other(struct bench *b)
{
	pthread_t writer;

	if (pthread_create(&writer, NULL, fill, b) != 0)
		fail("no thread can be made");
	pthread_join(writer, NULL);
}

static uint64_t cpu_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* To read them is the helper's part, too, but counted with the rest. */
static void measure_part(struct bench *b, enum part part)
{
	uint64_t began, taken = ring_ahead_counters(b->ahead).taken;
	double ns, count;

	ring_ahead_halt(b->ahead);
	fill_by_other(b);
	began = cpu_ns();
	ring_ahead_go_on(b->ahead);
	count = (double)drain(b, part);
	ns = (double)(cpu_ns() - began) / count;
	if (ns >= b->ns[part])
		return;
	b->ns[part] = ns;
	b->taken[part] = (double)(ring_ahead_counters(b->ahead).taken - taken) / count;
}

static int module_file(void *context, uint32_t module)
{
	const struct bench *b = context;

	return b->files[module];
}

static void find_patched(void *context, bool *modules, size_t count)
{
	(void)context, (void)modules, (void)count;
}

static int no_memory_file(void *context)
{
	(void)context;
	return -1;
}

static void make_ahead(struct bench *b)
{
	const struct ring_ahead_options options = {
		.world = { &b->recording.map, b->reader.unwinder, &b->text, module_file, find_patched, no_memory_file, b },
		.max_frames = FRAMES, .eager = true,
	};

	if (ring_ahead_new(b->ring, &options, &b->ahead) < 0)
		fail("no memory");
}

/* It begins where it may run, which is not where the reader does. */
static void begin_helper(struct bench *b)
{
	leave_cpu(b, 1);
	if (ring_ahead_begin_helper(b->ahead) < 0)
		fail("no helper can be begun");
	stay_on_cpu(1);
}

static void measure(struct bench *b)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		for (enum part part = 0; part < WITH_1; part++)
			measure_part(b, part);
	make_ahead(b);
	for (enum part part = WITH_1; part < PARTS; part++) {
		begin_helper(b);
		for (unsigned round = 0; round < 3 * ROUNDS; round++)
			measure_part(b, part);
	}
}

/* --- preparing --- */

static void walker_init(struct bench *b, struct walker *walker)
{
	walker->stacks = stack_table_new(STACKS_MAX);
	walker->unwinder = walker->stacks ? unwinder_new(&b->recording.map, walker->stacks) : NULL;
	if (!walker->unwinder)
		fail("no memory");
	for (uint32_t i = 0; i < b->recording.map.modules.count; i++) {
		int fd = recording_open_module(&b->recording, i);

		if (fd >= 0) {
			unwinder_add_module(walker->unwinder, i, fd);
			fd_close(&fd);
		}
	}
}

static uint32_t place_of(struct bench *b, raddr function)
{
	uint32_t i = 0;

	while (i < b->places && b->functions[i] != function)
		i++;
	if (i == PLACES_MAX)
		fail("too many functions");
	if (i == b->places)
		b->functions[b->places++] = function;
	return FIRST_PLACE + i;
}

static void prepare(struct bench *b, const struct recorded_stack *stack)
{
	struct piece *piece = &b->pieces[b->count];
	struct reader reader = recording_reader(stack);
	uint64_t offset = stack->regs.reg[ARCH_DWARF_SP] - stack->address, left = stack->len - offset, length;
	struct unwind_reach reach;

	if (offset >= stack->len)
		return;
	piece->stack = stack;
	piece->site = place_of(b, stack->regs.reg[ARCH_DWARF_PC]);
	piece->bytes = stack->bytes + offset;
	piece->node = unwinder_unwind(b->reader.unwinder, &stack->regs, &reader, FRAMES, &reach);
	piece->helpers = unwinder_unwind(b->helper.unwinder, &stack->regs, &reader, FRAMES, NULL);
	length = (reach.bytes + reach.bytes / 4 + RING_UNIT - 1) / RING_UNIT * RING_UNIT;
	piece->length = (uint32_t)(length < left ? length : left / 8 * 8);
	b->translation[piece->helpers] = piece->node;
	for (uint32_t node = piece->node; node != STACK_ROOT; node = stack_table_node(b->reader.stacks, node).parent)
		b->frames++;
	b->count++;
}

static void make_blocks(struct bench *b)
{
	for (uint32_t i = 0; i < LIVE; i++) {
		struct alloc_event event = { .kind = ALLOC_BORN, .tid = THREAD, .address = FIRST_BLOCK + 80 * i, .size = 64,
					     .stack = b->pieces[i % b->count].node };

		b->live[i] = event.address;
		if (heap_apply(b->heap, &event) < 0)
			fail("no memory");
	}
}

static void init(struct bench *b, const char *path)
{
	int r = recording_read(path, &b->recording);

	if (r < 0)
		fail(strerror(-r));
	b->cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	b->files = calloc(b->recording.map.modules.count, sizeof(*b->files));
	if (!b->files)
		fail("no memory");
	for (uint32_t i = 0; i < b->recording.map.modules.count; i++)
		b->files[i] = recording_open_module(&b->recording, i);
	walker_init(b, &b->reader);
	walker_init(b, &b->helper);
	b->pieces = calloc(b->recording.stacks.count, sizeof(*b->pieces));
	b->translation = calloc(STACKS_MAX, sizeof(*b->translation));
	b->prepared = calloc(RING_SIZE / RING_UNIT, sizeof(*b->prepared));
	b->heap = heap_new(NULL, true, 0);
	if (!b->pieces || !b->translation || !b->prepared || !b->heap || ring_new(RING_SIZE, &b->ring) < 0)
		fail("no memory");
	for (size_t i = 0; i < b->recording.stacks.count; i++)
		prepare(b, &b->recording.stacks.items[i]);
	if (b->count == 0)
		fail("no stacks that can be walked");
	b->malloc_probe.entry = catalog_find("malloc");
	b->free_probe.entry = catalog_find("free");
	make_blocks(b);
	for (enum part part = 0; part < PARTS; part++)
		b->ns[part] = 1e9;
}

static void fini(struct bench *b)
{
	for (uint32_t i = 0; i < b->recording.map.modules.count; i++)
		fd_close(&b->files[i]);
	free(b->files);
	free(b->pieces);
	free(b->translation);
	free(b->prepared);
	heap_free(b->heap);
	ring_ahead_free(b->ahead, b->ring);
	unwinder_free(b->reader.unwinder);
	unwinder_free(b->helper.unwinder);
	stack_table_free(b->reader.stacks);
	stack_table_free(b->helper.stacks);
	recording_fini(&b->recording);
}

static void print(const struct bench *b, const char *path)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < b->count; i++)
		bytes += b->pieces[i].length;
	printf("{\"bench\": \"reader\", \"recording\": \"%s\", \"stacks\": %u, \"frames\": %.1f, \"stack_bytes\": %.0f", path, b->count,
	       (double)b->frames / b->count, (double)bytes / b->count);
	for (enum part part = 0; part < PARTS; part++)
		printf(", \"%s_ns\": %.1f", part_names[part], b->ns[part]);
	for (enum part part = WITH_1; part < PARTS; part++)
		printf(", \"%s_taken\": %.2f, \"%s_faster\": %.2f", part_names[part], b->taken[part], part_names[part],
		       b->ns[ALL] / b->ns[part]);
	printf("}\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct bench b;

	if (argc < 2) {
		fprintf(stderr, "usage: bench_reader RECORDING...\n");
		return 2;
	}
	stay_on_cpu(1);
	for (int i = 1; i < argc; i++) {
		b = (struct bench){ .random = 1 };
		init(&b, argv[i]);
		measure(&b);
		print(&b, argv[i]);
		fini(&b);
	}
	return 0;
}
