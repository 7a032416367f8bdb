/* The symbolizer: an ELF file with DWARF of somebody who means harm, and the addresses in it.
 *
 * What libdw and libelf do wrong themselves ends a process that has nothing to lose and is started again
 * (symbol/confine.h); it ends a run of this target, too, and is a finding. */
#include "fuzz.h"

#include "symbol/answers.h"
#include "symbol/demangle.h"
#include "symbol/jit_names.h"
#include "symbol/symbol.h"
#include "symbol/wire.h"

#include <errno.h>
#include <string.h>

#define NO_DEBUG_FILES "/nowhere"
#define ADDRESSES 40              /* where the kept inputs have their code */

static void check_locations(const struct symbol_location *locations, int count)
{
	for (int i = 0; i < count; i++) {
		MUST(!locations[i].function || strlen(locations[i].function) <= SYMBOL_NAME_MAX);
		MUST(locations[i].file || locations[i].line == 0);
		MUST(locations[i].inlined == (i + 1 < count));
	}
}

/* What is sent to the daemon is what it accepts. */
static void send(struct answers *answers, uint32_t query, const struct symbol_location *locations, int count)
{
	const void *message;
	size_t len;

	answers_begin(answers, 1, 0, query);
	MUST(answers_add(answers, locations, (size_t)count));
	message = answers_finish(answers, &len);
	MUST(symbol_wire_check(message, len, true) == 0);
}

static void resolve(struct symbol_module *module, uint64_t address, struct answers *answers, uint32_t query)
{
	struct symbol_location locations[SYMBOL_LOCATIONS_MAX];
	int count = symbol_module_resolve(module, address, query % 2, locations);

	MUST(count >= -ENOMEM && count <= SYMBOL_LOCATIONS_MAX);
	if (count <= 0)
		return;
	fuzz_reached(1);
	if (locations[0].file)
		fuzz_reached(2);
	check_locations(locations, count);
	send(answers, query, locations, count);
}

static void fuzz_symbols_run(const uint8_t *data, size_t len)
{
	struct symbol_module *module;
	struct answers *answers;

	if (symbol_module_open(fuzz_file(data, len), NO_DEBUG_FILES, &module) < 0)
		return;
	fuzz_reached(0);
	symbol_module_sources(module);
	answers = answers_new();
	MUST(answers);
	for (uint32_t i = 0; i < ADDRESSES; i++)
		resolve(module, 0x440 + 0x1b * i, answers, i);
	resolve(module, 0, answers, 0);
	resolve(module, UINT64_MAX, answers, 1);
	answers_free(answers);
	symbol_module_free(module);
}

/* A perf map or a jitdump.  The kept inputs have their code at the first addresses. */
static void fuzz_jit_run(const uint8_t *data, size_t len)
{
	struct symbol_location location;
	struct answers *answers;
	struct jit_names *names;

	if (jit_names_open(fuzz_file(data, len), &names) < 0)
		return;
	answers = answers_new();
	MUST(answers);
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		int count = jit_names_resolve(names, 0x1000 + 0x18 * i, i % 2, &location);

		MUST(count >= -ENOMEM && count <= 1);
		if (count <= 0)
			continue;
		MUST(location.function && location.function[0]);
		fuzz_reached(0);
		if (location.file)
			fuzz_reached(1);
		check_locations(&location, count);
		send(answers, i, &location, count);
	}
	jit_names_resolve(names, UINT64_MAX, false, &location);
	answers_free(answers);
	jit_names_free(names);
}

static void fuzz_demangle_run(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1), *name;

	MUST(text);
	memcpy(text, data, len);
	text[len] = '\0';
	if (demangle_wanted(text))
		fuzz_reached(0);
	name = demangle(text);
	if (name)
		fuzz_reached(1);
	free(name);
	free(text);
}

const struct fuzz_target fuzz_targets[] = {
	{ "symbols", fuzz_symbols_run, NULL, { "an ELF file", "a name", "a line" } },
	{ "jit", fuzz_jit_run, NULL, { "a name", "a line" } },
	{ "demangle", fuzz_demangle_run, NULL, { "mangled", "demangled" } },
	{ 0 }
};
