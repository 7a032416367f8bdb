#include "workload.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Recursion of random depth around parts of the standard library, for ever. */
static const char python_script[] =
	"import json, re, random, ast\n"
	"random.seed(1)\n"
	"def deep(n, f):\n"
	"    return f() if n == 0 else deep(n - 1, f)\n"
	"def key(x):\n"
	"    return deep(random.randrange(4), lambda: x[::-1] + str(len(x)))\n"
	"def work(i):\n"
	"    d = {str(k): [k] * (k % 7) for k in range(50)}\n"
	"    json.loads(json.dumps(d, indent=1))\n"
	"    re.compile('a%d(b|c)*[x-z]+%d' % (i, i))\n"
	"    ast.parse('def f(a, b=%d):\\n return [x for x in a if x > b + (c * (d[3] + {2: 3}[1]))]' % i)\n"
	"    return sorted((str(x) for x in range(100)), key=key)\n"
	"def walk(tree):\n"
	"    if random.random() < .2:\n"
	"        work(random.randrange(1000))\n"
	"    for part in tree:\n"
	"        walk(part)\n"
	"while True:\n"
	"    deep(random.randrange(12), lambda: walk([[[], [[]]], [[], []]]))\n";

static const char *const redis_commands[] = {
	"SET key:%u value-of-some-length-%u", "APPEND key:%u more", "GETRANGE key:%u 0 5", "DEL key:%u",
	"LPUSH list:%u a b c d e %u", "LRANGE list:%u 0 -1", "SORT list:%u ALPHA", "LTRIM list:%u 0 20",
	"SADD set:%u a b c 1 2 3 word%u", "SINTER set:%u set:2", "SUNION set:%u set:3", "SPOP set:%u",
	"HSET hash:%u field%u value another value", "HGETALL hash:%u", "HDEL hash:%u field1",
	"ZADD zset:%u 1 one 2 two %u member", "ZRANGE zset:%u 0 -1 WITHSCORES", "ZPOPMIN zset:%u",
	"ZUNIONSTORE sum:%u 2 zset:1 zset:2", "XADD stream:%u MAXLEN 10 * field value",
	"XRANGE stream:%u - +", "GEOADD geo:%u 13.36 38.11 Palermo 15.08 37.50 Catania",
	"GEOSEARCH geo:%u FROMLONLAT 15 37 BYRADIUS 200 km ASC", "PFADD hll:%u a b c", "PFCOUNT hll:%u",
	"CONFIG GET max*", "CLIENT LIST", "INFO", "COMMAND DOCS set", "SCAN %u COUNT 50", "OBJECT ENCODING key:%u",
	"EXPIRE key:%u 100", "MSET key:%u a key:b c", "BITCOUNT key:%u", "SETRANGE key:%u 100 tail",
	"DUMP hash:%u", "FLUSHALL ASYNC",
	"EVAL \"local t={} for i=1,9 do t[i]=redis.call('LRANGE',KEYS[1],0,i) end return cjson.encode(t)\" 1 list:%u",
	"EVAL \"local s='' for i=1,20 do s=s..string.format('%%d',i) end return string.rep(s,3)\" 0",
};

static int run(const char *const argv[])
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ENOENT;
}

static char *join(const char *first, const char *second)
{
	char *result;

	if (asprintf(&result, "%s%s", first, second) < 0)
		abort();
	return result;
}

static bool find_cc1(char *path, size_t space)
{
	FILE *pipe = popen("gcc -print-prog-name=cc1", "r");
	bool found = pipe && fgets(path, (int)space, pipe) && path[0] == '/';

	if (pipe)
		pclose(pipe);
	if (found)
		path[strcspn(path, "\n")] = '\0';
	return found && access(path, X_OK) == 0;
}

static const char *source_folder(void)
{
	const char *folder = getenv("srcdir");

	return folder ? folder : ".";
}

static int prepare_cc1(struct workload *w, const char *folder, const char *source)
{
	char path[512] = "", *preprocessed = join(folder, "/input.i"), *include = join(source_folder(), "/src");
	const char *const preprocess[] = {
		"gcc", "-E", "-D_GNU_SOURCE", "-I", include, "-o", preprocessed, source, NULL,
	};
	int err = -ENOENT;

	if (find_cc1(path, sizeof(path)))
		err = run(preprocess);
	free(include);
	w->argv[0] = strdup(path);
	w->argv[1] = strdup("-quiet");
	w->argv[2] = strdup("-O2");
	w->argv[3] = preprocessed;
	w->argv[4] = strdup("-o");
	w->argv[5] = strdup("/dev/null");
	return err;
}

static int prepare_python(struct workload *w)
{
	w->argv[0] = strdup("/usr/bin/python3");
	w->argv[1] = strdup("-c");
	w->argv[2] = strdup(python_script);
	/* Python's own allocator would hide most allocations from malloc. */
	setenv("PYTHONMALLOC", "malloc", 1);
	return access(w->argv[0], X_OK) == 0 ? 0 : -ENOENT;
}

static int prepare_redis(struct workload *w, const char *folder)
{
	static const char *const arguments[] = {
		"/usr/bin/redis-server", "--port", "0", "--save", "", "--unixsocket", NULL, "--dir", NULL,
	};

	for (unsigned int i = 0; i < sizeof(arguments) / sizeof(*arguments); i++)
		w->argv[i] = strdup(arguments[i] ? arguments[i] : "");
	free(w->argv[6]);
	w->argv[6] = join(folder, "/socket");
	free(w->argv[8]);
	w->argv[8] = strdup(folder);
	return access(w->argv[0], X_OK) == 0 ? 0 : -ENOENT;
}

int workload_prepare(struct workload *w, const char *name, const char *folder, const char *source)
{
	int err = -EINVAL;

	*w = (struct workload){ .name = name };
	if (strcmp(name, "python3") == 0)
		err = prepare_python(w);
	else if (strcmp(name, "cc1") == 0)
		err = prepare_cc1(w, folder, source);
	else if (strcmp(name, "redis") == 0)
		err = prepare_redis(w, folder);
	if (err < 0)
		workload_fini(w);
	return err;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	for (int tries = 0; tries < 3000; tries++) {
		int sock = socket(AF_UNIX, SOCK_STREAM, 0);

		if (connect(sock, (struct sockaddr *)&address, sizeof(address)) == 0)
			return sock;
		close(sock);
		nanosleep(&pause, NULL);
	}
	return -1;
}

/* Sends one command after the other and throws the answers away; ends with the server. */
static void be_client(const char *path)
{
	const unsigned int count = sizeof(redis_commands) / sizeof(*redis_commands);
	int sock = connect_to(path);
	unsigned int seed = 1;
	static char line[512], answer[65536];

	for (unsigned int i = 0; sock >= 0; i++) {
		unsigned int n = (seed = seed * 1103515245u + 12345u) >> 16;
		int len;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		len = snprintf(line, sizeof(line), redis_commands[n % count], n % 7, i % 11);
#pragma GCC diagnostic pop
		line[len++] = '\r';
		line[len++] = '\n';
		if (write(sock, line, (size_t)len) != len || read(sock, answer, sizeof(answer)) <= 0)
			break;
	}
	_exit(0);
}

int workload_start_client(struct workload *w)
{
	if (strcmp(w->name, "redis") != 0)
		return 0;
	w->client = fork();
	if (w->client == 0)
		be_client(w->argv[6]);
	return w->client < 0 ? -errno : 0;
}

void workload_fini(struct workload *w)
{
	if (w->client > 0) {
		kill(w->client, SIGKILL);
		waitpid(w->client, NULL, 0);
	}
	for (unsigned int i = 0; i <= WORKLOAD_ARGS_MAX; i++)
		free(w->argv[i]);
}
