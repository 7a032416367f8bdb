#include "arch/resident.h"

#include "arch/arch.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

/* What x86_64_handler.S takes for granted. */
_Static_assert(sizeof(struct resident_header) == 120, "HEADER_SIZE");
_Static_assert(offsetof(struct resident_header, next_area) == 16, "NEXT_AREA");
_Static_assert(offsetof(struct resident_header, entry_count) == 24, "ENTRY_COUNT");
_Static_assert(offsetof(struct resident_header, area_size) == 28, "AREA_SIZE");
_Static_assert(offsetof(struct resident_header, old_handler) == 32, "OLD_HANDLER");
_Static_assert(offsetof(struct resident_header, old_flags) == 40, "OLD_FLAGS");
_Static_assert(offsetof(struct resident_header, old_restorer) == 48, "OLD_RESTORER");
_Static_assert(offsetof(struct resident_header, chain_mask) == 64, "CHAIN_MASK");
_Static_assert(offsetof(struct resident_header, table_offset) == 72, "TABLE_OFFSET");
_Static_assert(offsetof(struct resident_entry, slot) == 8, "ENTRY_SLOT");
_Static_assert(sizeof(struct resident_entry) == 32, "ENTRY_SIZE");
_Static_assert(SYS_rt_sigaction == 13 && SYS_rt_sigprocmask == 14 && SYS_rt_sigreturn == 15 && SYS_getpid == 39 && SYS_gettid == 186 &&
	       SYS_tgkill == 234 && SYS_rt_tgsigqueueinfo == 297, "NR_");

extern const uint8_t x86_64_resident_code[], x86_64_resident_restorer[], x86_64_resident_end[];

static uint32_t offset_in_code(const uint8_t *label)
{
	return (uint32_t)((uintptr_t)label - (uintptr_t)x86_64_resident_code);
}

struct resident_code resident_code(void)
{
	return (struct resident_code){
		.bytes = x86_64_resident_code,
		.length = offset_in_code(x86_64_resident_end),
		.handler = sizeof(struct resident_header),
		.restorer = (uint32_t)sizeof(struct resident_header) + offset_in_code(x86_64_resident_restorer),
	};
}

int resident_layout(uint32_t size, bool is_main, struct resident_header *ret_header)
{
	struct resident_header header = {.area_size = size & ~7u};
	uint32_t room;

	header.table_offset = sizeof(header);
	if (is_main)
		header.table_offset += (resident_code().length + 15) & ~15u;
	room = header.area_size > header.table_offset ? header.area_size - header.table_offset : 0;
	header.entry_capacity = room / (sizeof(struct resident_entry) + ARCH_SLOT_SIZE);
	if (header.entry_capacity == 0)
		return -ENOSPC;
	header.slots_offset =
		header.table_offset + header.entry_capacity * (uint32_t)sizeof(struct resident_entry);
	memcpy(header.magic, RESIDENT_MAGIC, RESIDENT_MAGIC_SIZE);
	*ret_header = header;
	return 0;
}
