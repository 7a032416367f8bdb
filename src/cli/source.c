#include "cli/source.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/vec.h"
#include "export/printable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUCKETS 1024

struct source_file {
	struct source_file *next;       /* in its bucket */
	char *path;
	char *text;                     /* NULL: cannot be read */
	size_t len;
	VEC_OF(size_t) starts;          /* of each line */
};

struct source {
	struct source_file *buckets[BUCKETS];
	size_t total;
	char *line;                     /* the copy that is lent out */
};

struct source *source_new(void)
{
	return calloc(1, sizeof(struct source));
}

static void file_free(struct source_file *file)
{
	if (!file)
		return;
	vec_fini(&file->starts);
	free(file->text);
	free(file->path);
	free(file);
}

void source_free(struct source *source)
{
	if (!source)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		struct source_file *file;

		while ((file = source->buckets[i])) {
			source->buckets[i] = file->next;
			file_free(file);
		}
	}
	free(source->line);
	free(source);
}

/* Root could show anybody's secrets to who looks over its shoulder, because a program of somebody's says that they are its
 * source. */
static bool may_be_shown(const struct stat *st)
{
	return geteuid() != 0 || (st->st_mode & S_IROTH);
}

static int read_regular_file(const char *path, char **ret_text, size_t *ret_len)
{
	struct stat st;
	int fd, r;

	if (stat(path, &st) < 0)
		return -errno;
	if (!may_be_shown(&st))
		return -EACCES;
	fd = file_open_plain(path);
	if (fd < 0)
		return fd;
	/* It may be another one by now. */
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (!may_be_shown(&st))
		r = -EACCES;
	else
		r = fd_read_text(fd, SOURCE_FILE_MAX, ret_text, ret_len);
	fd_close(&fd);
	return r;
}

static int add_start(struct source_file *file, size_t start)
{
	size_t *slot = vec_push(&file->starts);

	if (!slot)
		return -ENOMEM;
	*slot = start;
	return 0;
}

static int find_lines(struct source_file *file)
{
	size_t at = 0;

	if (file->len >= 3 && memcmp(file->text, "\xef\xbb\xbf", 3) == 0)
		at = 3;                 /* a byte order mark is no text */
	while (at < file->len) {
		const char *end = memchr(file->text + at, '\n', file->len - at);

		if (add_start(file, at) < 0)
			return -ENOMEM;
		at = end ? (size_t)(end - file->text) + 1 : file->len;
	}
	return 0;
}

static void file_load(struct source *source, struct source_file *file)
{
	if (source->total >= SOURCE_TOTAL_MAX)
		return;
	if (read_regular_file(file->path, &file->text, &file->len) < 0)
		return;
	source->total += file->len;
	if (find_lines(file) < 0)
		vec_fini(&file->starts);
}

static struct source_file *file_get(struct source *source, const char *path)
{
	struct source_file **bucket = &source->buckets[hash_bytes(path, strlen(path)) % BUCKETS];
	struct source_file *file;

	for (file = *bucket; file; file = file->next)
		if (strcmp(file->path, path) == 0)
			return file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->path = strdup(path);
	if (!file->path) {
		file_free(file);
		return NULL;
	}
	file_load(source, file);
	file->next = *bucket;
	*bucket = file;
	return file;
}

static const char *skip_space(const char *text)
{
	uint32_t code;
	size_t n;

	while ((n = printable_decode(text, &code)) > 0 && printable_is_space(code))
		text += n;
	return text;
}

static void cut_space(char *text)
{
	char *end = text;
	uint32_t code;

	for (char *p = text; *p;) {
		size_t n = printable_decode(p, &code);
		bool space = n > 0 && printable_is_space(code);

		p += n > 0 ? n : 1;
		if (!space)
			end = p;
	}
	*end = '\0';
}

const char *source_line(void *context, const char *path, uint32_t line)
{
	struct source *source = context;
	struct source_file *file = file_get(source, path);
	size_t start, end;

	if (!file || line == 0 || line > file->starts.count)
		return NULL;
	start = file->starts.items[line - 1];
	end = line < file->starts.count ? file->starts.items[line] : file->len;
	free(source->line);
	source->line = strndup(file->text + start, end - start);
	if (!source->line)
		return NULL;
	cut_space(source->line);
	return skip_space(source->line);
}
