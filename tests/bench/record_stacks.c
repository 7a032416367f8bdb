/* Records stacks of a program for bench_unwind and others, distinct ones.
 *
 *	record_stacks [-a] [-n STACKS] [-e EVERY] [-s STEPS] [-c SOURCE] -o FILE redis|python3|cc1
 *
 * -a: all as they come, also those that were there before.
 * EVERY: at one in so many allocations, on average.  STEPS: 0 to so many instructions behind it.  SOURCE: what
 * cc1 compiles. */
#include "process_map.h"
#include "recording.h"
#include "sampler.h"
#include "workload.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_MAX 256
#define NODES_MAX (4u << 20)
#define SLACK 1024u
#define BELOW 1024u       /* recorded below sp: the red zone and more */

struct recorder {
	struct sampler *sampler;
	struct module_map map;
	struct stack_table *stacks;
	struct unwinder *unwinder;
	FILE *file;
	uint8_t *seen;                     /* by stack node */
	uint32_t recorded, wanted;
	bool repeats;
};

static int record(struct recorder *r, const struct sample *sample, uint32_t used)
{
	struct reader reader = sampler_reader(r->sampler);
	raddr sp = sample->regs.reg[ARCH_DWARF_SP];
	struct recorded_stack stack = { .regs = sample->regs, .address = sp - BELOW };
	int err = -EFAULT;

	stack.bytes = malloc((size_t)used + BELOW + SLACK);
	if (!stack.bytes)
		return -ENOMEM;
	for (uint32_t slack = SLACK; err < 0; slack -= 8) {
		stack.len = BELOW + used + slack;
		err = reader_read(&reader, stack.address, stack.bytes, stack.len);
		if (slack == 0)
			break;
	}
	if (err == 0)
		err = recording_write_stack(r->file, &stack);
	free(stack.bytes);
	return err;
}

static bool is_complete(const struct recorder *r, uint32_t node)
{
	struct stack_node outer = stack_table_node(r->stacks, node);

	while (outer.parent != STACK_ROOT)
		outer = stack_table_node(r->stacks, outer.parent);
	return stack_table_get_frame(r->stacks, outer.frame).kind != FRAME_TRUNCATED;
}

/* Steps for which code had to be read as well, which is not recorded. */
static uint64_t guesses(const struct recorder *r)
{
	struct unwind_counters counters = unwinder_counters(r->unwinder);

	return counters.trampoline_steps + counters.frame_pointer_steps;
}

/* Only stacks that were followed to their end by tables and lie within one stack are of use. */
static int take(struct recorder *r, const struct sample *sample)
{
	struct reader reader = sampler_reader(r->sampler);
	uint64_t before = guesses(r);
	struct unwind_reach used;
	uint32_t node = unwinder_unwind(r->unwinder, &sample->regs, &reader, FRAMES_MAX, &used);

	if (!is_complete(r, node)) {
		/* Perhaps it goes through a library loaded since the last look. */
		sampler_update_map(r->sampler, &r->map, r->unwinder);
		node = unwinder_unwind(r->unwinder, &sample->regs, &reader, FRAMES_MAX, &used);
	}
	if ((r->seen[node] && !r->repeats) || used.bytes > RECORDING_READ_MAX - 8192 || !is_complete(r, node) ||
	    guesses(r) != before)
		return 0;
	r->seen[node] = 1;
	r->recorded++;
	return record(r, sample, used.bytes);
}

static int run(struct recorder *r, const struct sampler_options *options, struct workload *workload)
{
	struct sample sample;
	int err = recording_write_start(r->file);

	r->sampler = sampler_start(options);
	if (!r->sampler)
		return -errno;
	if (err == 0)
		err = workload_start_client(workload);
	while (err == 0 && r->recorded < r->wanted && sampler_next(r->sampler, &sample))
		err = take(r, &sample);
	if (err == 0)
		err = recording_write_modules(r->file, sampler_process(r->sampler), &r->map);
	sampler_free(r->sampler);
	return err;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *place)
{
	(void)st;
	(void)type;
	(void)place;
	return remove(path);
}

static int record_workload(struct recorder *r, struct sampler_options *options, const char *name,
			   const char *source)
{
	char folder[] = "/tmp/record_stacks-XXXXXX";
	struct workload workload;
	int err;

	if (!mkdtemp(folder))
		return -errno;
	err = workload_prepare(&workload, name, folder, source);
	if (err < 0)
		goto out;
	options->argv = workload.argv;
	module_map_init(&r->map);
	r->stacks = stack_table_new(NODES_MAX);
	r->unwinder = unwinder_new(&r->map, r->stacks);
	r->seen = calloc(NODES_MAX + 1, 1);
	err = r->unwinder && r->seen ? run(r, options, &workload) : -ENOMEM;
	unwinder_free(r->unwinder);
	stack_table_free(r->stacks);
	module_map_fini(&r->map);
	free(r->seen);
	workload_fini(&workload);
out:
	nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	return err;
}

static int usage(void)
{
	fprintf(stderr, "usage: record_stacks [-a] [-n STACKS] [-e EVERY] [-s STEPS] [-c SOURCE] -o FILE "
			"redis|python3|cc1\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct sampler_options options = { .every = 1, .max_steps = 0 };
	struct recorder r = { .wanted = 4000 };
	const char *path = NULL, *source = "unwind.c";
	int option, err;

	while ((option = getopt(argc, argv, "an:e:s:c:o:")) != -1) {
		switch (option) {
		case 'a': r.repeats = true; break;
		case 'n': r.wanted = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'e': options.every = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 's': options.max_steps = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'c': source = optarg; break;
		case 'o': path = optarg; break;
		default: return usage();
		}
	}
	if (!path || optind + 1 != argc)
		return usage();
	r.file = fopen(path, "we");
	if (!r.file) {
		fprintf(stderr, "record_stacks: cannot write %s: %s\n", path, strerror(errno));
		return 1;
	}
	err = record_workload(&r, &options, argv[optind], source);
	if (fclose(r.file) != 0 && err == 0)
		err = -EIO;
	if (err < 0)
		fprintf(stderr, "record_stacks: %s: %s\n", argv[optind], strerror(-err));
	printf("%s: %u stacks\n", path, r.recorded);
	return err < 0 || r.recorded == 0;
}
