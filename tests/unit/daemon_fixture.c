#define _GNU_SOURCE
#include "daemon_fixture.h"

#include "base/clock.h"
#include "base/fd.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define TARGETS_MAX 256
#define LOG_MAX (16u << 20)

char test_folder[64], test_socket[96];
pid_t test_daemon;
struct varlink_client *test_client;

static struct { pid_t pid; int pipe; } targets[TARGETS_MAX];
static size_t target_count;

/* --- folder --- */

static void path_in_folder(char *path, size_t space, const char *name)
{
	snprintf(path, space, "%s/%s", test_folder, name);
}

void fixture_setup(void)
{
	strcpy(test_folder, "/tmp/check_daemon.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(test_folder));
	path_in_folder(test_socket, sizeof(test_socket), "sock");
	setenv("FAKE_TRACER_FOLDER", test_folder, 1);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("STATE_DIRECTORY");
	setenv("XDG_CONFIG_HOME", test_folder, 1);      /* not what its user has configured */
	signal(SIGPIPE, SIG_IGN);
}

static void remove_folder(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	char name[512];

	while (dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (unlink(name) < 0)
			remove_folder(name);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

static char *read_file(const char *name)
{
	char path[256], *text;

	path_in_folder(path, sizeof(path), name);
	return file_read_text(path, LOG_MAX, &text, NULL) < 0 ? strdup("") : text;
}

void fixture_teardown(void)
{
	int status = 0;
	char *log;

	varlink_client_close(test_client);
	test_client = NULL;
	for (size_t i = 0; i < target_count; i++) {
		if (targets[i].pid > 0)
			target_exit(targets[i].pid, 0);
	}
	if (test_daemon > 0) {
		kill(test_daemon, SIGTERM);
		/* Also the end of every test: a clean one, which the sanitizers have looked at. */
		status = daemon_wait();
	}
	log = read_file("log");
	ck_assert_msg(status == 0 && !strstr(log, "AddressSanitizer") && !strstr(log, "runtime error"),
		      "the daemon ended with status %d:\n%s", status, log);
	free(log);
	remove_folder(test_folder);
}

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	path_in_folder(path, sizeof(path), name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	fclose(file);
}

void tracer_mode(const char *mode)
{
	write_file("mode", mode);
}

int tracer_notes(const char *what)
{
	char *text = read_file("notes"), *line = text;
	int count = 0;

	while (*line) {
		count += strncmp(line, what, strlen(what)) == 0;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	free(text);
	return count;
}

/* --- waiting --- */

void wait_until(bool (*check)(void *context), void *context, const char *what)
{
	uint64_t deadline = clock_monotonic_ns() + TEST_DEADLINE_S * NSEC_PER_SEC;

	while (!check(context)) {
		if (clock_passed(deadline))
			ck_abort_msg("did not happen in time: %s", what);
		poll(NULL, 0, 5);
	}
}

/* --- daemon --- */

static const char *program(const char *variable, const char *name)
{
	const char *given = getenv(variable);
	static char paths[4][4096];
	static int next;
	char *path = paths[next++ % 4], *slash;
	ssize_t n;

	if (given)
		return given;
	n = readlink("/proc/self/exe", path, 3000);
	if (n <= 0)
		abort();
	path[n] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash + 1, name);
	return path;
}

void daemon_exec(const char *const *options)
{
	const char *argv[40] = { "allocwatchd", "--private", "--socket", test_socket };
	char log[256];
	int argc = *test_socket ? 4 : 2, fd;

	path_in_folder(log, sizeof(log), "log");
	fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(fd, STDERR_FILENO);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	argv[argc++] = "--tracer";
	argv[argc++] = program("FAKE_TRACER", "fake_tracer");
	argv[argc++] = "--symbolizer";
	argv[argc++] = program("SYMBOLIZER", "../../src/allocwatch-symbolizer");
	while (*options)
		argv[argc++] = *options++;
	execv(program("ALLOCWATCHD", "../../src/allocwatchd"), (char **)argv);
	_exit(127);
}

static bool can_connect(void *context)
{
	(void)context;
	ck_assert_int_eq(waitpid(test_daemon, NULL, WNOHANG), 0);
	return varlink_client_open(test_socket, &test_client) == 0;
}

void daemon_start(const char *const *options)
{
	test_daemon = fork();
	if (test_daemon == 0)
		daemon_exec(options);
	ck_assert_int_gt(test_daemon, 0);
	varlink_client_close(test_client);
	test_client = NULL;
	wait_until(can_connect, NULL, "the daemon listens");
}

void daemon_start_default(void)
{
	daemon_start((const char *const[]){ "--no-state", NULL });
}

struct ended {
	int status;
};

static bool has_ended(void *context)
{
	struct ended *ended = context;

	return waitpid(test_daemon, &ended->status, WNOHANG) == test_daemon;
}

int daemon_wait(void)
{
	struct ended ended = { 0 };

	wait_until(has_ended, &ended, "the daemon ends");
	test_daemon = 0;
	return WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : -WTERMSIG(ended.status);
}

bool daemon_log_holds(const char *text)
{
	char *log = read_file("log");
	bool holds = strstr(log, text) != NULL;

	free(log);
	return holds;
}

void daemon_log_must_hold(const char *text)
{
	uint64_t deadline = clock_monotonic_ns() + TEST_DEADLINE_S * NSEC_PER_SEC;

	while (!daemon_log_holds(text)) {
		if (clock_passed(deadline))
			ck_abort_msg("the log does not say \"%s\":\n%s", text, read_file("log"));
		poll(NULL, 0, 5);
	}
}

/* --- targets --- */

pid_t target_start(void)
{
	int ends[2];
	pid_t pid;

	ck_assert_uint_lt(target_count, TARGETS_MAX);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		char status;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[1]);
		_exit(read(ends[0], &status, 1) == 1 ? status : 99);
	}
	ck_assert_int_gt(pid, 0);
	close(ends[0]);
	targets[target_count].pid = pid;
	targets[target_count++].pipe = ends[1];
	return pid;
}

void target_exit(pid_t pid, int status)
{
	char byte = (char)status;

	for (size_t i = 0; i < target_count; i++) {
		int wait_status;

		if (targets[i].pid != pid)
			continue;
		ck_assert_int_eq(write(targets[i].pipe, &byte, 1), 1);
		close(targets[i].pipe);
		targets[i].pid = 0;
		ck_assert_int_eq(waitpid(pid, &wait_status, 0), pid);
		ck_assert_int_eq(wait_status, status << 8);
		return;
	}
	ck_abort_msg("no such target");
}

/* --- calls --- */

static int call(const char *method, json_t *parameters, json_t **reply, json_t **error)
{
	int r;

	ck_assert_ptr_nonnull(parameters);
	*reply = *error = NULL;
	r = varlink_client_call(test_client, method, parameters, reply, error);
	json_decref(parameters);
	return r;
}

json_t *call_ok(const char *method, json_t *parameters)
{
	json_t *reply, *error;
	int r = call(method, parameters, &reply, &error);

	if (r < 0) {
		char *text = error ? json_dumps(error, 0) : NULL;

		ck_abort_msg("%s: %s %s", method, strerror(-r), text ? text : "");
	}
	return reply;
}

json_t *call_fails(const char *method, json_t *parameters, const char *error_name)
{
	json_t *reply, *error, *of_error;
	const char *name;
	int r = call(method, parameters, &reply, &error);

	ck_assert_msg(r == -EREMOTEIO, "%s: %d instead of error %s", method, r, error_name);
	name = text_of(error, "error");
	if (!strchr(error_name, '.'))
		name = strrchr(name, '.') + 1;
	ck_assert_str_eq(name, error_name);
	of_error = json_incref(json_object_get(error, "parameters"));
	json_decref(error);
	return of_error;
}

bool call_any(const char *method, json_t *parameters)
{
	json_t *reply, *error;
	int r = call(method, parameters, &reply, &error);

	ck_assert(r == 0 || r == -EREMOTEIO);
	json_decref(reply);
	json_decref(error);
	return r == 0;
}

void attach_ok(pid_t pid)
{
	json_t *reply = call_ok("Attach", json_pack("{s:i}", "pid", (int)pid));

	ck_assert_int_eq(number_of(reply, "pid"), pid);
	json_decref(reply);
}

json_t *member(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	ck_assert_msg(value != NULL, "there is no %s", key);
	return value;
}

const char *text_of(const json_t *object, const char *key)
{
	ck_assert_msg(json_is_string(member(object, key)), "%s is no text", key);
	return json_string_value(member(object, key));
}

json_int_t number_of(const json_t *object, const char *key)
{
	ck_assert_msg(json_is_integer(member(object, key)), "%s is no integer", key);
	return json_integer_value(member(object, key));
}

/* --- bare connections --- */

int raw_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval timeout = { .tv_sec = TEST_DEADLINE_S };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, test_socket);
	ck_assert_int_eq(connect(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	return sock;
}

void raw_send(int sock, const void *data, size_t len)
{
	ck_assert_int_eq(fd_write_all(sock, data, len), 0);
}

char *raw_receive(int sock)
{
	size_t space = 4096, len = 0;
	char *text = malloc(space);

	for (;;) {
		ssize_t n = read(sock, text + len, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(text);
			return NULL;
		}
		if (text[len++] == '\0')
			return text;
		if (len == space) {
			char *grown = realloc(text, space *= 2);

			ck_assert_ptr_nonnull(grown);
			text = grown;
		}
	}
}
