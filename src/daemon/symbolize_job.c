#include "daemon/symbolize_job.h"

#include "base/clock.h"
#include "daemon/symbolize.h"

#include <errno.h>
#include <stdlib.h>

int symbolize_job_name(struct symbolize_job *job, uint32_t frame,
		       const struct symbolize_location *locations, size_t count)
{
	struct snapshot *snapshot = job->snapshot;
	size_t first = snapshot->locations.count;

	if (snapshot->frames.items[frame].location_count > 0)
		return 0;
	if (strtab_memory(snapshot->strings) + first * sizeof(struct snapshot_location) >
	    SYMBOLIZE_NAMES_MAX)
		return -ENOSPC;
	for (size_t i = 0; i < count; i++) {
		int64_t function = strtab_add(snapshot->strings, locations[i].function);
		int64_t file = strtab_add(snapshot->strings, locations[i].file);
		struct snapshot_location *added = vec_push(&snapshot->locations);

		if (function < 0 || file < 0 || !added) {
			snapshot->locations.count = first;
			return -ENOMEM;
		}
		added->function = (uint32_t)function;
		added->file = (uint32_t)file;
		added->line = locations[i].line;
		added->function_offset = locations[i].function_offset;
		added->inlined = locations[i].inlined;
	}
	snapshot->frames.items[frame].first_location = count > 0 ? (uint32_t)first : 0;
	snapshot->frames.items[frame].location_count = (uint32_t)count;
	return 0;
}

static struct symbolize_key key_of(const struct snapshot *snapshot, const struct symbolize_file *file,
				   uint32_t frame)
{
	const struct frame *place = &snapshot->frames.items[frame].frame;

	return (struct symbolize_key){ file->number, place->offset, place->kind == FRAME_CALL };
}

struct symbolize_key symbolize_work_key(const struct symbolize_job *job,
					const struct symbolize_work *work, size_t i)
{
	return key_of(job->snapshot, work->file, work->frames.items[i]);
}

static bool is_code(const struct frame *frame)
{
	return frame->kind == FRAME_CALL || frame->kind == FRAME_EXACT;
}

static int list_frame(struct symbolize_job *job, struct symbolize_work *work, struct symbolize_cache *cache, uint32_t frame)
{
	struct symbolize_location locations[SYMBOLIZE_LOCATIONS_MAX];
	struct symbolize_key key;
	size_t count;
	uint32_t *listed;

	if (!work->file || job->snapshot->frames.items[frame].location_count > 0)
		return 0;
	key = key_of(job->snapshot, work->file, frame);
	if (symbolize_cache_find(cache, &key, locations, &count))
		return symbolize_job_name(job, frame, locations, count);
	if (!symbolize_file_usable(work->file))
		return 0;
	listed = vec_push(&work->frames);
	if (!listed)
		return -ENOMEM;
	*listed = frame;
	return 0;
}

static int list_works(struct symbolize_job *job, const int *fds, size_t fd_count,
		      struct symbolize_files *files, struct symbolize_cache *cache)
{
	const struct snapshot *snapshot = job->snapshot;

	job->module_count = snapshot->modules.count < fd_count ? snapshot->modules.count : fd_count;
	job->works = calloc(job->module_count + GENERATED_KINDS, sizeof(*job->works));
	if (!job->works)
		return -ENOMEM;
	job->work_count = job->module_count;
	for (size_t i = 0; i < job->module_count; i++) {
		job->works[i].fd = fds[i];
		job->works[i].file = symbolize_files_get(files, fds[i], &snapshot->modules.items[i], job->user_key);
	}
	for (size_t i = 0; i < snapshot->frames.count; i++) {
		const struct frame *frame = &snapshot->frames.items[i].frame;

		if (is_code(frame) && frame->module < job->module_count &&
		    list_frame(job, &job->works[frame->module], cache, (uint32_t)i) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

static bool has_generated(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->frames.count; i++) {
		const struct frame *frame = &snapshot->frames.items[i].frame;

		if (is_code(frame) && frame->module == MODULE_NONE)
			return true;
	}
	return false;
}

static int list_generated(struct symbolize_job *job, struct symbolize_work *work, struct symbolize_cache *cache)
{
	const struct snapshot *snapshot = job->snapshot;

	for (size_t i = 0; i < snapshot->frames.count; i++) {
		const struct frame *frame = &snapshot->frames.items[i].frame;

		if (is_code(frame) && frame->module == MODULE_NONE && list_frame(job, work, cache, (uint32_t)i) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

int symbolize_job_list_generated(struct symbolize_job *job, struct symbolize_files *files, struct symbolize_cache *cache)
{
	struct generated *generated = job->generated;
	int r = 0;

	job->generated = NULL;
	for (int kind = 0; kind < GENERATED_KINDS && r == 0; kind++) {
		struct symbolize_work *work = &job->works[job->work_count];

		if (generated->fds[kind] < 0)
			continue;
		work->fd = generated->fds[kind];
		work->file = symbolize_files_get(files, work->fd, NULL, job->user_key);
		job->work_count++;
		r = list_generated(job, work, cache);
	}
	return r;
}

int symbolize_job_new(struct snapshot *snapshot, const int *fds, size_t fd_count, const struct file_user *user,
		      struct generated *generated, struct symbolize_files *files, struct symbolize_cache *cache,
		      struct symbolize_job **ret)
{
	struct symbolize_job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	job->snapshot = snapshot_ref(snapshot);
	job->user = *user;
	job->user_key = file_user_key(user);
	if (generated && has_generated(snapshot))
		job->generated = generated;
	r = list_works(job, fds, fd_count, files, cache);
	if (r < 0) {
		symbolize_job_free(job);
		return r;
	}
	*ret = job;
	return 0;
}

void symbolize_job_free(struct symbolize_job *job)
{
	if (!job)
		return;
	for (size_t i = 0; i < job->work_count; i++) {
		symbolize_files_put(job->works[i].file);
		vec_fini(&job->works[i].frames);
	}
	free(job->works);
	snapshot_put(job->snapshot);
	free(job);
}

struct symbolize_work *symbolize_job_work(struct symbolize_job *job)
{
	for (; job->current < job->work_count; job->current++) {
		struct symbolize_work *work = &job->works[job->current];

		if (work->answered < work->frames.count && !work->waits && !work->is_put_off &&
		    symbolize_file_usable(work->file))
			return work;
	}
	return NULL;
}

bool symbolize_job_waits(const struct symbolize_job *job)
{
	for (size_t i = 0; i < job->work_count; i++) {
		if (job->works[i].waits || job->works[i].is_put_off)
			return true;
	}
	return false;
}

void symbolize_job_stop_waiting(struct symbolize_job *job)
{
	for (size_t i = 0; i < job->work_count; i++)
		job->works[i].waits = job->works[i].is_put_off = false;
}

/* Its time stands still. */
void symbolize_work_put_off(struct symbolize_work *work)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (work->deadline_ns > 0)
		work->left_ns = work->deadline_ns > now_ns ? work->deadline_ns - now_ns : 1;
	work->deadline_ns = 0;
	work->is_put_off = true;
}

void symbolize_work_drop(struct symbolize_work *work)
{
	work->answered = work->frames.count;
}

void symbolize_job_pause(struct symbolize_job *job)
{
	job->paused_ns = clock_monotonic_ns();
}

void symbolize_job_resume(struct symbolize_job *job)
{
	uint64_t waited_ns = job->paused_ns > 0 ? clock_monotonic_ns() - job->paused_ns : 0;

	job->paused_ns = 0;
	if (job->deadline_ns > 0)
		job->deadline_ns += waited_ns;
	/* Those before it are done, and those behind it have not begun. */
	if (job->current < job->work_count && job->works[job->current].deadline_ns > 0)
		job->works[job->current].deadline_ns += waited_ns;
}
