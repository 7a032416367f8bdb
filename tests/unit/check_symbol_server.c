/* The symbolizer process: its messages, what it has given up, and that hostile files do no more
 * than end it. */
#define _GNU_SOURCE

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/proc.h"
#include "symbol/answers.h"
#include "symbol/confine.h"
#include "base/sanitized.h"
#include "share.h"
#include "symbol_fixture.h"
#include "symbolizer_client.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t state = 1;

static uint64_t random_below(uint64_t limit)
{
	return hash_u64(++state) % limit;
}

/* --- messages --- */

static size_t good_answers(uint64_t *message)
{
	static const struct symbol_location locations[] = {
		{ "inner", "/a/inner.h", 7, 3, true }, { "outer", "/a/outer.c", 90, 77, false },
	};
	struct answers *answers = answers_new();
	size_t len;

	answers_begin(answers, 4, 2, 10);
	ck_assert(answers_add(answers, locations, 2));
	ck_assert(answers_add(answers, NULL, 0));
	ck_assert(answers_add(answers, locations + 1, 1));
	memcpy(message, answers_finish(answers, &len), SYMBOL_WIRE_MESSAGE_MAX);
	answers_free(answers);
	return len;
}

START_TEST(answers_come_out_as_they_went_in)
{
	uint64_t message[SYMBOL_WIRE_MESSAGE_MAX / sizeof(uint64_t)];
	size_t len = good_answers(message);
	const struct symbol_wire_answers *answers = (const void *)message;
	const struct symbol_wire_location *location = symbol_wire_locations(answers);
	const char *text = symbol_wire_text(answers);

	ck_assert_int_eq(symbol_wire_check(message, len, true), 0);
	ck_assert_uint_eq(answers->first, 10);
	ck_assert_uint_eq(answers->count, 3);
	ck_assert_uint_eq(symbol_wire_counts(answers)[0], 2);
	ck_assert_uint_eq(symbol_wire_counts(answers)[1], 0);
	ck_assert_uint_eq(symbol_wire_counts(answers)[2], 1);
	ck_assert_str_eq(text + location[0].function, "inner");
	ck_assert_str_eq(text + location[0].file, "/a/inner.h");
	ck_assert_str_eq(text + location[2].function, "outer");
	ck_assert_uint_eq(location[2].line, 90);
	ck_assert_uint_eq(location[2].function_offset, 77);
	ck_assert_uint_eq(location[1].function, location[2].function);
}
END_TEST

START_TEST(a_full_message_is_sent_and_the_next_one_goes_on)
{
	static char names[200][SYMBOL_NAME_MAX];
	struct answers *answers = answers_new();
	size_t messages = 1, added = 0, len;

	answers_begin(answers, 1, 0, 0);
	for (size_t i = 0; i < 200; i++) {
		struct symbol_location location = { .function = names[i] };

		memset(names[i], 'a' + (int)(i % 26), SYMBOL_NAME_MAX - 1);
		if (!answers_add(answers, &location, 1)) {
			const void *message = answers_finish(answers, &len);

			ck_assert_int_eq(symbol_wire_check(message, len, true), 0);
			added += answers_count(answers);
			messages++;
			answers_begin(answers, 1, 0, (uint32_t)i);
			ck_assert(answers_add(answers, &location, 1));
		}
	}
	ck_assert_uint_gt(messages, 10);
	ck_assert_uint_eq(added + answers_count(answers), 200);
	answers_free(answers);
}
END_TEST

START_TEST(one_answer_too_large_for_a_message_loses_texts_but_fits)
{
	static char names[SYMBOL_LOCATIONS_MAX][SYMBOL_NAME_MAX];
	struct symbol_location locations[SYMBOL_LOCATIONS_MAX] = { 0 };
	struct answers *answers = answers_new();
	const void *message;
	size_t len;

	for (size_t i = 0; i < SYMBOL_LOCATIONS_MAX; i++) {
		memset(names[i], 'a' + (int)(i % 26), SYMBOL_NAME_MAX - 1);
		locations[i].function = names[i];
	}
	answers_begin(answers, 1, 0, 0);
	ck_assert(answers_add(answers, locations, SYMBOL_LOCATIONS_MAX));
	message = answers_finish(answers, &len);
	ck_assert_int_eq(symbol_wire_check(message, len, true), 0);
	answers_free(answers);
}
END_TEST

static void set_length(uint64_t *message, size_t len)
{
	uint32_t length = (uint32_t)len;

	memcpy((char *)message + offsetof(struct symbol_wire_head, length), &length, sizeof(length));
}

START_TEST(a_message_of_the_wrong_length_or_direction_is_refused)
{
	uint64_t message[SYMBOL_WIRE_MESSAGE_MAX / sizeof(uint64_t)];
	size_t len = good_answers(message);

	ck_assert_int_eq(symbol_wire_check(message, len, false), -EBADMSG);
	for (size_t cut = 0; cut < len; cut++) {
		set_length(message, cut);
		ck_assert_int_eq(symbol_wire_check(message, cut, true), -EBADMSG);
	}
	set_length(message, len + 1);
	ck_assert_int_eq(symbol_wire_check(message, len + 1, true), -EBADMSG);
}
END_TEST

START_TEST(a_file_is_needed_by_an_absolute_path_with_an_end)
{
	static const struct {
		const char *path;
		size_t len;
		bool fits;
	} paths[] = { { "/a", 3, true }, { "/", 2, true }, { "a", 2, false }, { "", 1, false }, { "/a", 2, false },
		      { "/a\0b", 5, false } };
	uint64_t space[64];
	struct symbol_wire_need *need = (struct symbol_wire_need *)space;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		size_t len = sizeof(*need) + paths[i].len;

		need->head = (struct symbol_wire_head){ SYMBOL_WIRE_NEED, 1, 0, (uint32_t)len };
		memcpy(need->path, paths[i].path, paths[i].len);
		ck_assert_int_eq(symbol_wire_check(need, len, true), paths[i].fits ? 0 : -EBADMSG);
		ck_assert_int_eq(symbol_wire_check(need, len, false), -EBADMSG);
	}
}
END_TEST

/* As the daemon does: answer by answer, location by location. */
static size_t read_answers(const struct symbol_wire_answers *answers)
{
	const struct symbol_wire_location *at = symbol_wire_locations(answers);
	size_t sum = 0;

	for (uint32_t i = 0; i < answers->count; i++) {
		for (uint32_t j = 0; j < symbol_wire_counts(answers)[i]; j++, at++) {
			sum += strlen(symbol_wire_text(answers) + at->function);
			sum += strlen(symbol_wire_text(answers) + at->file);
		}
	}
	ck_assert_ptr_eq(at, symbol_wire_locations(answers) + answers->location_count);
	return sum;
}

/* Whatever the check lets through can be read without leaving the message. */
START_TEST(an_accepted_message_is_safe_to_read)
{
	size_t accepted = 0, refused = 0, sum = 0;

	for (int i = 0; i < (int)share_of(300000); i++) {
		uint64_t message[SYMBOL_WIRE_MESSAGE_MAX / sizeof(uint64_t)];
		size_t len = good_answers(message);
		const struct symbol_wire_answers *answers = (const void *)message;
		char *copy;

		for (uint64_t flips = random_below(4) + 1; flips > 0; flips--)
			((unsigned char *)message)[random_below(len)] = (unsigned char)random_below(256);
		if (symbol_wire_check(message, len, true) < 0) {
			refused++;
			continue;
		}
		if (answers->head.type != SYMBOL_WIRE_ANSWERS)
			continue;
		accepted++;
		copy = malloc(len);      /* of the exact size, for AddressSanitizer */
		memcpy(copy, message, len);
		answers = (const void *)copy;
		sum += read_answers(answers);
		free(copy);
	}
	printf("messages: %zu accepted, %zu refused\n", accepted, refused);
	ck_assert(accepted > share_of(1000) && refused > share_of(1000) && sum > 0);
}
END_TEST

/* --- the process --- */

static int make_levels(void)
{
	int fd;

	fixture_run("gcc -g -O2 -o levels $DATA/levels.c");
	fd = open("levels", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

struct seen {
	char function[256], file[256];
	uint32_t line;
	size_t count;
};

static void see(void *context, size_t i, const char *function, const char *file, uint32_t line)
{
	struct seen *seen = context;

	(void)i;
	snprintf(seen->function, sizeof(seen->function), "%s", function);
	snprintf(seen->file, sizeof(seen->file), "%s", file);
	seen->line = line;
	seen->count++;
}

static void assert_works(struct client *client, int fd)
{
	uint64_t address = fixture_address("levels", "take", NULL);
	struct seen seen = { 0 };

	ck_assert_int_eq(client_open(client, 5, fd), 0);
	ck_assert_int_eq(client_resolve(client, 5, &address, 1, see, &seen), 1);
	ck_assert_str_eq(seen.function, "take");
	ck_assert_str_eq(seen.file, SYMBOL_DATA "/levels.c");
	ck_assert_uint_eq(seen.line, 10);
}

START_TEST(the_process_names_addresses_and_ends_with_the_daemon)
{
	struct client client;
	int fd = make_levels(), status;

	client_start(&client);
	assert_works(&client, fd);
	assert_works(&client, fd);
	status = client_stop(&client);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(fd);
}
END_TEST

static void assert_file_is_refused(struct client *client, int fd, int error)
{
	ck_assert_int_eq(client_open(client, 0, fd), error);
	if (fd >= 0)
		close(fd);
}

START_TEST(what_is_no_elf_file_is_an_answer_and_not_an_end)
{
	int fd = make_levels(), pipes[2];
	struct client client;

	ck_assert_int_eq(pipe(pipes), 0);
	client_start(&client);
	assert_file_is_refused(&client, -1, -EBADF);
	assert_file_is_refused(&client, open("/", O_RDONLY), -ENOEXEC);
	assert_file_is_refused(&client, open("/dev/zero", O_RDONLY), -ENOEXEC);
	assert_file_is_refused(&client, pipes[0], -ENOEXEC);
	assert_file_is_refused(&client, memfd_create("empty", 0), -ENOEXEC);
	assert_works(&client, fd);
	client_stop(&client);
	close(pipes[1]);
	close(fd);
}
END_TEST

static void assert_ends_after(const void *message, size_t len)
{
	struct client client;
	int hung, status;

	client_start(&client);
	client_send(&client, message, len, -1);
	ck_assert_ptr_null(client_receive(&client, &hung));
	ck_assert(!hung);
	status = client_stop(&client);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

START_TEST(garbage_on_the_socket_ends_the_process)
{
	struct symbol_wire_resolve nothing = { { SYMBOL_WIRE_RESOLVE, 1, 0, sizeof(nothing) }, 0, 0 };
	struct { struct symbol_wire_head head; uint32_t count, pad; struct symbol_wire_query query; }
		unopened = { { SYMBOL_WIRE_RESOLVE, 1, 3, sizeof(unopened) }, 1, 0, { 4096, 0, 0 } };
	struct symbol_wire_head wrong = { SYMBOL_WIRE_OPEN, 1, SYMBOL_WIRE_MODULES_MAX, sizeof(wrong) };

	assert_ends_after("x", 1);
	assert_ends_after(&nothing, sizeof(nothing));
	assert_ends_after(&unopened, sizeof(unopened));
	assert_ends_after(&wrong, sizeof(wrong));
}
END_TEST

static char *read_status(pid_t pid)
{
	static char text[8192];
	char path[64];
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	ck_assert_ptr_nonnull(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	fclose(file);
	return text;
}

static void assert_status(const char *status, const char *line)
{
	ck_assert_msg(strstr(status, line), "not in /proc/PID/status: %s", line);
}

static void assert_limit(pid_t pid, const char *name, uint64_t max)
{
	fixture_run("grep '^%s ' /proc/%d/limits | sed 's/^%s *//' | awk '{ exit !($2 != \"unlimited\" && "
		    "$2 + 0 <= %ju) }'", name, pid, name, (uintmax_t)max);
}

START_TEST(the_process_has_given_up_its_privileges)
{
	struct client client;
	const char *status;

	client_start(&client);
	status = read_status(client.pid);
	assert_status(status, "\nCapEff:\t0000000000000000\n");
	assert_status(status, "\nCapPrm:\t0000000000000000\n");
	assert_status(status, "\nCapInh:\t0000000000000000\n");
	assert_status(status, "\nCapAmb:\t0000000000000000\n");
	assert_status(status, "\nNoNewPrivs:\t1\n");
	if (!SANITIZED)
		assert_status(status, "\nSeccomp:\t2\n");
	if (geteuid() == 0) {
		assert_status(status, "\nUid:\t65534\t65534\t65534\t65534\n");
		assert_status(status, "\nGid:\t65534\t65534\t65534\t65534\n");
		assert_status(status, "\nGroups:\t \n");
		assert_status(status, "\nCapBnd:\t0000000000000000\n");
	}
	assert_limit(client.pid, "Max core file size", 0);
	assert_limit(client.pid, "Max processes", 0);
	assert_limit(client.pid, "Max open files", CONFINE_DESCRIPTORS_MAX);
	assert_limit(client.pid, "Max file size", CONFINE_FILE_MAX);
#if !SANITIZED
	assert_limit(client.pid, "Max address space", CONFINE_MEMORY_MAX);
#endif
	client_stop(&client);
}
END_TEST

/* What the process becomes, and what it then gets of the kernel: 0, or which of these it may do all the same. */
static int do_forbidden_things(void)
{
	if (confine(3) < 0)
		return 1;
	if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EPERM)
		return 2;
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || errno != EPERM)
		return 3;
	if (fork() >= 0)
		return 4;
	if (execl("/bin/true", "true", NULL) == 0 || errno != EPERM)
		return 5;
	if (kill(getppid(), 0) == 0)
		return 6;
	return malloc(10u << 20) ? 0 : 7;
}

START_TEST(the_process_can_open_start_and_reach_nothing)
{
	int status;
	pid_t pid;

	if (SANITIZED)
		return;         /* there is no filter then */
	pid = fork();
	if (pid == 0)
		_exit(do_forbidden_things());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* A service may run as an ordinary user with some of root's capabilities. */
START_TEST(a_user_with_capabilities_loses_them_too)
{
	struct client client;
	const char *status;

	if (geteuid() != 0) {
		puts("not tried: only root can hand capabilities to a user");
		return;
	}
	client_start_by(&client, "exec setpriv --reuid=12345 --regid=12345 --clear-groups "
			"--inh-caps=+chown --ambient-caps=+chown " SYMBOLIZER);
	status = read_status(client.pid);
	assert_status(status, "\nUid:\t12345\t12345\t12345\t12345\n");
	assert_status(status, "\nCapEff:\t0000000000000000\n");
	assert_status(status, "\nCapPrm:\t0000000000000000\n");
	assert_status(status, "\nCapInh:\t0000000000000000\n");
	assert_status(status, "\nCapAmb:\t0000000000000000\n");
	client_stop(&client);
}
END_TEST

START_TEST(the_process_inherits_no_descriptor)
{
	int fds[3] = { dup(1), dup(1), open("/", O_RDONLY) };      /* not close-on-exec */
	struct client client;

	client_start(&client);
	fixture_run("ls /proc/%d/fd | sort -n | tr '\\n' ' ' > open && test \"$(cat open)\" = '0 1 2 3 '",
		    client.pid);
	client_stop(&client);
	for (size_t i = 0; i < 3; i++)
		close(fds[i]);
}
END_TEST

START_TEST(started_by_hand_the_program_says_what_it_is)
{
	ck_assert(!fixture_try("%s 3<&- 2> said", SYMBOLIZER));
	fixture_run("grep -q 'started by allocwatchd' said");
}
END_TEST

/* --- hostile files --- */

#define QUERIES 32

struct span {
	size_t at, len;
};

struct sample {
	unsigned char *bytes;
	size_t len;
	VEC_OF(struct span) targets;         /* worth flipping bits in */
	uint64_t addresses[QUERIES];
};

static void sample_load(struct sample *sample, const char *path)
{
	struct addresses addresses;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *section = NULL;
	size_t names;
	Elf *elf;

	ck_assert_int_eq(fstat(fd, &st), 0);
	memset(sample, 0, sizeof(*sample));
	sample->len = (size_t)st.st_size;
	sample->bytes = malloc(sample->len);
	ck_assert_int_eq(read(fd, sample->bytes, sample->len), st.st_size);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	ck_assert_int_eq(elf_getshdrstrndx(elf, &names), 0);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr shdr;
		const char *name;

		gelf_getshdr(section, &shdr);
		name = elf_strptr(elf, names, shdr.sh_name);
		if (strncmp(name, ".debug_", 7) == 0 || strstr(name, "sym") || strstr(name, "gnu"))
			*vec_push(&sample->targets) = (struct span){ shdr.sh_offset, shdr.sh_size };
	}
	*vec_push(&sample->targets) = (struct span){ 0, 64 + 13 * 56 };
	*vec_push(&sample->targets) = (struct span){ sample->len - 40 * 64, 40 * 64 };
	elf_end(elf);
	close(fd);
	fixture_function_addresses("levels.fuzz", QUERIES / 2, &addresses);
	for (size_t i = 0; i < QUERIES; i++)
		sample->addresses[i] = i % 2 ? addresses.items.items[i / 2 % addresses.items.count] :
					       random_below(0x5000);
	vec_fini(&addresses.items);
}

static void flip(unsigned char *bytes, const struct span *span)
{
	size_t at = span->at + random_below(span->len);

	switch (random_below(4)) {
	case 0:
		bytes[at] ^= (unsigned char)(1u << random_below(8));
		break;
	case 1:
		bytes[at] = (unsigned char)random_below(256);
		break;
	case 2:
		bytes[at] = random_below(2) ? 0xff : 0;
		break;
	default:                         /* a length or an offset */
		if (at + 4 <= span->at + span->len) {
			uint32_t value = (uint32_t)hash_u64(++state) >> random_below(32);

			memcpy(bytes + at, &value, 4);
		}
	}
}

static int mutate(const struct sample *sample)
{
	int fd = memfd_create("mutation", MFD_CLOEXEC);
	size_t len = random_below(10) == 0 ? random_below(sample->len) : sample->len;
	unsigned char *bytes = malloc(sample->len);

	memcpy(bytes, sample->bytes, sample->len);
	for (uint64_t n = random_below(12) + 1; n > 0; n--) {
		const struct span *span =
			&sample->targets.items[random_below(sample->targets.count)];

		if (span->len > 0)
			flip(bytes, span);
	}
	ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
	free(bytes);
	return fd;
}

struct tally {
	size_t tried, opened, named, died, hung;
};

static void feed(struct client *client, const struct sample *sample, struct tally *tally)
{
	int fd = mutate(sample);
	int64_t r = client_open(client, 1, fd);

	close(fd);
	tally->tried++;
	if (r == 0) {
		tally->opened++;
		r = client_resolve(client, 1, sample->addresses, QUERIES, NULL, NULL);
	}
	tally->named += r > 0;
	tally->died += r == -EPIPE;
	tally->hung += r == -ETIMEDOUT;
	if (r == -EPIPE || r == -ETIMEDOUT) {
		if (r == -ETIMEDOUT)
			kill(client->pid, SIGKILL);
		client_stop(client);
		client_start(client);
	}
}

/* libdw may fall over a hostile file; code of this project may not. */
static void assert_no_report_of_ours(void)
{
	ck_assert(!fixture_try("grep -E 'runtime error' stderr | grep -E '/src/(symbol|base)/'"));
	ck_assert(!fixture_try("grep -E -A3 '^    #0 ' stderr | grep -E '^    #[01] .*/src/(symbol|base)/'"));
	fixture_run("test ! -e stderr || ! grep -q 'Assertion' stderr");
}

START_TEST(thousands_of_damaged_files_end_the_process_at_most)
{
	static const char *const builds[] = {
		"gcc -O2 -gdwarf-5 -o levels.fuzz $DATA/levels.c",
		"gcc -O2 -gdwarf-4 -o levels.fuzz $DATA/levels.c",
		"clang -O2 -gdwarf-5 -o levels.fuzz $DATA/levels.c",
		"gcc -O2 -gdwarf-5 -gz -o levels.fuzz $DATA/levels.c",
		"gcc -O2 -o levels.fuzz $DATA/levels.c",
		("gcc -O2 -o levels.fuzz $DATA/levels.c && xz -k -c levels.fuzz > mini.xz && "
		 "objcopy --add-section .gnu_debugdata=mini.xz levels.fuzz"),
	};
	const char *wanted = getenv("FUZZ_COUNT");
	size_t count = wanted ? strtoul(wanted, NULL, 10) : 700;
	struct tally tally = { 0 };
	struct client client;
	struct sample sample;
	int fd = make_levels();

	state = (uint64_t)_i << 40;
	fixture_run("%s", builds[_i]);
	sample_load(&sample, "levels.fuzz");
	client_start(&client);
	for (size_t i = 0; i < count; i++)
		feed(&client, &sample, &tally);
	assert_works(&client, fd);
	client_stop(&client);
	printf("%s: %zu damaged files, %zu opened, %zu with names, the process died %zu times and hung "
	       "%zu times\n", builds[_i], tally.tried, tally.opened, tally.named, tally.died, tally.hung);
	ck_assert_uint_gt(tally.opened, count / 10);
	ck_assert_uint_gt(tally.named, count / 20);
	assert_no_report_of_ours();
	free(sample.bytes);
	vec_fini(&sample.targets);
	close(fd);
}
END_TEST

/* --- much debug information --- */

#define LARGE_FUNCTIONS 3000
#define LARGE_FRAMES 5000
/* The bounds that allocwatchd(8) states: of memory, for each byte of the file, and for the process itself; of a processor's time, for
 * 500 MB, and to begin with; of time, SYMBOLIZE_MODULE_MS.  The client waits for an answer no longer than the daemon. */
#define LARGE_BYTES_A_BYTE 3
#define LARGE_BYTES (64u << 20)
#define LARGE_CPU_MS 15000
#define LARGE_CPU_OF (500u << 20)
#define LARGE_CPU_BEGIN_MS 1000
#define LARGE_MS 120000

static uint64_t peak_bytes(pid_t pid)
{
	char path[32], *text, *at;
	uint64_t kib;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	ck_assert_int_eq(file_read_text(path, 1u << 16, &text, &len), 0);
	at = strstr(text, "VmHWM:");
	ck_assert_ptr_nonnull(at);
	kib = strtoull(at + strlen("VmHWM:"), NULL, 10);
	free(text);
	return kib * 1024;
}

static void count_lines(void *context, size_t i, const char *function, const char *file, uint32_t line)
{
	(void)i, (void)file;
	*(size_t *)context += strstr(function, "function_") && line > 0;
}

static uint64_t cpu_ms(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return proc_stat_cpu(path) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* As much at a time as the daemon asks. */
static size_t name_lines(struct client *client, const struct addresses *addresses)
{
	size_t named = 0, left;

	for (size_t i = 0; i < addresses->items.count; i += SYMBOL_WIRE_QUERIES_MAX) {
		left = addresses->items.count - i;
		ck_assert_int_ge(client_resolve(client, 0, addresses->items.items + i,
						left < SYMBOL_WIRE_QUERIES_MAX ? left : SYMBOL_WIRE_QUERIES_MAX, count_lines,
						&named), 0);
	}
	return named;
}

static void require_within_bounds(pid_t symbolizer, uint64_t size, uint64_t took_ms)
{
	uint64_t peak = peak_bytes(symbolizer), cpu = cpu_ms(symbolizer);

	printf("%ju MiB of debug information: %ju ms, %ju ms of a processor's time, %ju MiB\n", (uintmax_t)(size >> 20),
	       (uintmax_t)took_ms, (uintmax_t)cpu, (uintmax_t)(peak >> 20));
	ck_assert_uint_lt(took_ms, LARGE_MS);
	if (SANITIZED) {
		printf("its processor time and memory are the sanitizer's, too: they are not looked at\n");
		return;
	}
	ck_assert_uint_lt(cpu, LARGE_CPU_BEGIN_MS + LARGE_CPU_MS * size / LARGE_CPU_OF);
	ck_assert_uint_lt(peak, LARGE_BYTES + LARGE_BYTES_A_BYTE * size);
}

/* 30 MB of it, or a share; or $LARGE_FILE, which is of 500 MB in make bench-names. */
START_TEST(what_much_debug_information_takes_is_in_proportion_to_it)
{
	const char *path = getenv("LARGE_FILE");
	struct addresses addresses = { 0 };
	struct client client;
	struct stat st;
	uint64_t began;

	if (!path) {
		fixture_run("%s large 16 %u", LARGE_OBJECT, share_of(LARGE_FUNCTIONS));
		path = "large";
	}
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_gt(st.st_size, share_of(25 << 20));
	fixture_function_addresses(path, LARGE_FRAMES, &addresses);
	client_start(&client);
	began = clock_monotonic_ns();
	ck_assert_int_eq(client_open(&client, 0, open(path, O_RDONLY | O_CLOEXEC)), 0);
	ck_assert_uint_gt(name_lines(&client, &addresses), addresses.items.count / 2);
	require_within_bounds(client.pid, (uint64_t)st.st_size, (clock_monotonic_ns() - began) / NSEC_PER_MSEC);
	client_stop(&client);
	vec_fini(&addresses.items);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("symbol server");
	TCase *messages = tcase_create("messages"), *process = tcase_create("process");
	TCase *hostile = tcase_create("hostile"), *large = tcase_create("large");
	SRunner *runner;
	int failed;

	tcase_add_test(messages, answers_come_out_as_they_went_in);
	tcase_add_test(messages, a_full_message_is_sent_and_the_next_one_goes_on);
	tcase_add_test(messages, one_answer_too_large_for_a_message_loses_texts_but_fits);
	tcase_add_test(messages, a_message_of_the_wrong_length_or_direction_is_refused);
	tcase_add_test(messages, a_file_is_needed_by_an_absolute_path_with_an_end);
	tcase_add_test(messages, an_accepted_message_is_safe_to_read);
	tcase_set_timeout(messages, 120);
	suite_add_tcase(suite, messages);

	tcase_add_checked_fixture(process, fixture_enter, fixture_leave);
	tcase_add_test(process, the_process_names_addresses_and_ends_with_the_daemon);
	tcase_add_test(process, what_is_no_elf_file_is_an_answer_and_not_an_end);
	tcase_add_test(process, garbage_on_the_socket_ends_the_process);
	tcase_add_test(process, the_process_has_given_up_its_privileges);
	tcase_add_test(process, the_process_can_open_start_and_reach_nothing);
	tcase_add_test(process, a_user_with_capabilities_loses_them_too);
	tcase_add_test(process, the_process_inherits_no_descriptor);
	tcase_add_test(process, started_by_hand_the_program_says_what_it_is);
	tcase_set_timeout(process, 120);
	suite_add_tcase(suite, process);

	tcase_add_checked_fixture(large, fixture_enter, fixture_leave);
	tcase_add_test(large, what_much_debug_information_takes_is_in_proportion_to_it);
	tcase_set_timeout(large, 600);
	suite_add_tcase(suite, large);

	tcase_add_checked_fixture(hostile, fixture_enter, fixture_leave);
	tcase_add_loop_test(hostile, thousands_of_damaged_files_end_the_process_at_most, 0, 6);
	tcase_set_timeout(hostile, 3600);
	suite_add_tcase(suite, hostile);

	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
