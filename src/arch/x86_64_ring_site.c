/* Sites of the ring engine, and what the routines' assembly takes for granted. */
#include "arch/ring_code.h"

#include "ring/layout.h"

#include <assert.h>
#include <cpuid.h>
#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

extern const uint8_t x86_64_ring_code[] __attribute__((visibility("hidden")));
extern const uint8_t x86_64_ring_return[] __attribute__((visibility("hidden")));
extern const uint8_t x86_64_ring_out[] __attribute__((visibility("hidden")));
extern const uint8_t x86_64_ring_hook[] __attribute__((visibility("hidden")));
extern const uint8_t x86_64_ring_exec[] __attribute__((visibility("hidden")));
extern const uint8_t x86_64_ring_unmap[] __attribute__((visibility("hidden")));
extern const uint8_t x86_64_ring_protect[] __attribute__((visibility("hidden")));
extern const uint8_t x86_64_ring_advise[] __attribute__((visibility("hidden")));
extern const uint8_t x86_64_ring_sample[] __attribute__((visibility("hidden")));
extern const uint8_t x86_64_ring_sample_return[] __attribute__((visibility("hidden")));
extern const uint8_t x86_64_ring_end[] __attribute__((visibility("hidden")));

/* Of a site: as offsets from the routines' start, and all others from the piece's own. */
struct piece {
	uint32_t start;
	uint32_t kept, flags;                  /* behind the instructions that keep registers, and flags */
	uint32_t ring, site, sp, caller;       /* behind the words that the site is told; 0: it has none */
	uint32_t end;
};
enum { PASS_FREE, PASS_RETURN, PASS_FIRST, PASS_SECOND, PASS_TIMES, PASS_RESIZE, PIECES };
extern const struct piece x86_64_ring_pieces[PIECES] __attribute__((visibility("hidden")));

#define AT(type, member, offset) _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)

_Static_assert(sizeof(struct ring_code_header) == 64, "the routines lie behind the header");
_Static_assert(RING_CODE_SIZE == 65536, "the switch lies behind the area");
_Static_assert(offsetof(struct ring_switch, ring) == 0, "the ring's address");
AT(ring_control, size, 16);
AT(ring_control, key, 24);
AT(ring_control, wait_ticks, 32);
AT(ring_control, state, 40);
AT(ring_control, may_yield, 44);
AT(ring_control, thread_offset, 48);
AT(ring_control, thread_mask, 56);
AT(ring_control, stack_offset, 64);
AT(ring_control, main_stack, 72);
AT(ring_control, main_stack_end, 80);
AT(ring_control, unknown_length, 88);
AT(ring_control, has_holes, 92);
AT(ring_control, head, 128);
AT(ring_control, tail, 192);
AT(ring_control, lost, 256);
AT(ring_control, waits, 264);
AT(ring_control, lengths, 69632);
AT(ring_head, length, 8);
AT(ring_head, site, 12);
AT(ring_head, thread, 16);
AT(ring_head, sp, 24);
AT(ring_control, sample_bytes, 96);
AT(ring_control, hook_served, 104);
AT(ring_control, draws, 272);
AT(ring_control, hook_left, 280);
AT(ring_control, hook_waits, 288);
AT(ring_control, logarithms, 512);
AT(ring_control, slots, 4096);
AT(ring_control, draws_of, 135168);
AT(ring_control, filter, 2494464);
AT(ring_control, families, 112);
AT(ring_draw, countdown, 0);
AT(ring_draw, sp, 8);
AT(ring_draw, return_address, 16);
AT(ring_draw, site, 24);
AT(ring_draw, fate, 28);
AT(ring_draw, out, 32);
AT(ring_control, shapes, 2691072);
AT(ring_shape, fixed_size, 0);
AT(ring_shape, size_argument, 8);
AT(ring_shape, count_argument, 9);
AT(ring_shape, old_argument, 10);
AT(ring_shape, out_argument, 11);
AT(ring_shape, family, 12);
AT(ring_slot, thread, 0);
AT(ring_slot, sp, 8);
AT(ring_call_within, stack_length, 64);
AT(ring_call_within, first_length, 68);
AT(ring_call_within, stack_start, 72);
AT(ring_call_within, other_start, 80);
AT(ring_call_within, saved, 88);
AT(ring_call_within, stack, 136);
AT(ring_call, return_address, 32);
AT(ring_call, args, 40);
AT(ring_return, time, 32);
AT(ring_return, result, 40);
AT(ring_return, stack_length, 48);
AT(ring_return, first_length, 52);
AT(ring_return, other_start, 56);
AT(ring_return, saved, 64);
AT(ring_return, length_key, 112);
AT(ring_return, pointer_words, 116);
AT(ring_return, stack, 120);
_Static_assert(RING_ON == 1 && RING_STALLED == 2 && RING_OPEN == 1 && RING_COMMITTED == 2, "states and marks");
_Static_assert(RING_CONTROL_SIZE == 2756608 && RING_SLOTS == 1024 && RING_WITHIN_MAX == 65536 && RING_UNIT == 64 &&
	       RING_KEY_SHIFT == 24, "sizes");
_Static_assert(RING_LENGTHS >> (32 - RING_KEY_SET_SHIFT) == RING_LENGTHS_WAYS && RING_LENGTHS_WAYS == 2 && RING_KEY_TAG_SHIFT == 3,
	       "sets of entries");
_Static_assert(sizeof(struct ring_slot) == 64 && RING_ALLOCATES == 0x40000000, "slots");
_Static_assert(RING_BELOW_SHIFT == 17 && RING_BELOW_MAX == 63, "what a site says of its stack");
_Static_assert(sizeof(struct ring_draw) == 64 && RING_DRAWS == 4096 && RING_DRAWS_SHIFT == 12 && RING_DRAW_TAG == 0x8000 &&
	       RING_DRAW_TAG_SHIFT == 48 && RING_LOGARITHMS_SHIFT == 7 && RING_LOGARITHM_BITS == 16 &&
	       RING_FILTER_SIZE == 3 << 16 && RING_FILTER_LOW == 8 && RING_FILTER_HIGH == 24 && RING_FILTER_FULL == 0xc0, "sampling");
_Static_assert(RING_UNSAMPLED == 0x20000000 && RING_RESIZES == 0x10000000 && RING_EXECUTES == 1u << 28 && RING_COUNT_SHIFT == 26 &&
	       RING_SIZE_SHIFT == 24 && RING_NO_ARGUMENT == 3 && RING_WINDOW_NO_ARGUMENT == RING_NO_ARGUMENT && RING_TOLD == 3 &&
	       RING_NESTED == 0x800000 && RING_SAMPLED == 1 && RING_OLD_ALONE == 2,
	       "calls that are sampled");
_Static_assert(sizeof(struct ring_shape) == 16 && RING_SHAPES == 4096 && RING_FAMILIES == 9, "shapes");
_Static_assert(RING_FIRST_STACK_ROOM == 64 << 20, "what is below the first stack");
_Static_assert((PROT_READ | PROT_WRITE | PROT_EXEC) == 7, "whatever a page may be used for");
_Static_assert(SYS_gettid == 186 && SYS_futex == 202 && SYS_process_vm_readv == 310 && FUTEX_WAIT == 0,
	       "what the kernel is asked");
_Static_assert(RING_KEY_FACTOR == 0x9e3779b97f4a7c15ULL, "the hash");

struct ring_code ring_code(void)
{
	uint32_t length = (uint32_t)((uintptr_t)x86_64_ring_end - (uintptr_t)x86_64_ring_code);

	return (struct ring_code){
		.bytes = x86_64_ring_code,
		.length = length,
		.sites = (uint32_t)(sizeof(struct ring_code_header) + length + 15) & ~15U,
	};
}

struct code {
	uint8_t *out;
	uint32_t length;
	uint64_t at;
};

static void put(struct code *code, const void *bytes, size_t len)
{
	memcpy(code->out + code->length, bytes, len);
	code->length += (uint32_t)len;
}

/* A jump, or a call with its opcode: within an area, or to a window that is in reach since the other way was. */
static bool put_branch(struct code *code, uint8_t opcode, uint64_t target)
{
	uint8_t bytes[ARCH_JUMP_SIZE];

	if (!arch_put_jump(code->at + code->length, target, bytes))
		return false;
	bytes[0] = opcode;
	put(code, bytes, sizeof(bytes));
	return true;
}

static uint32_t site_word(const struct ring_window *window)
{
	uint32_t word = window->number | (window->is_return ? RING_RETURN : window->sp_below / 8 << RING_BELOW_SHIFT);

	if (window->is_return)
		return word | (window->stored ? RING_STORED : 0);
	if (window->waits == RING_WAITS_EXEC)
		return word | RING_EXECUTES;
	if (!window->allocates)
		return word | (uint32_t)(window->old_argument & 3) << RING_SIZE_SHIFT;
	return word | RING_ALLOCATES | (window->resizes ? RING_RESIZES : 0) |
	       (window->told ? RING_TOLD : (uint32_t)(window->size_argument & 3)) << RING_SIZE_SHIFT |
	       (uint32_t)(window->count_argument & 3) << RING_COUNT_SHIFT;
}

/* Not in 64-bit mode of the first processors that had this. */
static bool has_lahf(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & bit_LAHF_LM);
}

/* The piece that passes over calls that are not sampled, or NULL: there is none for it. */
static const struct piece *piece_of(const struct ring_window *window)
{
	bool times = window->count_argument != RING_WINDOW_NO_ARGUMENT;

	/* A return that may be of any of the families. */
	if (!window->sampled || window->told || window->waits != RING_WAITS_NOT || (window->is_return && window->described))
		return NULL;
	if (window->is_return)
		return &x86_64_ring_pieces[PASS_RETURN];
	if (!window->allocates)
		return window->old_argument == 0 ? &x86_64_ring_pieces[PASS_FREE] : NULL;
	if (!has_lahf())
		return NULL;
	if (window->resizes)
		return window->size_argument == 1 && !times ? &x86_64_ring_pieces[PASS_RESIZE] : NULL;
	if (times)
		return window->size_argument + window->count_argument == 1 ? &x86_64_ring_pieces[PASS_TIMES] : NULL;
	return window->size_argument <= 1 ? &x86_64_ring_pieces[PASS_FIRST + window->size_argument] : NULL;
}

static void set_word(struct code *code, uint32_t end, uint32_t word)
{
	memcpy(code->out + end - sizeof(word), &word, sizeof(word));
}

/* The piece is told where the switch is, what the site's word is and where the function's return address. */
static void put_piece(struct code *code, const struct ring_window *window, raddr area, struct ring_site *site)
{
	const struct piece *piece = piece_of(window);
	uint32_t start = code->length;

	if (!piece)
		return;
	assert(piece->end <= RING_PIECE_MAX);
	put(code, x86_64_ring_code + piece->start, piece->end);
	set_word(code, start + piece->ring, (uint32_t)(area + RING_CODE_SIZE - (code->at + start + piece->ring)));
	if (piece->site != 0) {
		set_word(code, start + piece->site, site_word(window));
		set_word(code, start + piece->sp, window->sp_below);
		set_word(code, start + piece->caller, window->sp_below);
	}
	site->piece = piece->end;
	site->kept = piece->kept;
	site->flags_kept = piece->flags;
}

static const uint8_t *routine_of(const struct ring_window *window)
{
	if (window->waits != RING_WAITS_NOT)
		return window->waits == RING_WAITS_LOADER ? x86_64_ring_hook : x86_64_ring_exec;
	if (window->unmaps == RING_UNMAPS_BY_ADVICE)
		return x86_64_ring_advise;
	if (window->unmaps != RING_UNMAPS_NOT)
		return window->unmaps == RING_UNMAPS ? x86_64_ring_unmap : x86_64_ring_protect;
	if (window->is_return)
		return window->sampled ? x86_64_ring_sample_return : x86_64_ring_return;
	if (window->sampled)
		return x86_64_ring_sample;
	return window->allocates && window->told ? x86_64_ring_out : x86_64_ring_code;
}

/* push %rax; mov $site, %eax; call; pop %rax.  What is pushed is the result; before a jump to another function %rdi, and then
 * %rax means nothing (psABI 3.2.3: no function with a variable number of arguments returns its first one). */
static bool put_record(struct code *code, const struct ring_window *window, raddr area)
{
	const uint8_t push = window->hands_on ? 0x57 : 0x50, pop = push + 8, load = 0xb8;
	uint32_t site = site_word(window);
	uint64_t routine = area + sizeof(struct ring_code_header) + (uintptr_t)routine_of(window) - (uintptr_t)x86_64_ring_code;

	put(code, &push, 1);
	put(code, &load, 1);
	put(code, &site, sizeof(site));
	if (!put_branch(code, 0xe8, routine))
		return false;
	put(code, &pop, 1);
	return true;
}

static int put_run(struct code *code, const struct ring_window *window, uint32_t start, uint32_t end,
		   struct arch_moved *moved, const char **ret_reason)
{
	int r = arch_move(window->text + start, end - start, window->address + start, code->at + code->length,
			  code->out + code->length, moved, ret_reason);

	if (r == 0)
		code->length += moved->length;
	return r;
}

/* The two runs are moved one by one, so each would take a branch into the other for one to the outside. */
static int check_whole(const struct ring_window *window, raddr at, const char **ret_reason)
{
	uint8_t bytes[ARCH_MOVED_MAX];
	struct arch_moved moved;
	int r = arch_move(window->text, window->length, window->address, at, bytes, &moved, ret_reason);

	if (r < 0)
		return r;
	if (window->told && window->number >= RING_SHAPES) {
		*ret_reason = "there are too many that are called in an unusual way";
		return -ENOTSUP;
	}
	if (window->sp_below % 8 != 0 || window->sp_below / 8 > RING_BELOW_MAX || window->number >= RING_VOID) {
		*ret_reason = "it has too much on the stack there";
		return -ENOTSUP;
	}
	if (window->length <= window->record ||
	    arch_moved_to(&moved, window->length, 0, 0, window->record) == ARCH_NOWHERE) {
		*ret_reason = "the place of its record is no instruction";
		return -ENOTSUP;
	}
	return 0;
}

int ring_site_build(const struct ring_window *window, raddr area, raddr at, uint8_t out[RING_SITE_MAX],
		    struct ring_site *ret_site, const char **ret_reason)
{
	uint8_t bytes[RING_SITE_MAX] = { 0 };
	struct code code = { .out = bytes, .at = at };
	struct ring_site site = { .window = window->address, .at = at, .window_length = window->length,
				  .record = window->record, .is_return = window->is_return,
				  .hands_on = window->hands_on,
				  .waits = window->waits, .unmaps = window->unmaps };
	int r = check_whole(window, at, ret_reason);

	if (r == 0)
		r = put_run(&code, window, 0, window->record, &site.moved[0], ret_reason);
	if (r < 0)
		return r;
	put_piece(&code, window, area, &site);
	if (!put_record(&code, window, area)) {
		*ret_reason = "it is out of reach of the routines";
		return -ENOTSUP;
	}
	site.behind = code.length;
	r = put_run(&code, window, window->record, window->length, &site.moved[1], ret_reason);
	if (r < 0)
		return r;
	if (!put_branch(&code, 0xe9, window->address + window->length)) {
		*ret_reason = "it is out of reach of the ring engine's code";
		return -ENOTSUP;
	}
	site.length = code.length;
	memcpy(out, bytes, code.length);
	*ret_site = site;
	return 0;
}

uint64_t ring_site_enter(const struct ring_site *site, uint64_t pc)
{
	uint64_t middle = site->window + site->record;
	uint32_t rest = site->window_length - site->record;

	if (pc == site->window)
		return pc;
	if (pc < middle)
		return arch_moved_to(&site->moved[0], site->record, site->window, site->at, pc);
	if (pc == middle)
		return site->at + site->moved[0].length;
	return arch_moved_to(&site->moved[1], rest, middle, site->at + site->behind, pc);
}

uint64_t ring_site_leave(const struct ring_site *site, uint64_t pc)
{
	uint64_t middle = site->window + site->record;
	uint32_t rest = site->window_length - site->record;

	if (pc - site->at <= site->moved[0].length)
		return arch_moved_from(&site->moved[0], site->record, site->window, site->at, pc);
	return arch_moved_from(&site->moved[1], rest, middle, site->at + site->behind, pc);
}
