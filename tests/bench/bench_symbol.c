/* How many distinct frames a second get their names, on a file with much debug information: a fresh
 * module, the same module again, the same through the symbolizer process, and libdw's own per-frame
 * calls for comparison.  Prints one JSON object a line.
 *
 * bench_symbol [FILE [FRAMES [SYMBOLIZER]]] */
#define _GNU_SOURCE

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "symbol/elf_file.h"
#include "symbol/symbol.h"
#include "symbol/wire.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBDW_FRAMES_MAX 2000      /* it is slow */
#define MEBIBYTE (1024.0 * 1024.0)
#define ATTEMPTS 50                /* random addresses tried per frame wanted */

struct bench {
	const char *path;
	uint64_t *frames;
	size_t count, wanted;
};

static void die(const char *what)
{
	fprintf(stderr, "bench_symbol: %s\n", what);
	exit(1);
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("cannot open the file");
	return fd;
}

static struct symbol_module *open_module(const struct bench *bench)
{
	struct symbol_module *module;

	if (symbol_module_open(open_file(bench->path), SYMBOL_DEBUG_ROOT, &module) < 0)
		die("cannot read the file");
	return module;
}

/* Random places in the code that have a function and a line. */
static void choose_frames(struct bench *bench)
{
	struct symbol_module *module = open_module(bench);
	struct symbol_location locations[SYMBOL_LOCATIONS_MAX];
	struct elf_file *file;
	uint64_t total = 0;

	if (elf_file_open(open_file(bench->path), &file) < 0)
		die("cannot read the file");
	for (size_t i = 0; i < file->code.count; i++)
		total += file->code.items[i].hi - file->code.items[i].lo;
	bench->frames = calloc(bench->wanted, sizeof(*bench->frames));
	for (uint64_t i = 0; i < bench->wanted * ATTEMPTS && bench->count < bench->wanted; i++) {
		uint64_t at = hash_u64(i + 1) % total;
		size_t s = 0;

		while (at >= file->code.items[s].hi - file->code.items[s].lo)
			at -= file->code.items[s].hi - file->code.items[s].lo, s++;
		at += file->code.items[s].lo;
		if (symbol_module_resolve(module, at, false, locations) > 0 && locations[0].file)
			bench->frames[bench->count++] = at;
	}
	elf_file_free(file);
	symbol_module_free(module);
	if (bench->count == 0)
		die("no address of the file has a line");
}

static void report(const struct bench *bench, const char *what, size_t frames, uint64_t ns,
		   size_t locations)
{
	printf("{\"bench\": \"symbol\", \"file\": \"%s\", \"case\": \"%s\", \"frames\": %zu, "
	       "\"locations\": %zu, \"seconds\": %.4f, \"frames_per_second\": %.0f}\n", bench->path, what,
	       frames, locations, (double)ns / 1e9, (double)frames * 1e9 / (double)ns);
}

static size_t resolve_all(struct symbol_module *module, const struct bench *bench)
{
	struct symbol_location locations[SYMBOL_LOCATIONS_MAX];
	size_t total = 0;

	for (size_t i = 0; i < bench->count; i++)
		total += (size_t)symbol_module_resolve(module, bench->frames[i], false, locations);
	return total;
}

static void run_module(const struct bench *bench)
{
	uint64_t start = clock_monotonic_ns();
	struct symbol_module *module = open_module(bench);
	size_t locations = resolve_all(module, bench);

	report(bench, "fresh", bench->count, clock_monotonic_ns() - start, locations);
	start = clock_monotonic_ns();
	locations = resolve_all(module, bench);
	report(bench, "again", bench->count, clock_monotonic_ns() - start, locations);
	symbol_module_free(module);
}

/* --- the process --- */

static off_t file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}

static pid_t start_process(const char *program, int *ret_sock)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die("no socket");
	pid = fork();
	if (pid == 0) {
		dup3(pair[1], 3, 0);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	*ret_sock = pair[0];
	return pid;
}

static const struct symbol_wire_head *receive(int sock, uint32_t type)
{
	static uint64_t buf[SYMBOL_WIRE_MESSAGE_MAX / sizeof(uint64_t)];
	int fd;
	ssize_t n = fd_receive_message(sock, buf, sizeof(buf), &fd);
	const struct symbol_wire_head *head = (const void *)buf;

	if (n <= 0 || symbol_wire_check(buf, (size_t)n, true) < 0 || head->type != type)
		die("the symbolizer did not answer");
	return head;
}

static size_t ask(int sock, const uint64_t *frames, size_t count)
{
	union {
		struct symbol_wire_resolve resolve;
		char space[sizeof(struct symbol_wire_resolve) +
			   SYMBOL_WIRE_QUERIES_MAX * sizeof(struct symbol_wire_query)];
	} message = { .resolve = { .head = { SYMBOL_WIRE_RESOLVE, 1, 0, 0 } } };
	size_t done = 0, locations = 0;

	message.resolve.count = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		message.resolve.queries[i] = (struct symbol_wire_query){ frames[i], 0, 0 };
	message.resolve.head.length =
		(uint32_t)(sizeof(message.resolve) + count * sizeof(struct symbol_wire_query));
	if (fd_send_message(sock, &message, message.resolve.head.length, -1) < 0)
		die("the symbolizer does not listen");
	while (done < count) {
		const struct symbol_wire_answers *answers =
			(const void *)receive(sock, SYMBOL_WIRE_ANSWERS);

		done += answers->count;
		locations += answers->location_count;
	}
	return locations;
}

/* The most that it had in memory, parts of the file included; 0: not known. */
static unsigned long peak_kib(pid_t pid)
{
	unsigned long kib = 0;
	char path[32], *text, *at;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (file_read_text(path, 1u << 16, &text, &len) < 0)
		return 0;
	at = strstr(text, "VmHWM:");
	if (at)
		kib = strtoul(at + strlen("VmHWM:"), NULL, 10);
	free(text);
	return kib;
}

static void run_process(const struct bench *bench, const char *program)
{
	struct symbol_wire_head open_head = { SYMBOL_WIRE_OPEN, 1, 0, sizeof(open_head) };
	int sock, fd = open_file(bench->path);
	pid_t pid = start_process(program, &sock);
	size_t locations = 0;
	uint64_t start;

	receive(sock, SYMBOL_WIRE_READY);
	start = clock_monotonic_ns();
	fd_send_message(sock, &open_head, sizeof(open_head), fd);
	close(fd);
	receive(sock, SYMBOL_WIRE_OPENED);
	for (size_t i = 0; i < bench->count; i += SYMBOL_WIRE_QUERIES_MAX) {
		size_t left = bench->count - i;

		locations += ask(sock, bench->frames + i,
				 left < SYMBOL_WIRE_QUERIES_MAX ? left : SYMBOL_WIRE_QUERIES_MAX);
	}
	report(bench, "process", bench->count, clock_monotonic_ns() - start, locations);
	printf("{\"bench\": \"symbol_memory\", \"file\": \"%s\", \"file_mib\": %.1f, \"peak_mib\": %.1f}\n", bench->path,
	       (double)file_size(bench->path) / MEBIBYTE, (double)peak_kib(pid) * 1024 / MEBIBYTE);
	close(sock);
	waitpid(pid, NULL, 0);
}

/* --- libdw, a frame at a time --- */

static int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **ret_name)
{
	(void)module, (void)userdata, (void)name, (void)base;
	(void)file, (void)link, (void)crc, (void)ret_name;
	return -1;
}

static void run_libdw(const struct bench *bench)
{
	static const Dwfl_Callbacks callbacks = {
		.find_debuginfo = no_debuginfo, .section_address = dwfl_offline_section_address,
	};
	size_t count = bench->count < LIBDW_FRAMES_MAX ? bench->count : LIBDW_FRAMES_MAX;
	uint64_t start = clock_monotonic_ns();
	Dwfl *dwfl = dwfl_begin(&callbacks);
	Dwfl_Module *module = dwfl_report_offline(dwfl, "", bench->path, -1);
	size_t found = 0;
	Dwarf_Addr bias;

	dwfl_report_end(dwfl, NULL, NULL);
	if (!module || !dwfl_module_getdwarf(module, &bias)) {
		dwfl_end(dwfl);
		return;      /* its debug information is in another file */
	}
	for (size_t i = 0; i < count; i++) {
		Dwarf_Die *unit = dwfl_module_addrdie(module, bench->frames[i] + bias, &bias);
		Dwarf_Die *scopes = NULL;
		int n = unit ? dwarf_getscopes(unit, bench->frames[i], &scopes) : 0;

		for (int j = 0; j < n; j++) {
			int tag = dwarf_tag(&scopes[j]);

			found += tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
		}
		if (unit)
			dwarf_getsrc_die(unit, bench->frames[i]);
		free(scopes);
	}
	report(bench, "libdw", count, clock_monotonic_ns() - start, found);
	dwfl_end(dwfl);
}

int main(int argc, char **argv)
{
	struct bench bench = {
		.path = argc > 1 ? argv[1] : "/usr/bin/python3.11d",
		.wanted = argc > 2 ? strtoul(argv[2], NULL, 10) : 50000,
	};

	choose_frames(&bench);
	run_module(&bench);
	run_process(&bench, argc > 3 ? argv[3] : "src/allocwatch-symbolizer");
	run_libdw(&bench);
	free(bench.frames);
	return 0;
}
