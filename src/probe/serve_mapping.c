/* Mappings, as the calls of mmap(2), munmap(2), mremap(2) and brk(2) make them.
 *
 * What malloc maps for itself is malloc's, and no mapping of the program's: that is decided by the calls that are pending.  All
 * the same it is told, as internal: the kernel may have put something else in a known mapping's place. */
#define _GNU_SOURCE
#include "probe/serve_mapping.h"

#include <sys/mman.h>

#define PAGE_BYTES 4096ULL
#define HUGE_SHIFT_DEFAULT 21              /* of huge pages, unless the flags or the boot's options say otherwise */
#define HUGE_SHIFT_AT 26                   /* in the flags of mmap */
#define HUGE_SHIFT_MASK 0x3f
#define ERRNO_MAX 4095                     /* what the kernel returns above -ERRNO_MAX is no address */
#define REMAP_DONT_UNMAP 4                 /* Linux 5.7 */

/* 0 for what is too large to be one. */
static uint64_t round_up(uint64_t bytes, uint64_t page)
{
	return (bytes + page - 1) & ~(page - 1);
}

static uint64_t page_of(uint64_t flags)
{
	unsigned shift = (flags >> HUGE_SHIFT_AT) & HUGE_SHIFT_MASK;

	if (!(flags & MAP_HUGETLB))
		return PAGE_BYTES;
	return 1ULL << (shift ? shift : HUGE_SHIFT_DEFAULT);
}

/* 0: it cannot be read, or there is none yet. */
static raddr read_break(const struct sighting *seen, const struct probe *probe)
{
	uint64_t at;

	return reader_u64(seen->reader, probe->word, &at) < 0 ? 0 : round_up(at, PAGE_BYTES);
}

/* brk(address): what lies above is given back. */
static void take_break(struct call *call, const struct sighting *seen)
{
	raddr old = read_break(seen, call->probe), new = round_up(seen->args[0], PAGE_BYTES);

	call->out_pointer = old;
	if (old == 0 || seen->args[0] == 0 || new >= old)
		return;
	call->old_address = new;
	call->old_size = old - new;
}

static void take_request(struct call *call, const struct sighting *seen)
{
	const uint64_t *args = seen->args;

	switch (call->probe->entry->mapping) {
	case MAPPING_NONE:
		break;
	case MAPPING_MAP:
		call->size = round_up(args[1], page_of(args[3]));
		call->replaces = args[3] & MAP_FIXED;
		break;
	case MAPPING_UNMAP:
		call->old_address = args[0];
		call->old_size = round_up(args[1], PAGE_BYTES);
		break;
	case MAPPING_REMAP:
		call->old_address = args[0];
		call->old_size = args[3] & REMAP_DONT_UNMAP ? 0 : round_up(args[1], PAGE_BYTES);
		call->size = round_up(args[2], PAGE_BYTES);
		call->replaces = args[3] & MREMAP_FIXED;
		break;
	case MAPPING_BREAK:
		take_break(call, seen);
		break;
	}
}

void serve_mapping_entry(struct serving *serving, raddr sp)
{
	const struct sighting *seen = serving->seen;
	bool internal = calls_are_within(seen->calls, DOMAIN_MALLOC, seen->probe, sp, &serving->eyes);
	struct call *call = calls_enter(seen->calls, seen->probe, sp, 0, &serving->eyes);

	/* One within another, of who stands before libc's, is that one's. */
	if (!call || call->outer_sp != 0)
		return;
	call->bp = seen->regs.reg[ARCH_DWARF_BP];
	call->internal = internal;
	take_request(call, seen);
	if (call->old_size == 0)
		return;
	call->parked = true;
	serve_emit(serving->engine, seen, &(struct alloc_event){ .kind = ALLOC_RESIZE_BEGIN, .domain = DOMAIN_MMAP,
								.old_address = call->old_address,
								.old_size = call->old_size });
}

/* What was to be unmapped is, and a range may be mapped. */
static void end(const struct serving *serving, const struct call *call, raddr address, uint64_t size)
{
	const struct sighting *seen = serving->seen;
	struct alloc_event event = {
		.kind = call->parked ? ALLOC_RESIZE_END : ALLOC_BORN, .domain = DOMAIN_MMAP,
		.old_address = call->old_address, .old_size = call->old_size, .address = address, .size = size,
		.replaces = call->replaces, .internal = call->internal,
	};

	if (address != 0 && !call->internal)
		event.stack = serve_caller_stack(serving->engine, call, seen);
	serve_emit(serving->engine, seen, &event);
}

static void fail(const struct serving *serving, const struct call *call)
{
	if (call->parked)
		end(serving, call, 0, 1);
}

static void end_break(const struct serving *serving, const struct call *call)
{
	raddr old = call->out_pointer, new = read_break(serving->seen, call->probe);

	/* The kernel may leave it where it is, and libc calls that a success. */
	if (call->parked && new == call->old_address)
		end(serving, call, 0, 0);
	else if (call->parked)
		fail(serving, call);
	else if (old != 0 && new > old)
		end(serving, call, old, new - old);
}

void serve_mapping_return(struct serving *serving, const struct call *call)
{
	uint64_t result = serving->seen->result;
	bool is_address = result < (uint64_t)-ERRNO_MAX;

	if (call->outer_sp != 0)
		return;
	switch (call->probe->entry->mapping) {
	case MAPPING_NONE:
		break;
	case MAPPING_MAP:
	case MAPPING_REMAP:
		if (is_address && call->size > 0)
			end(serving, call, result, call->size);
		else
			fail(serving, call);
		break;
	case MAPPING_UNMAP:
		if ((uint32_t)result == 0)
			end(serving, call, 0, 0);
		else
			fail(serving, call);
		break;
	case MAPPING_BREAK:
		if ((uint32_t)result == 0)
			end_break(serving, call);
		else
			fail(serving, call);
		break;
	}
}

void serve_mapping_left(const struct serving *serving, const struct call *call)
{
	fail(serving, call);
}
