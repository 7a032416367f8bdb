#include "recording.h"

#include "base/fd.h"
#include "process_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "AWSTACK1";

enum { RECORD_MODULE = 1, RECORD_IMAGE, RECORD_STACK };

struct record_head {
	uint32_t type, length;
};

struct module_head {
	uint64_t bias;
	uint32_t ranges, path_length;
};

struct range {
	uint64_t start, end;
};

static int write_bytes(FILE *file, const void *bytes, size_t len)
{
	return len == 0 || fwrite(bytes, len, 1, file) == 1 ? 0 : -EIO;
}

static int write_head(FILE *file, uint32_t type, size_t length)
{
	const struct record_head head = { .type = type, .length = (uint32_t)length };

	return write_bytes(file, &head, sizeof(head));
}

int recording_write_start(FILE *file)
{
	return write_bytes(file, magic, sizeof(magic));
}

int recording_write_stack(FILE *file, const struct recorded_stack *stack)
{
	int err = write_head(file, RECORD_STACK, sizeof(stack->regs) + sizeof(stack->address) + stack->len);

	if (err == 0)
		err = write_bytes(file, &stack->regs, sizeof(stack->regs));
	if (err == 0)
		err = write_bytes(file, &stack->address, sizeof(stack->address));
	return err < 0 ? err : write_bytes(file, stack->bytes, stack->len);
}

static int write_image(FILE *file, int fd)
{
	struct stat st;
	uint8_t *bytes;
	int err = -EIO;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -EIO;
	bytes = malloc((size_t)st.st_size);
	if (bytes && pread(fd, bytes, (size_t)st.st_size, 0) == st.st_size)
		err = write_head(file, RECORD_IMAGE, (size_t)st.st_size);
	if (err == 0)
		err = write_bytes(file, bytes, (size_t)st.st_size);
	free(bytes);
	return err;
}

static int write_module(FILE *file, const struct module_map *map, uint32_t id)
{
	const struct module *module = &map->modules.items[id];
	struct module_head head = { .bias = module->bias, .path_length = (uint32_t)strlen(module->path) };
	int err;

	for (size_t i = 0; i < map->ranges.count; i++)
		head.ranges += map->ranges.items[i].module == id;
	err = write_head(file, RECORD_MODULE,
			 sizeof(head) + head.ranges * sizeof(struct range) + head.path_length);
	if (err == 0)
		err = write_bytes(file, &head, sizeof(head));
	for (size_t i = 0; err == 0 && i < map->ranges.count; i++) {
		const struct range range = { map->ranges.items[i].start, map->ranges.items[i].end };

		if (map->ranges.items[i].module == id)
			err = write_bytes(file, &range, sizeof(range));
	}
	return err < 0 ? err : write_bytes(file, module->path, head.path_length);
}

int recording_write_modules(FILE *file, pid_t process, const struct module_map *map)
{
	int err = 0;

	for (uint32_t id = 0; err == 0 && id < map->modules.count; id++) {
		err = write_module(file, map, id);
		if (err == 0 && map->modules.items[id].path[0] != '/') {
			int fd = process_map_open(process, map, id);

			err = write_image(file, fd);
			fd_close(&fd);
		}
	}
	return err;
}

static int read_module(struct recording *r, const uint8_t *bytes, uint32_t len)
{
	struct module_head head;
	struct module module = { 0 };
	struct recorded_image *image;
	struct range range;
	int64_t id;
	int err = 0;

	if (len < sizeof(head))
		return -EINVAL;
	memcpy(&head, bytes, sizeof(head));
	if ((uint64_t)head.ranges * sizeof(range) + head.path_length != len - sizeof(head))
		return -EINVAL;
	module.bias = head.bias;
	module.path = strndup((const char *)bytes + len - head.path_length, head.path_length);
	if (!module.path)
		return -ENOMEM;
	id = module_map_add(&r->map, &module);
	free(module.path);
	if (id < 0)
		return (int)id;
	for (uint32_t i = 0; err == 0 && i < head.ranges; i++) {
		memcpy(&range, bytes + sizeof(head) + i * sizeof(range), sizeof(range));
		err = module_map_add_range(&r->map, range.start, range.end, (uint32_t)id);
	}
	image = vec_push(&r->images);
	return image ? err : -ENOMEM;
}

static int read_image(struct recording *r, const uint8_t *bytes, uint32_t len)
{
	struct recorded_image *image;

	if (r->images.count == 0)
		return -EINVAL;
	image = &r->images.items[r->images.count - 1];
	image->bytes = malloc(len);
	if (!image->bytes)
		return -ENOMEM;
	memcpy(image->bytes, bytes, len);
	image->len = len;
	return 0;
}

static int read_stack(struct recording *r, const uint8_t *bytes, uint32_t len)
{
	struct recorded_stack *stack;
	size_t head = sizeof(stack->regs) + sizeof(stack->address);

	if (len < head)
		return -EINVAL;
	stack = vec_push(&r->stacks);
	if (!stack)
		return -ENOMEM;
	stack->bytes = malloc(len - head);
	if (!stack->bytes)
		return -ENOMEM;
	memcpy(&stack->regs, bytes, sizeof(stack->regs));
	memcpy(&stack->address, bytes + sizeof(stack->regs), sizeof(stack->address));
	stack->len = (uint32_t)(len - head);
	memcpy(stack->bytes, bytes + head, stack->len);
	return 0;
}

static int read_record(struct recording *r, uint32_t type, const uint8_t *bytes, uint32_t len)
{
	switch (type) {
	case RECORD_MODULE:
		return read_module(r, bytes, len);
	case RECORD_IMAGE:
		return read_image(r, bytes, len);
	case RECORD_STACK:
		return read_stack(r, bytes, len);
	default:
		return -EINVAL;
	}
}

static int read_records(struct recording *r, FILE *file)
{
	struct record_head head;
	char start[sizeof(magic)];
	int err = 0;

	if (fread(start, sizeof(start), 1, file) != 1 || memcmp(start, magic, sizeof(magic)) != 0)
		return -EINVAL;
	while (err == 0 && fread(&head, sizeof(head), 1, file) == 1) {
		uint8_t *bytes = malloc(head.length + 1u);

		if (!bytes)
			return -ENOMEM;
		err = head.length == 0 || fread(bytes, head.length, 1, file) == 1 ? 0 : -EINVAL;
		if (err == 0)
			err = read_record(r, head.type, bytes, head.length);
		free(bytes);
	}
	return err;
}

int recording_read(const char *path, struct recording *ret)
{
	struct recording r = { 0 };
	FILE *file = fopen(path, "re");
	int err;

	if (!file)
		return -errno;
	module_map_init(&r.map);
	err = read_records(&r, file);
	fclose(file);
	if (err < 0) {
		recording_fini(&r);
		return err;
	}
	*ret = r;
	return 0;
}

void recording_fini(struct recording *r)
{
	for (size_t i = 0; i < r->stacks.count; i++)
		free(r->stacks.items[i].bytes);
	for (size_t i = 0; i < r->images.count; i++)
		free(r->images.items[i].bytes);
	vec_fini(&r->stacks);
	vec_fini(&r->images);
	module_map_fini(&r->map);
}

int recording_open_module(const struct recording *r, uint32_t module)
{
	const struct recorded_image *image = &r->images.items[module];
	int fd, err;

	if (image->len == 0) {
		fd = open(r->map.modules.items[module].path, O_RDONLY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	fd = memfd_create("module", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fd_write_all(fd, image->bytes, image->len);
	if (err < 0)
		fd_close(&fd);
	return err < 0 ? err : fd;
}

/* A stack goes on behind what was recorded, which is all that its frames need; a reader that asks for
 * more in one piece gets it, at the price of the copy, as zeros. */
static int read_recorded(void *context, raddr at, void *buf, size_t len)
{
	const struct recorded_stack *stack = context;
	size_t offset = (size_t)(at - stack->address), have;

	if (at < stack->address || offset >= stack->len || len > RECORDING_READ_MAX)
		return -EFAULT;
	have = len < stack->len - offset ? len : stack->len - offset;
	memcpy(buf, stack->bytes + offset, have);
	memset((uint8_t *)buf + have, 0, len - have);
	return 0;
}

struct reader recording_reader(const struct recorded_stack *stack)
{
	return (struct reader){ .read = read_recorded, .context = (void *)(uintptr_t)stack };
}
