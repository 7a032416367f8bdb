#define _GNU_SOURCE              /* vasprintf */
#include "base/reason.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int reason_set(char **ret_reason, int error, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(ret_reason, format, args);
	va_end(args);
	if (n >= 0)
		return error;
	*ret_reason = NULL;
	return -ENOMEM;
}
