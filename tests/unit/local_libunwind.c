#define UNW_LOCAL_ONLY
#include "unwind_fixture.h"

#include <libunwind.h>

unsigned int local_libunwind(ucontext_t *context, uint64_t *pcs, unsigned int max)
{
	unw_cursor_t cursor;
	unsigned int count = 0;
	unw_word_t pc;

	if (unw_init_local(&cursor, context) < 0)
		return 0;
	do {
		if (unw_get_reg(&cursor, UNW_REG_IP, &pc) < 0 || pc == 0)
			break;
		pcs[count++] = pc;
	} while (count < max && unw_step(&cursor) > 0);
	return count;
}
