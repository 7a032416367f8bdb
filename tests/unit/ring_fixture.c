#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ring_fixture.h"

#include "ring/layout.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096UL
#define REQUIRE_(claim) \
	do { \
		if (!(claim)) { \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #claim); \
			abort(); \
		} \
	} while (0)

static uint8_t *map_near(const void *near)
{
	uintptr_t base = (uintptr_t)near & ~(PAGE - 1);

	for (uintptr_t distance = 1 << 24; distance < 1 << 30; distance += 1 << 24) {
		const uintptr_t tries[] = { base + distance, base - distance };

		for (unsigned i = 0; i < 2; i++) {
			void *got = mmap((void *)tries[i], RING_CODE_SIZE + PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

			if (got != MAP_FAILED)
				return got;
		}
	}
	return NULL;
}

void ring_area_map(struct ring_area *area, const void *near)
{
	struct ring_code code = ring_code();

	area->start = map_near(near);
	REQUIRE_(area->start);
	memcpy(area->start + sizeof(struct ring_code_header), code.bytes, code.length);
	area->used = code.sites;
	area->ring_switch = (void *)(area->start + RING_CODE_SIZE);
	REQUIRE_(madvise(area->ring_switch, PAGE, MADV_WIPEONFORK) == 0);
}

void ring_area_record(struct ring_area *area, struct ring *ring)
{
	__atomic_store_n(&area->ring_switch->ring, (uintptr_t)(ring ? ring_control(ring) : NULL), __ATOMIC_SEQ_CST);
}

void ring_area_unmap(struct ring_area *area)
{
	munmap(area->start, RING_CODE_SIZE + PAGE);
}

static void make_writable(uint8_t *at)
{
	uintptr_t start = (uintptr_t)at & ~(PAGE - 1);

	REQUIRE_(mprotect((void *)start, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
}

static void put_site(struct ring_area *area, const struct ring_window *window, struct ring_patches *patches)
{
	struct ring_patch *patch = &patches->items[patches->count++];
	uint8_t *at = area->start + area->used, code[RING_SITE_MAX], jump[ARCH_JUMP_SIZE];
	const char *reason = "none";
	int r = ring_site_build(window, (uintptr_t)area->start, (uintptr_t)at, code, &patch->site, &reason);

	if (r < 0)
		fprintf(stderr, "%s\n", reason);
	REQUIRE_(r == 0 && patches->count < RING_PATCHES_MAX);
	memcpy(at, code, patch->site.length);
	area->used += (patch->site.length + 15) & ~15U;
	patch->at = (uint8_t *)window->address;
	patch->is_return = window->is_return;
	memcpy(patch->text, patch->at, sizeof(patch->text));
	REQUIRE_(arch_put_jump(window->address, (uintptr_t)at, jump));
	make_writable(patch->at);
	memcpy(patch->at, jump, sizeof(jump));
}

/* Whole instructions from the start on, that a jump fits into: their length is found by moving more and more bytes. */
static uint32_t entry_length(const uint8_t *text, uint32_t room)
{
	uint8_t out[ARCH_MOVED_MAX];
	struct arch_moved moved;
	const char *reason = "its entry has no room";

	for (uint32_t length = ARCH_JUMP_SIZE; length <= room; length++) {
		if (arch_move(text, length, (uintptr_t)text, (uintptr_t)text + (1 << 24), out, &moved, &reason) == 0)
			return length;
	}
	fprintf(stderr, "%s\n", reason);
	return 0;
}

void ring_patch_function(struct ring_area *area, void *function, size_t size, bool returns, uint32_t number,
			 struct ring_patches *patches)
{
	struct arch_function decoded;
	const char *reason = "none";
	uint8_t *text = malloc(size);
	uint32_t room, offset;
	struct ring_window window = { .address = (uintptr_t)function, .text = function, .number = number,
				      .count_argument = RING_WINDOW_NO_ARGUMENT, .sampled = area->sampled,
				      .described = area->described };

	REQUIRE_(text && arch_decode_function(function, size, (uintptr_t)function, &decoded, &reason) == 0);
	memcpy(text, function, size);
	room = arch_entry_room(&decoded, &offset, &window.sp_below);
	window.address += offset;
	window.text = (const uint8_t *)window.address;
	window.length = entry_length((const uint8_t *)window.address, room);
	/* Where a sanitizer's own malloc has no room there: no uprobe comes to this process. */
	if (window.length == 0) {
		window.address = (uintptr_t)function;
		window.text = function;
		window.sp_below = 0;
		window.length = entry_length(function, decoded.entry_room);
	}
	window.allocates = returns && area->notes_pending;
	window.told = window.allocates && area->told;
	if (window.allocates && area->form) {
		window.size_argument = area->form->size_argument;
		window.count_argument = area->form->count_argument;
		window.resizes = area->form->resizes;
	}
	REQUIRE_(window.length > 0);
	put_site(area, &window, patches);
	window.sp_below = 0;
	for (size_t i = 0; returns && i < decoded.exits.count; i++) {
		const struct arch_exit *exit = &decoded.exits.items[i];
		uint32_t padding = exit->room.at_end ? arch_padding((uint8_t *)function + size, 16,
								    (uintptr_t)function + size) : 0;

		window.record = exit->room.before;
		window.address = exit->address - window.record;
		window.text = text + (window.address - (uintptr_t)function);
		window.length = window.record + exit->length;
		window.number = number + 1 + (uint32_t)i;
		window.is_return = true;
		window.stored = area->stored;
		window.allocates = window.told = false;
		REQUIRE_(window.length + exit->room.behind + padding >= ARCH_JUMP_SIZE);
		put_site(area, &window, patches);
	}
	arch_function_fini(&decoded);
	free(text);
}

void ring_patch_hook(struct ring_area *area, void *function, enum ring_waits waits, uint32_t number, struct ring_patches *patches)
{
	const struct ring_window window = {
		.address = (uintptr_t)function, .text = function, .number = number, .waits = waits,
		.length = arch_empty_function(function, 16, (uintptr_t)function), .count_argument = RING_WINDOW_NO_ARGUMENT,
	};

	REQUIRE_(window.length > 0);
	put_site(area, &window, patches);
}

void ring_patch_unmap(struct ring_area *area, void *function, enum ring_unmaps by, uint32_t number, struct ring_patches *patches)
{
	const struct ring_window window = {
		.address = (uintptr_t)function, .text = function, .number = number, .unmaps = by,
		.length = entry_length(function, ARCH_JUMP_SIZE), .count_argument = RING_WINDOW_NO_ARGUMENT,
	};

	REQUIRE_(window.length > 0);
	put_site(area, &window, patches);
}

void ring_patch_symbol(struct ring_area *area, const char *name, bool returns, uint32_t number,
		       struct ring_patches *patches)
{
	void *function = dlsym(RTLD_DEFAULT, name);
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	REQUIRE_(function && dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol);
	ring_patch_function(area, function, symbol->st_size, returns, number, patches);
}

void ring_unpatch(struct ring_patches *patches)
{
	while (patches->count > 0) {
		struct ring_patch *patch = &patches->items[--patches->count];

		memcpy(patch->at, patch->text, sizeof(patch->text));
	}
}
