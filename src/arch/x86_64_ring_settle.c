/* Threads that are stopped while a record of theirs is written. */
#include "arch/ring_code.h"

#include <string.h>
#include <sys/user.h>

extern const uint8_t x86_64_ring_code[] __attribute__((visibility("hidden")));
extern const uint8_t x86_64_ring_end[] __attribute__((visibility("hidden")));

#define STRETCHES 11
/* Of a site, behind its first instructions and its piece: push, mov, call, pop (put_record in x86_64_ring_site.c). */
#define AT_LOAD 1
#define AT_CALL 6
#define AT_POP 11
#define RETURN_MAX 2                   /* a plain return instruction, and one with a prefix */
#define ZERO_FLAG 0x40
#define KEPT_BELOW 11                  /* words */
/* Where a piece keeps them, counted from the stack pointer. */
#define KEPT_RCX (RING_CODE_BELOW - 1)
#define KEPT_RDX (RING_CODE_BELOW - 2)
#define KEPT_RAX (RING_CODE_BELOW - 3)
#define KEPT_FLAGS (RING_CODE_BELOW - 4)
#define OVERFLOW_FLAG 0x800
#define AH_FLAGS 0xd5                  /* of lahf */

/* Of the routines, as offsets from their start. */
extern const struct stretch {
	uint32_t start;
	uint32_t exchanged;                    /* behind the instruction that reserves: done, when the zero flag says so */
	uint32_t reserved;                     /* done; rax has the position, and from `noted` on r10 */
	uint32_t noted;
	uint32_t kept;                         /* from here on it is on the stack, KEPT_BELOW the site's return address */
	uint32_t committed, end;
} x86_64_ring_stretches[STRETCHES] __attribute__((visibility("hidden")));

/* The registers that a routine keeps below its return address, and the flags above them. */
static unsigned long long *kept(struct user_regs_struct *regs, unsigned number)
{
	unsigned long long *const all[] = { &regs->eflags, &regs->rcx, &regs->rdx, &regs->rsi, &regs->rdi,
					    &regs->r8, &regs->r9, &regs->r10, &regs->r11 };

	return number < sizeof(all) / sizeof(all[0]) ? all[number] : NULL;
}

/* What lahf and seto have made of them. */
static void restore_flags(struct user_regs_struct *regs, uint64_t word)
{
	regs->eflags &= ~(unsigned long long)(AH_FLAGS | OVERFLOW_FLAG);
	regs->eflags |= (word >> 8 & AH_FLAGS) | (word & 1 ? OVERFLOW_FLAG : 0);
}

/* at: of the site's return address among the words. */
static enum ring_progress progress_at(uint64_t offset, const struct user_regs_struct *regs, const uint64_t *words, unsigned at,
				      struct ring_unfinished *ret)
{
	for (unsigned i = 0; i < STRETCHES; i++) {
		const struct stretch *stretch = &x86_64_ring_stretches[i];

		if (offset < stretch->start || offset >= stretch->end)
			continue;
		if (offset >= stretch->committed)
			return RING_WRITTEN;
		ret->reserved = offset >= stretch->reserved ||
				(offset == stretch->exchanged && (regs->eflags & ZERO_FLAG));
		ret->position = offset >= stretch->noted ? regs->r10 : regs->rax;
		if (offset >= stretch->kept)
			ret->position = at >= KEPT_BELOW ? words[at - KEPT_BELOW] : 0;
		ret->length = (uint32_t)regs->rdx;
	}
	return RING_NOT_WRITTEN;
}

/* at: of the site's return address among the words; what lies below it was pushed, and what was not is unchanged. */
static void leave_routine(struct user_regs_struct *regs, const uint64_t *words, unsigned at)
{
	unsigned long long *place;

	for (unsigned i = 0; i < at && (place = kept(regs, i)); i++)
		*place = words[at - 1 - i];
	regs->rsp += 8 * (at + 1);
}

/* words: with those below the stack pointer, where all that is kept stays until the piece is left. */
static void leave_piece(const struct ring_site *site, struct user_regs_struct *regs, const uint64_t *words)
{
	uint64_t offset = regs->rip - ring_site_before(site);

	if (offset < site->kept)
		return;
	regs->rcx = words[KEPT_RCX];
	regs->rdx = words[KEPT_RDX];
	if (site->flags_kept == 0)
		return;
	regs->rax = words[KEPT_RAX];
	if (offset >= site->flags_kept)
		restore_flags(regs, words[KEPT_FLAGS]);
}

/* What the site has pushed is at the top of the stack. */
static void leave_site(const struct ring_site *site, struct user_regs_struct *regs, uint64_t pushed)
{
	if (site->hands_on)
		regs->rdi = pushed;
	else
		regs->rax = pushed;
	regs->rsp += 8;
}

static void go_to(const struct ring_site *site, enum ring_progress progress, struct user_regs_struct *regs,
		  uint64_t caller)
{
	uint32_t rest = site->window_length - site->record;

	regs->rip = progress == RING_WRITTEN ? site->at + site->behind : ring_site_before(site);
	if (progress != RING_WRITTEN || !site->is_return || site->hands_on || rest > RETURN_MAX)
		return;
	regs->rip = caller;
	regs->rsp += 8;
}

static bool is_in_piece(const struct ring_site *site, uint64_t pc)
{
	uint64_t before = ring_site_before(site);

	return pc > before && pc <= before + site->piece;
}

/* In the site itself.  `pushed`: whether its register is on the stack. */
static enum ring_progress progress_in_site(const struct ring_site *site, uint64_t pc, bool *ret_pushed)
{
	uint64_t middle = ring_site_before(site) + site->piece;

	*ret_pushed = pc == middle + AT_LOAD || pc == middle + AT_CALL || pc == middle + AT_POP;
	if (pc == middle + AT_POP || pc == site->at + site->behind)
		return RING_WRITTEN;
	return *ret_pushed || is_in_piece(site, pc) ? RING_NOT_WRITTEN : RING_ELSEWHERE;
}

uint64_t ring_site_back(const struct ring_site *site)
{
	return ring_site_before(site) + site->piece + AT_POP;
}

uint64_t ring_site_before(const struct ring_site *site)
{
	return site->at + site->moved[0].length;
}

void ring_site_pass(const struct ring_site *site, uint64_t caller, struct user_regs_struct *regs)
{
	if (caller != 0)
		go_to(site, RING_WRITTEN, regs, caller);
	else
		regs->rip = site->at + site->behind;
}

bool ring_site_is_extra_step(const struct ring_site *site, struct user_regs_struct *regs)
{
	uint64_t before = ring_site_before(site);

	if (regs->rip == site->at + site->length - ARCH_JUMP_SIZE) {
		regs->rip = site->window + site->window_length;
		return false;
	}
	return regs->rip == site->at || (regs->rip > before && regs->rip <= site->at + site->behind);
}

enum ring_progress ring_site_settle(const struct ring_site *site, raddr area,
				    const uint64_t words[RING_CODE_BELOW + RING_CODE_WORDS], unsigned at, struct user_regs_struct *regs, struct ring_unfinished *ret)
{
	uint64_t code = area + sizeof(struct ring_code_header);
	struct ring_unfinished unfinished = { .reserved = false };
	enum ring_progress progress;
	bool pushed = true;

	words += RING_CODE_BELOW;
	if (regs->rip - code < (uintptr_t)x86_64_ring_end - (uintptr_t)x86_64_ring_code) {
		if (at + 2 >= RING_CODE_WORDS || words[at] != ring_site_back(site))
			return RING_ELSEWHERE;
		progress = progress_at(regs->rip - code, regs, words, at, &unfinished);
		leave_routine(regs, words, at);
		words += at + 1;
	} else {
		progress = progress_in_site(site, regs->rip, &pushed);
		if (progress == RING_ELSEWHERE)
			return progress;
		if (is_in_piece(site, regs->rip))
			leave_piece(site, regs, words - RING_CODE_BELOW);
	}
	if (pushed)
		leave_site(site, regs, *words++);
	go_to(site, progress, regs, *words);
	*ret = unfinished;
	return progress;
}
