#include "daemon/names_file.h"

#include "base/hash.h"
#include "base/strtab.h"
#include "base/vec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "AWnames"
#define VERSION 2
#define STRING_MAX 16384             /* longer ones are left out, with their frame */

/* In this order, each part as often as the head says. */
struct head {
	char magic[8];
	uint64_t version;
	uint64_t hashes;                 /* of MAGIC: users are known by hashes, which another version may make otherwise */
	uint64_t checksum;               /* of all that follows it */
	uint64_t files, names, locations, strings, text_bytes;
};

struct kept_file {
	uint64_t user_key, device, inode;
	int64_t size, modified_s, modified_ns, changed_s, changed_ns;
	uint32_t build_id_len, pad;
	uint8_t build_id[BUILD_ID_MAX];
};

struct kept_name {
	uint64_t address;
	uint32_t file, is_call;
	uint32_t first_location, location_count;
};

struct kept_location {
	uint32_t function, source;       /* numbers of strings */
	uint32_t line, function_offset, inlined;
};

/* FNV-1a, which stays what it is. */
static uint64_t checksum_of(const void *data, size_t len)
{
	const unsigned char *bytes = data;
	uint64_t sum = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3ULL;
	return sum;
}

static uint64_t checksum_of_all(const void *data, size_t len)
{
	size_t from = offsetof(struct head, files);

	return checksum_of((const char *)data + from, len - from);
}

/* --- writing --- */

struct number {
	uint64_t number;
	const struct symbolize_file *file;
	int64_t index;                   /* in `files`; -1: not there yet */
};

struct encoder {
	struct number *numbers;          /* sorted */
	size_t number_count;
	VEC_OF(struct kept_file) files;
	VEC_OF(struct kept_name) names;
	VEC_OF(struct kept_location) locations;
	struct strtab *strings;
	size_t text_bytes;
	bool failed;
};

static int compare_numbers(const void *a, const void *b)
{
	const struct number *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static int list_numbers(struct encoder *encoder, const struct symbolize_files *files)
{
	encoder->numbers = calloc(files->items.count + 1, sizeof(*encoder->numbers));
	if (!encoder->numbers)
		return -ENOMEM;
	for (size_t i = 0; i < files->items.count; i++) {
		const struct symbolize_file *file = files->items.items[i];

		if (file->has_debug && !file->incomplete && !file->names)
			encoder->numbers[encoder->number_count++] = (struct number){ file->number, file, -1 };
	}
	qsort(encoder->numbers, encoder->number_count, sizeof(*encoder->numbers), compare_numbers);
	return 0;
}

static bool add_file(struct encoder *encoder, struct number *number)
{
	const struct symbolize_file *file = number->file;
	struct kept_file *kept;

	if (number->index >= 0)
		return true;
	kept = vec_push(&encoder->files);
	if (!kept)
		return false;
	*kept = (struct kept_file){ file->user_key, file->device, file->inode, file->size, file->modified.tv_sec,
				    file->modified.tv_nsec, file->changed.tv_sec, file->changed.tv_nsec,
				    file->build_id_len, 0, { 0 } };
	memcpy(kept->build_id, file->build_id, file->build_id_len);
	number->index = (int64_t)encoder->files.count - 1;
	return true;
}

static int64_t add_string(struct encoder *encoder, const char *text)
{
	uint32_t before = strtab_count(encoder->strings);
	int64_t id = strtab_add(encoder->strings, text);

	if (id >= 0 && strtab_count(encoder->strings) > before)
		encoder->text_bytes += strlen(text) + 1;
	return id;
}

static size_t size_of(const struct encoder *encoder)
{
	return sizeof(struct head) + encoder->files.count * sizeof(struct kept_file) +
	       encoder->names.count * sizeof(struct kept_name) + encoder->locations.count * sizeof(struct kept_location) +
	       encoder->text_bytes;
}

static bool fits(const struct encoder *encoder, const struct symbolize_location *locations, size_t count)
{
	size_t more = sizeof(struct kept_file) + sizeof(struct kept_name) + count * sizeof(struct kept_location);

	for (size_t i = 0; i < count; i++) {
		size_t function = strlen(locations[i].function), source = strlen(locations[i].file);

		if (function > STRING_MAX || source > STRING_MAX)
			return false;
		more += function + source + 2;
	}
	return size_of(encoder) + more <= NAMES_FILE_MAX;
}

static bool add_location(struct encoder *encoder, const struct symbolize_location *location)
{
	int64_t function = add_string(encoder, location->function), source = add_string(encoder, location->file);
	struct kept_location *kept = vec_push(&encoder->locations);

	if (function < 0 || source < 0 || !kept)
		return false;
	*kept = (struct kept_location){ (uint32_t)function, (uint32_t)source, location->line, location->function_offset,
					location->inlined };
	return true;
}

static void add_name(void *context, const struct symbolize_key *key, const struct symbolize_location *locations, size_t count)
{
	struct encoder *encoder = context;
	const struct number wanted = { .number = key->file };
	struct number *number = bsearch(&wanted, encoder->numbers, encoder->number_count, sizeof(wanted), compare_numbers);
	size_t first = encoder->locations.count;
	struct kept_name *kept;

	if (!number || encoder->failed || !fits(encoder, locations, count))
		return;
	encoder->failed = !add_file(encoder, number);
	for (size_t i = 0; i < count && !encoder->failed; i++)
		encoder->failed = !add_location(encoder, &locations[i]);
	kept = encoder->failed ? NULL : vec_push(&encoder->names);
	if (kept)
		*kept = (struct kept_name){ key->address, (uint32_t)number->index, key->is_call, (uint32_t)first,
					    (uint32_t)count };
	else
		encoder->failed = true;
}

static void *append(void *to, const void *from, size_t len)
{
	if (len > 0)
		memcpy(to, from, len);
	return (char *)to + len;
}

static int finish(const struct encoder *encoder, void **ret_data, size_t *ret_len)
{
	size_t len = size_of(encoder);
	struct head *head = malloc(len);
	void *at;

	if (!head)
		return -ENOMEM;
	*head = (struct head){ MAGIC, VERSION, hash_bytes(MAGIC, sizeof(MAGIC)), 0, encoder->files.count,
			       encoder->names.count, encoder->locations.count, strtab_count(encoder->strings),
			       encoder->text_bytes };
	at = append(head + 1, encoder->names.items, encoder->names.count * sizeof(struct kept_name));
	at = append(at, encoder->files.items, encoder->files.count * sizeof(struct kept_file));
	at = append(at, encoder->locations.items, encoder->locations.count * sizeof(struct kept_location));
	for (uint32_t i = 0; i < head->strings; i++) {
		const char *text = strtab_get(encoder->strings, i);

		at = append(at, text, strlen(text) + 1);
	}
	head->checksum = checksum_of_all(head, len);
	*ret_data = head;
	*ret_len = len;
	return 0;
}

int names_file_encode(const struct symbolize_cache *cache, const struct symbolize_files *files, void **ret_data,
		      size_t *ret_len)
{
	struct encoder encoder = { .strings = strtab_new() };
	int r = encoder.strings ? list_numbers(&encoder, files) : -ENOMEM;

	/* Some tables of strings have one from the start. */
	for (uint32_t i = 0; r == 0 && i < strtab_count(encoder.strings); i++)
		encoder.text_bytes += strlen(strtab_get(encoder.strings, i)) + 1;
	if (r == 0)
		symbolize_cache_each(cache, add_name, &encoder);
	if (r == 0)
		r = encoder.failed ? -ENOMEM : finish(&encoder, ret_data, ret_len);
	free(encoder.numbers);
	vec_fini(&encoder.files);
	vec_fini(&encoder.names);
	vec_fini(&encoder.locations);
	strtab_free(encoder.strings);
	return r;
}

/* --- reading --- */

struct decoder {
	const struct head *head;
	const struct kept_file *files;
	const struct kept_name *names;
	const struct kept_location *locations;
	const char *text;
	const char **strings;
	uint64_t *numbers;               /* of the files, here */
};

/* The parts are as long as all is; none of the products overflows, since each count is below the limit. */
static int find_parts(struct decoder *decoder, const void *data, size_t len)
{
	const struct head *head = data;

	if (len < sizeof(*head) || len > NAMES_FILE_MAX || memcmp(head->magic, MAGIC, sizeof(MAGIC)) ||
	    head->version != VERSION || head->hashes != hash_bytes(MAGIC, sizeof(MAGIC)) || head->files > len ||
	    head->names > len || head->locations > len || head->strings > len || head->text_bytes > len ||
	    len != sizeof(*head) + head->names * sizeof(struct kept_name) + head->files * sizeof(struct kept_file) +
		   head->locations * sizeof(struct kept_location) + head->text_bytes ||
	    head->checksum != checksum_of_all(data, len))
		return -EBADMSG;
	decoder->head = head;
	decoder->names = (const void *)(head + 1);
	decoder->files = (const void *)(decoder->names + head->names);
	decoder->locations = (const void *)(decoder->files + head->files);
	decoder->text = (const void *)(decoder->locations + head->locations);
	return 0;
}

static int find_strings(struct decoder *decoder)
{
	const char *at = decoder->text, *end = at + decoder->head->text_bytes;

	decoder->strings = calloc(decoder->head->strings + 1, sizeof(*decoder->strings));
	if (!decoder->strings)
		return -ENOMEM;
	for (uint64_t i = 0; i < decoder->head->strings; i++) {
		const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;

		if (!nul)
			return -EBADMSG;
		decoder->strings[i] = at;
		at = nul + 1;
	}
	return at == end ? 0 : -EBADMSG;
}

static bool is_name(const struct decoder *decoder, const struct kept_name *name)
{
	const struct head *head = decoder->head;

	if (name->file >= head->files || name->is_call > 1 || name->location_count > SYMBOLIZE_LOCATIONS_MAX ||
	    name->first_location > head->locations || name->location_count > head->locations - name->first_location)
		return false;
	for (uint32_t i = 0; i < name->location_count; i++) {
		const struct kept_location *location = &decoder->locations[name->first_location + i];

		if (location->function >= head->strings || location->source >= head->strings || location->inlined > 1)
			return false;
	}
	return true;
}

static int check(struct decoder *decoder)
{
	int r = find_strings(decoder);

	if (decoder->head->files > SYMBOLIZE_FILES_MAX)
		return -EBADMSG;
	for (uint64_t i = 0; r == 0 && i < decoder->head->files; i++)
		r = decoder->files[i].build_id_len <= BUILD_ID_MAX ? 0 : -EBADMSG;
	for (uint64_t i = 0; r == 0 && i < decoder->head->names; i++)
		r = is_name(decoder, &decoder->names[i]) ? 0 : -EBADMSG;
	return r;
}

static int take_file(const struct kept_file *kept, struct symbolize_files *files, uint64_t *ret_number)
{
	struct symbolize_file like = { .user_key = kept->user_key, .device = kept->device, .inode = kept->inode,
				       .size = kept->size, .modified = { kept->modified_s, kept->modified_ns },
				       .changed = { kept->changed_s, kept->changed_ns },
				       .build_id_len = kept->build_id_len, .has_debug = true };

	memcpy(like.build_id, kept->build_id, kept->build_id_len);
	return symbolize_files_restore(files, &like, ret_number);
}

static int take_name(const struct decoder *decoder, const struct kept_name *name, struct symbolize_cache *cache)
{
	struct symbolize_key key = { decoder->numbers[name->file], name->address, name->is_call };
	struct symbolize_location locations[SYMBOLIZE_LOCATIONS_MAX];

	for (uint32_t i = 0; i < name->location_count; i++) {
		const struct kept_location *kept = &decoder->locations[name->first_location + i];

		locations[i] = (struct symbolize_location){ decoder->strings[kept->function], decoder->strings[kept->source],
							    kept->line, kept->function_offset, kept->inlined };
	}
	return symbolize_cache_add(cache, &key, locations, name->location_count);
}

static int take_all(struct decoder *decoder, struct symbolize_cache *cache, struct symbolize_files *files)
{
	int r = 0;

	decoder->numbers = calloc(decoder->head->files + 1, sizeof(*decoder->numbers));
	if (!decoder->numbers)
		return -ENOMEM;
	for (uint64_t i = 0; r == 0 && i < decoder->head->files; i++)
		r = take_file(&decoder->files[i], files, &decoder->numbers[i]);
	/* What was used last comes first in it, and is to be what was used last again. */
	for (uint64_t i = decoder->head->names; r == 0 && i-- > 0;)
		r = take_name(decoder, &decoder->names[i], cache);
	return r;
}

int names_file_decode(const void *data, size_t len, struct symbolize_cache *cache, struct symbolize_files *files)
{
	struct decoder decoder = { 0 };
	int r = find_parts(&decoder, data, len);

	if (r == 0)
		r = check(&decoder);
	if (r == 0)
		r = take_all(&decoder, cache, files);
	free(decoder.strings);
	free(decoder.numbers);
	return r;
}
