#include "model/snapshot_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct cursor {
	const char *at;
	size_t left;
	const char *reason;
};

static int refuse(struct cursor *c, const char *reason)
{
	c->reason = reason;
	return -EBADMSG;
}

static int take(struct cursor *c, void *into, size_t len)
{
	if (c->left < len)
		return refuse(c, "the image ends in the middle");
	memcpy(into, c->at, len);
	c->at += len;
	c->left -= len;
	return 0;
}

/* Points *ret_text at `len` bytes inside the image. */
static int take_text(struct cursor *c, size_t len, const char **ret_text)
{
	size_t padded = (len + IMAGE_ALIGN - 1) / IMAGE_ALIGN * IMAGE_ALIGN;

	if (c->left < padded)
		return refuse(c, "the image ends in the middle of a text");
	*ret_text = c->at;
	c->at += padded;
	c->left -= padded;
	return 0;
}

static int read_text(struct cursor *c, size_t len, char **text)
{
	const char *from;
	char *copy;
	int r = take_text(c, len, &from);

	if (r < 0)
		return r;
	copy = strndup(from, len);
	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int read_head(struct cursor *c, struct image_head *head)
{
	int r = take(c, head, sizeof(*head));

	if (r < 0)
		return r;
	if (memcmp(head->magic, IMAGE_MAGIC, sizeof(head->magic)) != 0)
		return refuse(c, "this is no image of a snapshot");
	if (head->version != IMAGE_VERSION)
		return refuse(c, "the image is of another version of this program");
	if (head->exact > 1 || head->has_blocks > 1)
		return refuse(c, "the image's head is damaged");
	if (head->modules > MODULES_MAX)
		return refuse(c, "the image has too many modules");
	return 0;
}

static void keep_head(struct snapshot *s, const struct image_head *head)
{
	s->frames_limit = head->frames_limit;
	s->pid = head->pid;
	s->start_time = head->start_time;
	s->taken_ns = head->taken_ns;
	s->attached_ns = head->attached_ns;
	s->clock_ns = head->clock_ns;
	s->sample_bytes = head->sample_bytes;
	s->counters = head->counters;
	s->unknown = head->unknown;
	s->exact = head->exact;
	s->has_blocks = head->has_blocks;
}

/* Makes room for `count` items that take `size` bytes each in the image: so a false count is found
 * before memory is asked for. */
#define RESERVE(c, v, count, size) \
	((count) > (c)->left / (size) ? refuse((c), "the image is shorter than it says") : \
	 vec_reserve((v), (size_t)(count)))

static int read_module(struct cursor *c, struct snapshot *s)
{
	struct snapshot_module *module;
	struct image_module image;
	const char *path;
	int64_t string;
	int r = take(c, &image, sizeof(image));

	if (r < 0)
		return r;
	if (image.build_id_len > BUILD_ID_MAX)
		return refuse(c, "a module's build-id is too long");
	r = take_text(c, image.path_len, &path);
	if (r < 0)
		return r;
	string = strtab_add_len(s->strings, path, image.path_len);
	module = string < 0 ? NULL : vec_push(&s->modules);
	if (!module)
		return -ENOMEM;
	module->path = (uint32_t)string;
	module->build_id_len = image.build_id_len;
	memcpy(module->build_id, image.build_id, image.build_id_len);
	return 0;
}

static int read_modules(struct cursor *c, struct snapshot *s, uint64_t count)
{
	int r = RESERVE(c, &s->modules, count, sizeof(struct image_module));

	while (r == 0 && count-- > 0)
		r = read_module(c, s);
	return r;
}

static int read_frames(struct cursor *c, struct snapshot *s, uint64_t count)
{
	int r = RESERVE(c, &s->frames, count, sizeof(struct image_frame));

	while (r == 0 && count-- > 0) {
		struct image_frame image;
		struct snapshot_frame *frame;

		r = take(c, &image, sizeof(image));
		if (r < 0)
			return r;
		frame = vec_push(&s->frames);
		if (!frame)
			return -ENOMEM;
		frame->frame.module = image.module;
		frame->frame.kind = image.kind;
		frame->frame.offset = image.offset;
	}
	return r;
}

/* Reads `count` items that look the same in the image. */
#define READ_ITEMS(c, v, item_count) \
	read_items((c), (void **)&(v)->items, &(v)->count, &(v)->space, (item_count), \
		   sizeof(*(v)->items))

static int read_items(struct cursor *c, void **items, size_t *count, size_t *space, uint64_t more,
		      size_t size)
{
	int r;

	if (more > c->left / size)
		return refuse(c, "the image is shorter than it says");
	r = vec_reserve_(items, space, *count, (size_t)more, size);
	if (r < 0 || more == 0)
		return r;
	r = take(c, (char *)*items + *count * size, (size_t)more * size);
	if (r == 0)
		*count += (size_t)more;
	return r;
}

static int read_all(struct cursor *c, struct snapshot *s)
{
	struct image_head head;
	int r = read_head(c, &head);

	if (r < 0)
		return r;
	keep_head(s, &head);
	if ((r = read_text(c, head.command_len, &s->command)) < 0 ||
	    (r = read_text(c, head.exe_len, &s->exe)) < 0 ||
	    (r = read_modules(c, s, head.modules)) < 0 ||
	    (r = read_frames(c, s, head.frames)) < 0 ||
	    (r = READ_ITEMS(c, &s->nodes, head.nodes)) < 0 ||
	    (r = READ_ITEMS(c, &s->traces, head.traces)) < 0 ||
	    (r = READ_ITEMS(c, &s->blocks, head.blocks)) < 0)
		return r;
	if (c->left > 0)
		return refuse(c, "the image is longer than it says");
	return snapshot_check(s, &c->reason);
}

int snapshot_image_read(const void *data, size_t len, struct snapshot **ret_snapshot,
			const char **ret_reason)
{
	struct cursor cursor = { .at = data, .left = len };
	struct snapshot *snapshot;
	int r;

	if (len > SNAPSHOT_IMAGE_MAX) {
		*ret_reason = "the image is too large";
		return -E2BIG;
	}
	snapshot = snapshot_new();
	if (!snapshot)
		return -ENOMEM;
	r = read_all(&cursor, snapshot);
	if (r < 0) {
		snapshot_put(snapshot);
		if (cursor.reason)
			*ret_reason = cursor.reason;
		return r;
	}
	*ret_snapshot = snapshot;
	return 0;
}
