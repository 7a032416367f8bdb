#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/tracing.h"

#include "base/strtab.h"
#include "base/units.h"
#include "export/printable.h"
#include "model/traceback.h"

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

static const char *text_or_null(const json_t *frame, const char *key)
{
	const char *text = answer_text(frame, key);

	return *text ? text : NULL;
}

/* A frame of the answer, with tracemalloc's filename made from it. */
static int take_frame(const json_t *json, struct strtab *strings, struct text_frame *ret_frame)
{
	struct traceback_frame frame = {
		.file = text_or_null(json, "file"),
		.line = (uint32_t)answer_number(json, "line"),
		.function = text_or_null(json, "function"),
		.object = answer_text(json, "object"),
		.offset = answer_number(json, "offset"),
		.inlined = answer_true(json, "inlined"),
	};
	int64_t name = traceback_frame_name(&frame, strings);

	if (name < 0)
		return (int)name;
	ret_frame->name = strtab_get(strings, (uint32_t)name);
	ret_frame->function = frame.function;
	ret_frame->line = frame.line;
	ret_frame->has_line = frame.file != NULL;
	return 0;
}

static int print_traceback(const json_t *traceback, const struct text_style *style)
{
	size_t count = json_array_size(traceback);
	struct text_frame *frames = calloc(count + 1, sizeof(*frames));
	struct strtab *strings = strtab_new();
	int r = frames && strings ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = take_frame(json_array_get(traceback, i), strings, &frames[i]);
	if (r == 0)
		text_traceback(stdout, frames, count, style);
	strtab_free(strings);
	free(frames);
	return r;
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
	return print_traceback(json_object_get(block, "traceback"), style);
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
