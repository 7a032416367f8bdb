#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/frames.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/tracing.h"

#include "base/units.h"
#include "export/printable.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int parse_address(const char *text, uint64_t *ret_address)
{
	char *end;
	unsigned long long value;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	if (*end || errno == ERANGE)
		return -EINVAL;
	*ret_address = value;
	return 0;
}

static int print_block(const json_t *block, const struct text_style *style)
{
	uint64_t age_ns = answer_duration_ns(block, "age_seconds");
	char size[TEXT_SIZE_MAX], old[UNITS_TEXT_MAX];
	const char *address = answer_text(block, "address");
	const char *domain = answer_text(block, "domain");
	uint64_t thread = answer_number(block, "thread");

	printable_write(stdout, address, strlen(address), false);
	printf(": size=%s, domain=", text_size(size, (double)answer_number(block, "size"), false));
	printable_write(stdout, domain, strlen(domain), false);
	printf(", age=%s, ", units_duration_text(old, age_ns));
	if (thread)
		printf("thread=%" PRIu64 "\n", thread);
	else
		printf("thread unknown\n");
	return frames_print(json_object_get(block, "traceback"), style);
}

static int print_blocks(const struct options *options, const json_t *blocks)
{
	struct source *source = source_new();
	struct text_style style = show_style(options, source);
	const json_t *block;
	size_t i;
	int r = source ? 0 : -ENOMEM;

	json_array_foreach(blocks, i, block) {
		if (r == 0)
			r = print_block(block, &style);
	}
	source_free(source);
	return r == 0 ? show_finish() : fail_memory();
}

static int find_block(struct session *session, const struct options *options, pid_t pid, uint64_t address)
{
	char what[96], text[32];
	json_t *reply, *blocks;
	int r, shown;

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	snprintf(what, sizeof(what), "cannot find the block of %d that holds %s", (int)pid, text);
	r = session_call(session, what, "FindBlock", json_pack("{s:i, s:s}", "pid", (int)pid, "address", text),
			 &reply);
	if (r != EXIT_DONE)
		return r;
	blocks = json_object_get(reply, "blocks");
	if (json_array_size(blocks) == 0)
		r = fail("no block of %d that is known and live holds %s: it was freed, or allocated before the "
			 "attach, or is no heap memory; 'allocwatch run' traces from the start", (int)pid, text);
	if (options_have(options, OPTION(JSON)))
		shown = show_json(json_incref(reply));
	else
		shown = print_blocks(options, blocks);
	json_decref(reply);
	return r == EXIT_DONE ? shown : r;
}

int cmd_block(const struct options *options, int argc, char **argv)
{
	struct session session;
	uint64_t address;
	pid_t pid;
	int r = tracing_pid("block", argv[0], &pid);

	(void)argc;
	if (r != EXIT_DONE)
		return r;
	if (parse_address(argv[1], &address) < 0)
		return fail_usage("block", "'%s' is no address: 0x and hexadecimal digits are expected", argv[1]);
	r = session_open(options, &session);
	if (r != EXIT_DONE)
		return r;
	r = find_block(&session, options, pid, address);
	session_close(&session);
	return r;
}
