#include "cli/snap.h"

#include "base/units.h"
#include "model/snapshot_name.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define DIGITS "0123456789"
#define UNIT_MAX 256

static int parse_pid(const char *text, size_t len, pid_t *ret_pid)
{
	char digits[16];
	int64_t value;

	if (len == 0 || len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (units_parse_number(digits, 1, INT_MAX, &value) < 0)
		return -EINVAL;
	*ret_pid = (pid_t)value;
	return 0;
}

int snap_parse_pid(const char *text, pid_t *ret_pid)
{
	return parse_pid(text, strlen(text), ret_pid);
}

static bool is_id(const char *text)
{
	size_t len = strlen(text);

	return len > 1 && len < 20 && text[0] == 's' && strspn(text + 1, DIGITS) == len - 1;
}

/* As systemd.unit(5) has them.  What begins as a number is meant as a PID, unless a suffix says that it is a unit. */
static bool is_unit(const char *text, const char *colon)
{
	static const char letters[] = SNAPSHOT_NAME_CHARACTERS ":\\@";
	size_t len = (size_t)(colon - text);

	if (len == 0 || len >= UNIT_MAX || text[0] == '-' || strspn(text, letters) < len)
		return false;
	return !strchr(DIGITS, text[0]) || memchr(text, '.', len);
}

static int parse_named(const char *text, const char *colon, struct snap *ret_snap, const char **ret_reason)
{
	struct snap snap = { .kind = SNAP_NAMED, .text = text };

	if (parse_pid(text, (size_t)(colon - text), &snap.pid) < 0 && !is_unit(text, colon)) {
		*ret_reason = "before the : a PID or a unit's name is expected";
		return -EINVAL;
	}
	if (!snapshot_name_is_valid(colon + 1)) {
		*ret_reason = "a snapshot's name consists of letters, digits, '.', '_' and '-'";
		return -EINVAL;
	}
	*ret_snap = snap;
	return 0;
}

int snap_parse(const char *text, struct snap *ret_snap, const char **ret_reason)
{
	struct snap snap = { .text = text };
	const char *colon;

	if (strchr(text, '/')) {
		snap.kind = SNAP_FILE;
	} else if ((colon = strrchr(text, ':'))) {
		return parse_named(text, colon, ret_snap, ret_reason);
	} else if (is_id(text)) {
		snap.kind = SNAP_ID;
	} else if (snap_parse_pid(text, &snap.pid) == 0) {
		snap.kind = SNAP_PID;
	} else {
		*ret_reason = "expected a PID, a kept snapshot's id such as s17, PID:NAME, or a file with "
			      "a / in its name such as ./FILE";
		return -EINVAL;
	}
	*ret_snap = snap;
	return 0;
}
