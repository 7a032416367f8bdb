#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/frames.h"
#include "cli/show.h"
#include "cli/simple.h"

#include "export/printable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_text(const char *text)
{
	printable_write(stdout, text, strlen(text), false);
}

/* "mismatch: made by new[], freed by free: 3 times, first 0x55...: 100 bytes, thread 71" */
static void print_head(const json_t *misuse)
{
	const char *made = answer_text(misuse, "made_by"), *freed = answer_text(misuse, "freed_by");

	print_text(answer_text(misuse, "kind"));
	if (*made) {
		printf(": made by ");
		print_text(made);
		printf(", freed by ");
		print_text(*freed ? freed : "another function");
	}
	printf(": %" PRIu64 " times, first ", answer_number(misuse, "count"));
	print_text(answer_text(misuse, "address"));
	if (*made)
		printf(" of %" PRIu64 " bytes", answer_number(misuse, "size"));
	printf(", thread %" PRIu64 "\n", answer_number(misuse, "thread"));
}

static int print_misuse(const json_t *misuse, const struct text_style *style)
{
	const json_t *made = json_object_get(misuse, "made");
	int r;

	print_head(misuse);
	printf("  freed at\n");
	r = frames_print(json_object_get(misuse, "freed"), style);
	if (r == 0 && json_is_array(made)) {
		printf("  made at\n");
		r = frames_print(made, style);
	}
	return r;
}

static int print_misuses(const struct options *options, const json_t *reply)
{
	struct source *source = source_new();
	struct text_style style = show_style(options, source);
	uint64_t more = answer_number(reply, "more");
	const json_t *misuse;
	size_t i;
	int r = source ? 0 : -1;

	json_array_foreach(json_object_get(reply, "mismatches"), i, misuse) {
		if (r == 0)
			r = print_misuse(misuse, &style);
	}
	source_free(source);
	if (more > 0)
		printf("%" PRIu64 " more, of other tracebacks, were not kept\n", more);
	return r == 0 ? show_finish() : fail_memory();
}

int cmd_mismatches(const struct options *options, int argc, char **argv)
{
	json_t *reply;
	pid_t pid;
	int r = simple_ask(options, "mismatches", argv[0], "ListMismatches", "cannot show the wrong frees of", &pid, &reply);

	(void)argc;
	if (r != EXIT_DONE)
		return r;
	r = options_have(options, OPTION(JSON)) ? show_json(json_incref(reply)) : print_misuses(options, reply);
	json_decref(reply);
	return r;
}
