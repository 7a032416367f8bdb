#include "require.h"
#include "unwind_fixture.h"

#include "process_map.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define NODES_MAX (1u << 20)

void subject_init(struct subject *subject)
{
	module_map_init(&subject->map);
	subject->stacks = stack_table_new(NODES_MAX);
	ck_assert_ptr_nonnull(subject->stacks);
	subject->unwinder = unwinder_new(&subject->map, subject->stacks);
	ck_assert_ptr_nonnull(subject->unwinder);
	ck_assert_int_eq(process_map_update(getpid(), &subject->map, subject->unwinder), 0);
	ck_assert_uint_gt(subject->map.modules.count, 2);
}

void subject_fini(struct subject *subject)
{
	unwinder_free(subject->unwinder);
	stack_table_free(subject->stacks);
	module_map_fini(&subject->map);
}

static void registers_of(const ucontext_t *context, struct arch_regs *regs)
{
	static const int order[ARCH_DWARF_REGS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
		REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
	};

	for (unsigned int i = 0; i < ARCH_DWARF_REGS; i++)
		regs->reg[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
}

/* The kernel copies what there is of it, and stops at the end of the mapping. */
static size_t copy_memory(raddr from, uint8_t *to, size_t len)
{
	struct iovec local = { .iov_base = to, .iov_len = len };
	struct iovec remote[RECORDED_MAX / 4096 + 1];
	unsigned int count = 0;
	ssize_t n;

	for (raddr at = from; at < from + len; count++) {
		raddr next = (at | 4095) + 1;

		remote[count].iov_base = (void *)(uintptr_t)at;
		remote[count].iov_len = (next < from + len ? next : from + len) - at;
		at = next;
	}
	n = process_vm_readv(getpid(), &local, 1, remote, count, 0);
	return n < 0 ? 0 : (size_t)n;
}

void record_context(struct recorded *recorded, const ucontext_t *context)
{
	registers_of(context, &recorded->regs);
	recorded->start = recorded->regs.reg[ARCH_DWARF_SP] - RECORDED_BELOW;
	recorded->len = copy_memory(recorded->start, recorded->bytes, RECORDED_MAX);
	recorded->reads = 0;
	recorded->end = 0;
	recorded->other_len = 0;
}

void record_other(struct recorded *recorded, raddr sp)
{
	recorded->other_start = sp - RECORDED_BELOW;
	recorded->other_len = copy_memory(recorded->other_start, recorded->other, sizeof(recorded->other));
}

static bool copy_other(const struct recorded *recorded, raddr at, void *buf, size_t len)
{
	raddr offset = at - recorded->other_start;

	if (offset > recorded->other_len || len > recorded->other_len - offset)
		return false;
	memcpy(buf, recorded->other + offset, len);
	return true;
}

static int read_recorded(void *context, raddr at, void *buf, size_t len)
{
	struct recorded *recorded = context;
	raddr end = recorded->end ? recorded->end : recorded->start + recorded->len;

	recorded->reads++;
	if (copy_other(recorded, at, buf, len))
		return 0;
	if (at < recorded->start || at > end || len > end - at)
		return -EFAULT;
	memcpy(buf, recorded->bytes + (at - recorded->start), len);
	return 0;
}

struct reader recorded_reader(struct recorded *recorded)
{
	return (struct reader){ .read = read_recorded, .context = recorded };
}

struct pcs pcs_of_node(const struct subject *subject, uint32_t node)
{
	struct pcs pcs = { .count = 0 };

	while (node != STACK_ROOT) {
		struct stack_node here = stack_table_node(subject->stacks, node);
		struct frame frame = stack_table_get_frame(subject->stacks, here.frame);

		node = here.parent;
		if (frame.kind == FRAME_TRUNCATED) {
			REQUIRE(node == STACK_ROOT);
			REQUIRE(frame.module == MODULE_NONE);
			pcs.truncated = (enum truncation)frame.offset;
			break;
		}
		REQUIRE(pcs.count < PCS_MAX);
		pcs.kind[pcs.count] = frame.kind;
		pcs.at[pcs.count] = frame.offset;
		if (frame.module != MODULE_NONE)
			pcs.at[pcs.count] += subject->map.modules.items[frame.module].bias;
		pcs.count++;
	}
	return pcs;
}

struct pcs unwind_recorded(struct subject *subject, struct recorded *recorded, uint32_t max_frames)
{
	struct reader reader = recorded_reader(recorded);

	return pcs_of_node(subject, unwinder_unwind(subject->unwinder, &recorded->regs, &reader, max_frames,
						    NULL));
}
