/* A snapshot from pieces of JSON.  Every value is hostile: types and ranges are checked here, row by
 * row; what refers to what is checked by snapshot_check() at the end. */
#include "varlink/codec.h"
#include "varlink/domains.h"
#include "varlink/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct codec_snapshot_reader {
	struct snapshot *snapshot;
	VEC_OF(uint32_t) texts;          /* number in the stream -> id in snapshot->strings */
	VEC_OF(json_int_t) build_ids;    /* of each module: number of its text */
	struct domain_map domains;
	bool informed;
	size_t samples;              /* traces that have theirs */
};

struct codec_snapshot_reader *codec_snapshot_reader_new(void)
{
	struct codec_snapshot_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->snapshot = snapshot_new();
	if (!reader->snapshot) {
		free(reader);
		return NULL;
	}
	reader->snapshot->frames.count = 0;      /* frame 0 and node 0 come in the stream, too */
	reader->snapshot->nodes.count = 0;
	return reader;
}

void codec_snapshot_reader_free(struct codec_snapshot_reader *reader)
{
	if (!reader)
		return;
	snapshot_put(reader->snapshot);
	vec_fini(&reader->texts);
	vec_fini(&reader->build_ids);
	free(reader);
}

/* --- info --- */

static int take_count(const json_t *object, const char *key, uint64_t *ret_count)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return -EBADMSG;
	*ret_count = (uint64_t)json_integer_value(value);
	return 0;
}

static int take_bool(const json_t *object, const char *key, bool *ret_bool)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_boolean(value))
		return -EBADMSG;
	*ret_bool = json_is_true(value);
	return 0;
}

static int take_text(const json_t *object, const char *key, char **text)
{
	const json_t *value = json_object_get(object, key);
	char *copy;

	if (!json_is_string(value))
		return -EBADMSG;
	copy = codec_text(json_string_value(value));
	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

/* An id is NULL before the snapshot is kept, and "" in JSON. */
static int take_id(const json_t *info, char **id)
{
	int r = take_text(info, "id", id);

	if (r == 0 && !**id) {
		free(*id);
		*id = NULL;
	}
	return r;
}

struct count_field {
	const char *key;
	uint64_t *count;
};

static int take_counts(const json_t *object, const struct count_field *fields, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = take_count(object, fields[i].key, fields[i].count);
	return r;
}

static int take_counters(const json_t *json, struct heap_counters *c)
{
	const struct count_field fields[] = {
		{ "live_bytes", &c->live_bytes }, { "live_blocks", &c->live_blocks },
		{ "peak_bytes", &c->peak_bytes }, { "peak_blocks", &c->peak_blocks },
		{ "peak_clock", &c->peak_ns }, { "allocations", &c->allocations },
		{ "frees", &c->frees }, { "before_attach_frees", &c->before_attach_frees },
		{ "after_clear_frees", &c->after_clear_frees },
		{ "unknown_frees", &c->unknown_frees }, { "lost_events", &c->lost_events },
	};

	return take_counts(json, fields, sizeof(fields) / sizeof(fields[0]));
}

int codec_take_unknown(const json_t *json, struct snapshot_unknown *u)
{
	const struct count_field fields[] = {
		{ "unknown_frees", &u->unknown_frees },
		{ "before_attach_frees", &u->before_attach_frees },
		{ "after_clear_frees", &u->after_clear_frees }, { "lost_events", &u->lost_events },
		{ "truncated_stacks", &u->truncated_stacks }, { "probe_gaps", &u->probe_gaps },
	};

	return take_counts(json, fields, sizeof(fields) / sizeof(fields[0]));
}

static int take_identity(const json_t *info, struct snapshot *s)
{
	uint64_t pid, frames_limit;
	const struct count_field fields[] = {
		{ "pid", &pid }, { "start_time", &s->start_time }, { "time", &s->taken_ns },
		{ "attached", &s->attached_ns }, { "clock", &s->clock_ns },
		{ "frames_limit", &frames_limit },
	};
	int r = take_counts(info, fields, sizeof(fields) / sizeof(fields[0]));

	if (r < 0)
		return r;
	if (pid > INT32_MAX || frames_limit > UINT32_MAX)
		return -EBADMSG;
	s->pid = (int64_t)pid;
	s->frames_limit = (uint32_t)frames_limit;
	return 0;
}

static int take_info(struct codec_snapshot_reader *reader, const json_t *info)
{
	struct snapshot *s = reader->snapshot;
	int r;

	if (!json_is_object(info) || reader->informed)
		return -EBADMSG;
	reader->informed = true;
	if ((r = take_identity(info, s)) < 0 || (r = take_id(info, &s->id)) < 0 ||
	    (r = take_text(info, "name", &s->name)) < 0 ||
	    (r = take_text(info, "command", &s->command)) < 0 ||
	    (r = take_text(info, "exe", &s->exe)) < 0 ||
	    (r = take_bool(info, "exact", &s->exact)) < 0 ||
	    (r = take_bool(info, "symbolized", &s->symbolized)) < 0 ||
	    (r = take_bool(info, "has_blocks", &s->has_blocks)) < 0 ||
	    (r = take_counters(json_object_get(info, "counters"), &s->counters)) < 0)
		return r;
	s->sample_bytes = (uint64_t)json_integer_value(json_object_get(info, "sample_bytes"));
	r = codec_take_domains(json_object_get(info, "domains"), &reader->domains);
	return r < 0 ? r : codec_take_unknown(json_object_get(info, "unknown"), &s->unknown);
}

/* --- rows --- */

static bool is_u32(json_int_t n)
{
	return n >= 0 && n <= UINT32_MAX;
}

/* The local id of text number n; UINT32_MAX, which snapshot_check() refuses, for one not come yet. */
static uint32_t text_id(const struct codec_snapshot_reader *reader, json_int_t n)
{
	return n >= 0 && (uint64_t)n < reader->texts.count ? reader->texts.items[n] : UINT32_MAX;
}

static int take_string(struct codec_snapshot_reader *reader, const json_t *json)
{
	uint32_t *slot;
	int64_t id;
	char *text;

	if (!json_is_string(json))
		return -EBADMSG;
	text = codec_text(json_string_value(json));
	if (!text)
		return -ENOMEM;
	id = strtab_add(reader->snapshot->strings, text);
	free(text);
	if (id < 0)
		return (int)id;
	slot = vec_push(&reader->texts);
	if (!slot)
		return -ENOMEM;
	*slot = (uint32_t)id;
	return 0;
}

static int take_module(struct codec_snapshot_reader *reader, const json_int_t *cells)
{
	struct snapshot_module *module = vec_push(&reader->snapshot->modules);
	json_int_t *build_id = vec_push(&reader->build_ids);

	if (!module || !build_id)
		return -ENOMEM;
	module->path = text_id(reader, cells[0]);
	*build_id = cells[1];
	return module->path == UINT32_MAX ? -EBADMSG : 0;
}

static int take_frame(struct codec_snapshot_reader *reader, const json_int_t *c)
{
	struct snapshot_frame *f;

	if (c[0] < -1 || c[0] >= UINT32_MAX || c[1] < 0 || c[1] > UINT16_MAX || !is_u32(c[2]) ||
	    !is_u32(c[3]) || !is_u32(c[4]) || !is_u32(c[5]))
		return -EBADMSG;
	f = vec_push(&reader->snapshot->frames);
	if (!f)
		return -ENOMEM;
	f->frame.module = c[0] < 0 ? MODULE_NONE : (uint32_t)c[0];
	f->frame.kind = (uint16_t)c[1];
	f->frame.offset = (uint64_t)c[2] << 32 | (uint64_t)c[3];
	f->first_location = (uint32_t)c[4];
	f->location_count = (uint32_t)c[5];
	return 0;
}

static int take_location(struct codec_snapshot_reader *reader, const json_int_t *c)
{
	struct snapshot_location *l;

	if (!is_u32(c[2]) || !is_u32(c[3]) || c[4] < 0 || c[4] > 1)
		return -EBADMSG;
	l = vec_push(&reader->snapshot->locations);
	if (!l)
		return -ENOMEM;
	l->function = text_id(reader, c[0]);
	l->file = text_id(reader, c[1]);
	l->line = (uint32_t)c[2];
	l->function_offset = (uint32_t)c[3];
	l->inlined = c[4] != 0;
	return l->function == UINT32_MAX || l->file == UINT32_MAX ? -EBADMSG : 0;
}

static int take_node(struct codec_snapshot_reader *reader, const json_int_t *c)
{
	struct stack_node *node;

	if (!is_u32(c[0]) || !is_u32(c[1]))
		return -EBADMSG;
	node = vec_push(&reader->snapshot->nodes);
	if (!node)
		return -ENOMEM;
	node->parent = (uint32_t)c[0];
	node->frame = (uint32_t)c[1];
	return 0;
}

static int take_trace(struct codec_snapshot_reader *reader, const json_int_t *c)
{
	struct snapshot_trace *t;

	if (!is_u32(c[0]) || !is_u32(c[1]))
		return -EBADMSG;
	for (int i = 2; i < 9; i++) {
		if (c[i] < 0)
			return -EBADMSG;
	}
	t = vec_push(&reader->snapshot->traces);
	if (!t)
		return -ENOMEM;
	t->stack = (uint32_t)c[0];
	t->domain = domain_map_here(&reader->domains, (uint32_t)c[1]);
	t->live_blocks = (uint64_t)c[2];
	t->live_bytes = (uint64_t)c[3];
	t->total_blocks = (uint64_t)c[4];
	t->total_bytes = (uint64_t)c[5];
	t->temporary_blocks = (uint64_t)c[6];
	t->peak_blocks = (uint64_t)c[7];
	t->peak_bytes = (uint64_t)c[8];
	return 0;
}

static int take_block(struct codec_snapshot_reader *reader, const json_int_t *c)
{
	struct snapshot_block *b;

	if (!is_u32(c[0]) || !is_u32(c[1]) || c[2] < 0 || !is_u32(c[3]) || c[4] < 0 || !is_u32(c[5]))
		return -EBADMSG;
	b = vec_push(&reader->snapshot->blocks);
	if (!b)
		return -ENOMEM;
	b->address = (uint64_t)c[0] << 32 | (uint64_t)c[1];
	b->size = (uint64_t)c[2];
	b->trace = (uint32_t)c[3];
	b->age_ns = (uint64_t)c[4];
	b->thread = (uint32_t)c[5];
	return 0;
}

/* Of the next trace. */
static int take_samples(struct codec_snapshot_reader *reader, const json_int_t *c)
{
	struct snapshot_trace *t;

	if (reader->samples >= reader->snapshot->traces.count || c[0] < 0 || c[1] < 0 || c[2] < 0)
		return -EBADMSG;
	t = &reader->snapshot->traces.items[reader->samples++];
	t->samples = (uint64_t)c[0];
	t->blocks_deviation = (uint64_t)c[1];
	t->bytes_deviation = (uint64_t)c[2];
	return 0;
}

typedef int (*take_cells)(struct codec_snapshot_reader *reader, const json_int_t *cells);

static const take_cells takers[TABLE_COUNT] = {
	[TABLE_MODULES] = take_module, [TABLE_FRAMES] = take_frame,
	[TABLE_LOCATIONS] = take_location, [TABLE_NODES] = take_node,
	[TABLE_TRACES] = take_trace, [TABLE_BLOCKS] = take_block,
	[TABLE_SAMPLES] = take_samples,
};

static int take_row(struct codec_snapshot_reader *reader, enum codec_table table, const json_t *row)
{
	size_t columns = codec_tables[table].columns;
	json_int_t cells[CODEC_COLUMNS_MAX];

	if (table == TABLE_STRINGS)
		return take_string(reader, row);
	if (!json_is_array(row) || json_array_size(row) != columns)
		return -EBADMSG;
	for (size_t i = 0; i < columns; i++) {
		const json_t *cell = json_array_get(row, i);

		if (!json_is_integer(cell))
			return -EBADMSG;
		cells[i] = json_integer_value(cell);
	}
	return takers[table](reader, cells);
}

static int take_table(struct codec_snapshot_reader *reader, enum codec_table table, const json_t *rows)
{
	if (!json_is_array(rows))
		return -EBADMSG;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		int r = take_row(reader, table, json_array_get(rows, i));

		if (r < 0)
			return r;
	}
	return 0;
}

int codec_snapshot_reader_feed(struct codec_snapshot_reader *reader, const json_t *tables)
{
	const json_t *info = json_object_get(tables, "info");
	int r = 0;

	if (!json_is_object(tables))
		return -EBADMSG;
	if (info && !json_is_null(info))
		r = take_info(reader, info);
	for (int table = 0; r == 0 && table < TABLE_COUNT; table++) {
		const json_t *rows = json_object_get(tables, codec_tables[table].name);

		if (rows && !json_is_null(rows))
			r = take_table(reader, (enum codec_table)table, rows);
	}
	return r;
}

/* --- the end --- */

static int hex_value(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static int parse_build_id(const char *hex, struct snapshot_module *module)
{
	size_t len = strlen(hex);

	if (len % 2 != 0 || len / 2 > BUILD_ID_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < len / 2; i++) {
		int high = hex_value(hex[i * 2]), low = hex_value(hex[i * 2 + 1]);

		if (high < 0 || low < 0)
			return -EBADMSG;
		module->build_id[i] = (uint8_t)(high << 4 | low);
	}
	module->build_id_len = (uint32_t)(len / 2);
	return 0;
}

static int take_build_ids(struct codec_snapshot_reader *reader)
{
	for (size_t i = 0; i < reader->build_ids.count; i++) {
		uint32_t id = text_id(reader, reader->build_ids.items[i]);

		if (id == UINT32_MAX || parse_build_id(strtab_get(reader->snapshot->strings, id),
						       &reader->snapshot->modules.items[i]) < 0)
			return -EBADMSG;
	}
	return 0;
}

int codec_snapshot_reader_finish(struct codec_snapshot_reader *reader, struct snapshot **ret,
				 const char **ret_reason)
{
	struct snapshot *s = reader->snapshot;
	const char *reason = "its tables do not begin with the root";
	int r = -EBADMSG;

	if (!reader->informed)
		reason = "it says nothing about its process";
	else if (take_build_ids(reader) < 0)
		reason = "a build-id is malformed";
	else if (s->frames.count > 0 && s->nodes.count > 0)
		r = snapshot_check(s, &reason);
	if (r < 0) {
		*ret_reason = reason;
		return r;
	}
	*ret = snapshot_ref(s);
	return 0;
}
