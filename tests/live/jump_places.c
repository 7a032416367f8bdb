#include "jump_places.h"
#include "live.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Behind a return nothing is run. */
static unsigned starts_of(const uint8_t *text)
{
	unsigned starts = arch_starts_within(text, PLACE_TEXT) | 1;

	for (unsigned i = 0; i < ARCH_JUMP_SIZE; i++) {
		if ((starts & 1U << i) && (text[i] == 0xc3 || (text[i] == 0xf3 && text[i + 1] == 0xc3)))
			return starts & ((2U << i) - 1) & ~1U;
	}
	return starts & ~1U;
}

/* Code of no file, as ours is. */
static bool is_anonymous_code(pid_t pid, uint64_t address)
{
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "re");
	unsigned long long start, end, inode;
	bool found = false;
	char line[4096], permissions[8];

	require(maps != NULL);
	while (!found && fgets(line, sizeof(line), maps))
		found = sscanf(line, "%llx-%llx %7s %*s %*s %llu", &start, &end, permissions, &inode) == 4 && address >= start &&
			address < end && permissions[2] == 'x' && inode == 0;
	fclose(maps);
	return found;
}

static void note_place(struct places *places, pid_t pid, uint64_t address, const uint8_t *file, const uint8_t *memory)
{
	struct place *place = &places->items[places->count];
	int32_t distance;

	memcpy(&distance, memory + 1, sizeof(distance));
	if (memory[0] != 0xe9 || !is_anonymous_code(pid, address + ARCH_JUMP_SIZE + (uint64_t)(int64_t)distance))
		return;
	require(places->count < PLACES_MAX);
	*place = (struct place){ .address = address, .starts = starts_of(file) };
	memcpy(place->file, file, PLACE_TEXT);
	memcpy(place->memory, memory, ARCH_JUMP_SIZE);
	places->count++;
}

static void compare(struct places *places, pid_t pid, uint64_t start, size_t size, const char *path, uint64_t offset)
{
	uint8_t *memory = malloc(size), *file = calloc(1, size);
	int mem = open(live_text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC), fd = open(path, O_RDONLY | O_CLOEXEC);

	require(memory && file && mem >= 0 && fd >= 0);
	require(pread(mem, memory, size, (off_t)start) == (ssize_t)size);
	require(pread(fd, file, size, (off_t)offset) > 0);
	for (size_t i = 0; i + PLACE_TEXT <= size; i++) {
		if (memory[i] == file[i])
			continue;
		note_place(places, pid, start + i, file + i, memory + i);
		i += ARCH_JUMP_SIZE - 1;
	}
	close(mem);
	close(fd);
	free(memory);
	free(file);
}

const struct places *find_places(pid_t pid)
{
	static struct places places;
	FILE *maps = fopen(live_text("/proc/%d/maps", pid), "re");
	char line[4096], permissions[8], path[4096];
	unsigned long long start, end, offset;

	require(maps != NULL);
	places.count = 0;
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %4095s", &start, &end, permissions, &offset, path) == 5 &&
		    permissions[2] == 'x' && path[0] == '/')
			compare(&places, pid, start, end - start, path, offset);
	}
	fclose(maps);
	return &places;
}

unsigned starts_within(const struct places *places)
{
	unsigned count = 0;

	for (size_t i = 0; i < places->count; i++)
		count += (unsigned)__builtin_popcount(places->items[i].starts);
	return count;
}

void require_bytes(pid_t pid, const struct place *place, const uint8_t *bytes)
{
	int mem = open(live_text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC);
	uint8_t there[ARCH_JUMP_SIZE];

	require(mem >= 0 && pread(mem, there, sizeof(there), (off_t)place->address) == sizeof(there));
	close(mem);
	if (memcmp(there, bytes, sizeof(there)) != 0)
		live_fail("at %#llx there is %02x %02x %02x %02x %02x", (unsigned long long)place->address, there[0], there[1], there[2],
			  there[3], there[4]);
}

void require_jumps(pid_t pid, const struct places *places)
{
	for (size_t i = 0; i < places->count; i++)
		require_bytes(pid, &places->items[i], places->items[i].memory);
}
