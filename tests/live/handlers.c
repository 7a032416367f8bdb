#include "handlers.h"

#include "live.h"
#include "state.h"
#include "subject.h"
#include "tool.h"

void require_handlers_blocks(void (*attach)(struct tool *tool, pid_t pid), const char *option)
{
	struct tool *tool = tool_start();
	struct subject *ticker = victim_start("tests/victims/ticker", option, NULL);
	struct state *before = state_take(ticker->pid);
	long already;

	subject_command(ticker, 'g');
	already = subject_tally(ticker, "blocks");
	attach(tool, ticker->pid);
	for (unsigned i = 0; i < live_rounds(5, 200); i++) {
		subject_command(ticker, 'g');
		require_equal(subject_tally(ticker, "stray"), 0);
	}
	require_row(tool_stats(tool, pid_text(ticker->pid)), "tests/victims/ticker.c",
		    "/* kept by the handler */", subject_tally(ticker, "bytes") - already * 56,
		    subject_tally(ticker, "blocks") - already);
	require_equal(json_number(tool_status(tool, ticker->pid), "unknown.unknown_frees"), 0);
	require_equal(json_number(tool_status(tool, ticker->pid), "unknown.lost_events"), 0);
	tool_end(tool, ticker, before);
}
