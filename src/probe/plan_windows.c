/* Where there is room for a jump, and what is in its way. */
#include "probe/plan_private.h"

#include "arch/arch.h"

#include <string.h>

/* False: there is none, or the bytes are not in the file. */
static bool set_window(struct plan_window *window, struct elf_code *code, uint64_t vaddr, uint32_t length,
		       uint32_t record)
{
	uint32_t covered = length < ARCH_JUMP_SIZE ? ARCH_JUMP_SIZE : length;
	size_t len;
	const uint8_t *text = elf_code_at(code, vaddr, &len);

	if (!text || covered > len || covered > sizeof(window->text))
		return false;
	*window = (struct plan_window){ .vaddr = vaddr, .length = length, .record = record };
	memcpy(window->text, text, covered);
	return true;
}

/* Bytes from the instruction on. */
static uint32_t room_from(struct elf_code *code, uint64_t end, const struct arch_room *room, uint32_t length)
{
	uint32_t bytes = length + room->behind;
	const uint8_t *text;
	size_t len;

	if (!room->at_end || bytes >= ARCH_JUMP_SIZE)
		return bytes;
	text = elf_code_at(code, end + room->behind, &len);
	return bytes + (text ? arch_padding(text, len, end + room->behind) : 0);
}

/* Whoever debugs the process may have a breakpoint at every instruction that the jump lies over, and at the first of them does no harm.  So
 * the jump lies rather over what is never run. */
void plan_set_exit_window(struct plan_site *site, struct elf_code *code, uint64_t vaddr, uint32_t length,
			  const struct arch_room *room)
{
	uint32_t bytes = room_from(code, vaddr + length, room, length);
	uint32_t before = bytes >= ARCH_JUMP_SIZE ? 0 : room->before;

	if (bytes + before >= ARCH_JUMP_SIZE)
		set_window(&site->window, code, vaddr - before, before + length, before);
}

bool plan_find_entry_window(struct plan_window *window, struct elf_code *code, uint64_t vaddr,
			    const struct arch_function *decoded)
{
	uint32_t offset, sp_below, room = arch_entry_room(decoded, &offset, &sp_below), length;
	size_t len;
	const uint8_t *text = elf_code_at(code, vaddr + offset, &len);

	length = text && room <= len ? arch_window_length(text, room, vaddr + offset) : 0;
	if (length == 0 || !set_window(window, code, vaddr + offset, length, 0))
		return false;
	window->sp_below = sp_below;
	return true;
}

void plan_set_entry_window(struct plan_site *site, struct elf_code *code, uint64_t vaddr,
			   const struct arch_function *decoded)
{
	if (site->kinds != SITE_ENTRY || !plan_find_entry_window(&site->window, code, vaddr, decoded))
		site->window.length = 0;
}

/* --- what windows may be in the way of, and what may be in theirs --- */

static bool covers(const struct plan_window *window, uint64_t vaddr)
{
	uint32_t length = window->length < ARCH_JUMP_SIZE ? ARCH_JUMP_SIZE : window->length;

	return window->length > 0 && vaddr > window->vaddr && vaddr - window->vaddr < length;
}

static bool overlap(const struct plan_window *a, const struct plan_window *b)
{
	return a->length > 0 && b->length > 0 && (a->vaddr == b->vaddr || covers(a, b->vaddr) || covers(b, a->vaddr));
}

/* Another function's start, another window, or a place that a breakpoint may be set at. */
static bool is_in_the_way(const struct plan *plan, const struct plan_site *site)
{
	for (size_t i = 0; i < plan->functions.count; i++) {
		if (covers(&site->window, plan->functions.items[i].vaddr))
			return true;
	}
	for (size_t i = 0; i < plan->sites.count; i++) {
		const struct plan_site *other = &plan->sites.items[i];

		if (other != site && (overlap(&site->window, &other->window) || covers(&site->window, other->vaddr) ||
				      (site->window.length > 0 && other->vaddr == site->window.vaddr)))
			return true;
	}
	return false;
}

static void drop_window_at(void *context, uint64_t target)
{
	struct plan *plan = context;

	for (size_t i = 0; i < plan->sites.count; i++) {
		if (covers(&plan->sites.items[i].window, target))
			plan->sites.items[i].window.length = 0;
	}
}

/* Parts of a function that the compiler put elsewhere may come back to anywhere. */
static void drop_entered(void *context, const uint8_t *bytes, size_t len, uint64_t vaddr)
{
	struct plan *plan = context;
	uint64_t start = UINT64_MAX, end = 0;

	for (size_t i = 0; i < plan->sites.count; i++) {
		const struct plan_window *window = &plan->sites.items[i].window;

		if (window->length == 0)
			continue;
		if (window->vaddr < start)
			start = window->vaddr;
		if (window->vaddr + ARCH_WINDOW_MAX > end)
			end = window->vaddr + ARCH_WINDOW_MAX;
	}
	if (end > 0)
		arch_each_branch_into(bytes, len, vaddr, start, end, drop_window_at, plan);
}

void plan_check_windows(struct plan *plan, struct elf_code *code)
{
	for (size_t i = 0; i < plan->sites.count; i++) {
		if (is_in_the_way(plan, &plan->sites.items[i]))
			plan->sites.items[i].window.length = 0;
	}
	elf_code_each_segment(code, drop_entered, plan);
}
