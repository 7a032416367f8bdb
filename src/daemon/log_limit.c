#include "daemon/log_limit.h"

unsigned log_limit_rest(struct log_limit *limit, uint64_t now_ns)
{
	unsigned dropped = limit->dropped;

	if (now_ns - limit->begin_ns < LOG_PERIOD_NS)
		return 0;
	*limit = (struct log_limit){ .begin_ns = now_ns };
	return dropped;
}

bool log_limit_pass(struct log_limit *limit, unsigned most)
{
	if (limit->lines < most) {
		limit->lines++;
		return true;
	}
	limit->dropped++;
	return false;
}
