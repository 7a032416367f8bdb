#include "fetch/fetch.h"

#include <errno.h>

/* Built without libdebuginfod. */
int fetch_debuginfo(const struct fetch_request *request, const char *folder, bool (*cancelled)(void))
{
	(void)request, (void)folder, (void)cancelled;
	return -ENOSYS;
}
