#include "daemon/symbolize_job.h"

#include "daemon/symbolize.h"

#include <errno.h>
#include <stdlib.h>

int symbolize_job_name(struct symbolize_job *job, uint32_t frame,
		       const struct symbolize_location *locations, size_t count)
{
	struct snapshot *snapshot = job->snapshot;
	size_t first = snapshot->locations.count;

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

static int list_frame(struct symbolize_job *job, struct symbolize_cache *cache, uint32_t frame)
{
	const struct snapshot_frame *place = &job->snapshot->frames.items[frame];
	struct symbolize_location locations[SYMBOLIZE_LOCATIONS_MAX];
	struct symbolize_work *work;
	struct symbolize_key key;
	size_t count;
	uint32_t *listed;

	if ((place->frame.kind != FRAME_CALL && place->frame.kind != FRAME_EXACT) ||
	    place->frame.module >= job->work_count || place->location_count > 0)
		return 0;
	work = &job->works[place->frame.module];
	if (!work->file)
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

	job->work_count = snapshot->modules.count < fd_count ? snapshot->modules.count : fd_count;
	job->works = calloc(job->work_count + 1, sizeof(*job->works));
	if (!job->works) {
		job->work_count = 0;
		return -ENOMEM;
	}
	for (size_t i = 0; i < job->work_count; i++) {
		job->works[i].fd = fds[i];
		job->works[i].file = symbolize_files_get(files, fds[i], &snapshot->modules.items[i], job->user_key);
	}
	for (size_t i = 0; i < snapshot->frames.count; i++) {
		int r = list_frame(job, cache, (uint32_t)i);

		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

int symbolize_job_new(struct snapshot *snapshot, const int *fds, size_t fd_count, const struct file_user *user,
		      struct symbolize_files *files, struct symbolize_cache *cache,
		      struct symbolize_job **ret)
{
	struct symbolize_job *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	job->snapshot = snapshot_ref(snapshot);
	job->user = *user;
	job->user_key = file_user_key(user);
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

		if (work->answered < work->frames.count && symbolize_file_usable(work->file))
			return work;
	}
	return NULL;
}

void symbolize_work_drop(struct symbolize_work *work)
{
	work->answered = work->frames.count;
}
