/* What the tests of daemon/symbolize.h share: a daemon's event loop, snapshots to be named, the programs `levels` and `other`. */
#ifndef ALLOCWATCH_TESTS_SYMBOLIZE_FIXTURE_H
#define ALLOCWATCH_TESTS_SYMBOLIZE_FIXTURE_H

#include "daemon/symbolize.h"

#include <stddef.h>
#include <stdint.h>

extern sd_event *event;
extern struct symbolize *symbolize;
extern const struct file_user nobody;

struct input {
	struct snapshot *snapshot;
	int fds[8];
	size_t done;                   /* how often it was called */
	int result;
	unsigned order;
	const struct file_user *user;
};

void input_init(struct input *input);
uint32_t input_file(struct input *input, const char *path);
uint32_t input_frame(struct input *input, uint32_t module, uint64_t offset, uint16_t kind);
void input_fini(struct input *input);
/* Counts; asks for the names, and waits until they are there. */
void on_done(void *context, struct snapshot *snapshot, int result);
void ask(struct input *input);
void await(struct input *input);
const char *name_of(const struct input *input, uint32_t frame);
size_t named_count(const struct input *input);
void start(const char *program);
void set_deadlines(uint64_t silence_ms, uint64_t module_ms);
void set_up(void);
void tear_down(void);

#endif
