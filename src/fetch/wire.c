#include "fetch/wire.h"

#include <errno.h>
#include <string.h>

int fetch_check_request(const struct fetch_request *request, size_t len)
{
	if (len != sizeof(*request) || request->identity.as_other > 1 ||
	    request->identity.group_count > WIRE_GROUPS_MAX ||
	    request->build_id_len < FETCH_BUILD_ID_MIN || request->build_id_len > FETCH_BUILD_ID_MAX ||
	    request->silence_s == 0 || request->time_s == 0 || request->bytes_max == 0 ||
	    !memchr(request->urls, '\0', sizeof(request->urls)))
		return -EBADMSG;
	return 0;
}

int fetch_check_answer(const struct fetch_answer *answer, size_t len, int fd)
{
	return len == sizeof(*answer) && answer->result <= 0 && (answer->result == 0) == (fd >= 0) ? 0 : -EBADMSG;
}
