#include "oracle.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	FILE *to, *from;
	pid_t pid;
} oracle;

void oracle_start(const char *script)
{
	const char *python = getenv("PYTHON"), *source = getenv("srcdir");
	char path[4096];
	int to[2], from[2];

	snprintf(path, sizeof(path), "%s/%s", source ? source : ".", script);
	ck_assert_int_eq(pipe(to), 0);
	ck_assert_int_eq(pipe(from), 0);
	oracle.pid = fork();
	if (oracle.pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		execl(python ? python : "/usr/bin/python3", "python3", path, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	oracle.to = fdopen(to[1], "w");
	oracle.from = fdopen(from[0], "r");
}

void oracle_stop(void)
{
	int status;

	fclose(oracle.to);
	fclose(oracle.from);
	ck_assert_int_eq(waitpid(oracle.pid, &status, 0), oracle.pid);
	ck_assert_msg(status == 0, "the oracle, /usr/bin/python3, ended with status %#x", status);
}

json_t *oracle_ask(json_t *request)
{
	json_t *answer;
	json_error_t error;

	ck_assert_ptr_nonnull(request);
	ck_assert_int_eq(json_dumpf(request, oracle.to, JSON_COMPACT), 0);
	fputc('\n', oracle.to);
	fflush(oracle.to);
	json_decref(request);
	answer = json_loadf(oracle.from, JSON_DISABLE_EOF_CHECK, &error);
	ck_assert_msg(answer != NULL, "no answer from the oracle, /usr/bin/python3: %s", error.text);
	/* The end of the line may come on its own. */
	ck_assert_int_eq(fgetc(oracle.from), '\n');
	return answer;
}

json_t *oracle_hex(const char *text)
{
	size_t len = strlen(text);
	char *out = malloc(2 * len + 1);
	json_t *json;

	for (size_t i = 0; i < len; i++)
		snprintf(out + 2 * i, 3, "%02x", (unsigned char)text[i]);
	out[2 * len] = '\0';
	json = json_string(out);
	free(out);
	return json;
}
