#include "cli/answer.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/show.h"
#include "cli/simple.h"
#include "cli/tracing.h"

#include "export/printable.h"
#include "export/text.h"

#include <inttypes.h>
#include <string.h>

#define LABEL_WIDTH 15

static void print_label(const char *label)
{
	printf("%*s: ", LABEL_WIDTH, label);
}

static void print_text(const char *label, const char *text)
{
	print_label(label);
	printable_write(stdout, text, strlen(text), false);
	putchar('\n');
}

static void print_number(const char *label, uint64_t value)
{
	print_label(label);
	printf("%" PRIu64 "\n", value);
}

static void print_size(const char *label, uint64_t bytes)
{
	char size[TEXT_SIZE_MAX];

	print_label(label);
	printf("%s (%" PRIu64 " bytes)\n", text_size(size, (double)bytes, false), bytes);
}

static void print_crash_safe(const json_t *status)
{
	const char *reason = answer_text(status, "crash_safe_reason");

	print_label("Crash-safe");
	fputs(answer_true(status, "crash_safe") ? "yes" : "no", stdout);
	if (*reason) {
		fputs(", ", stdout);
		printable_write(stdout, reason, strlen(reason), false);
	}
	putchar('\n');
}

static void print_domains(json_t *domains)
{
	const char *key;
	json_t *domain;

	json_object_foreach(domains, key, domain) {
		char size[TEXT_SIZE_MAX];
		const char *name = answer_text(domain, "name");

		print_label("Domain");
		printable_write(stdout, *name ? name : key, strlen(*name ? name : key), false);
		printf(", %s in %" PRIu64 " blocks\n",
		       text_size(size, (double)answer_number(domain, "live_bytes"), false),
		       answer_number(domain, "blocks"));
	}
}

static void print_unknown(const json_t *unknown)
{
	static const struct {
		const char *label, *key;
	} counters[] = {
		{ "Unknown frees", "unknown_frees" },
		{ "Older frees", "before_attach_frees" },
		{ "Cleared frees", "after_clear_frees" },
		{ "Lost events", "lost_events" },
		{ "Cut stacks", "truncated_stacks" },
		{ "Probe gaps", "probe_gaps" },
	};

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		print_number(counters[i].label, answer_number(unknown, counters[i].key));
}

static void print_exact(const json_t *status)
{
	print_text("Exact", answer_true(status, "exact") ? "yes" : "no");
	if (answer_number(status, "sample_bytes") > 0)
		print_size("One sample for", answer_number(status, "sample_bytes"));
}

static void print_ring(const json_t *status)
{
	uint64_t wait_ms = answer_number(status, "ring_wait_ms");

	if (wait_ms == 0)
		return;
	print_label("Ring waits");
	printf("%" PRIu64 ", of %" PRIu64 " ms at most\n", answer_number(status, "ring_waits"), wait_ms);
	if (answer_number(status, "ring_readers") == 0)
		return;
	print_label("Ring readers");
	printf("%" PRIu64 ", which have unwound %" PRIu64 " stacks for the first\n", answer_number(status, "ring_readers"),
	       answer_number(status, "ring_stacks_ahead"));
}

/* Nobody holds what is not traced any more. */
static void print_ptrace(const json_t *status)
{
	const char *state = answer_text(status, "state");

	if (strcmp(state, "lost") == 0 || strcmp(state, "kept") == 0)
		return;
	print_text("Ptrace", answer_true(status, "released") ? "let go" : "held");
	if (*answer_text(status, "hold_reason"))
		print_text("Why held", answer_text(status, "hold_reason"));
}

static int print_status(pid_t pid, const json_t *status)
{
	char name[TRACING_NAME_MAX];

	tracing_name(name, pid);
	printable_write(stdout, name, strlen(name), false);
	putchar('\n');
	print_text("State", answer_text(status, "state"));
	print_text("Engine", answer_text(status, "engine"));
	if (*answer_text(status, "engine_reason"))
		print_text(strcmp(answer_text(status, "engine"), "ring") == 0 ? "Beside it" : "Why not ring",
			   answer_text(status, "engine_reason"));
	print_ring(status);
	print_ptrace(status);
	print_exact(status);
	print_crash_safe(status);
	print_number("Frames limit", answer_number(status, "frames_limit"));
	print_size("Traced", answer_number(status, "traced_current"));
	print_size("Peak", answer_number(status, "traced_peak"));
	print_number("Blocks", answer_number(status, "blocks"));
	print_number("Allocations", answer_number(status, "allocations"));
	print_number("Frees", answer_number(status, "frees"));
	print_domains(json_object_get(status, "domains"));
	print_number("Pending calls", answer_number(status, "pending_calls"));
	print_size("Tracer memory", answer_number(status, "tracer_memory"));
	print_label("Longest stop");
	printf("%" PRIu64 " us\n", answer_number(status, "longest_stop_us"));
	if (answer_number(status, "children_not_followed") > 0)
		print_number("Not followed", answer_number(status, "children_not_followed"));
	if (answer_number(status, "naming") > 0)
		print_number("Being named", answer_number(status, "naming"));
	print_unknown(json_object_get(status, "unknown"));
	return show_finish();
}

int cmd_status(const struct options *options, int argc, char **argv)
{
	json_t *reply, *status;
	bool exact;
	pid_t pid;
	int r = simple_ask(options, "status", argv[0], "GetStatus", "cannot tell the status of", &pid, &reply);

	(void)argc;
	if (r != EXIT_DONE)
		return r;
	status = json_object_get(reply, "status");
	exact = answer_true(status, "exact");
	r = options_have(options, OPTION(JSON)) ? show_json(json_incref(status)) : print_status(pid, status);
	json_decref(reply);
	return r == EXIT_DONE ? show_verdict(options, exact) : r;
}
