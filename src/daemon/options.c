#include "config.h"

#include "daemon/options.h"

#include "daemon/spool.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OPTION_SOCKET = 256, OPTION_PRIVATE, OPTION_FOREGROUND, OPTION_IDLE_EXIT, OPTION_STATE, OPTION_NO_STATE,
	OPTION_MAX_SESSIONS, OPTION_MAX_CLIENTS, OPTION_MAX_SNAPSHOTS, OPTION_MAX_MEMORY, OPTION_MAX_DISK,
	OPTION_TRACER, OPTION_TRACER_SERVICE, OPTION_SYMBOLIZER, OPTION_HEAL, OPTION_NO_HEAL,
};

static const struct option long_options[] = {
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "private", no_argument, NULL, OPTION_PRIVATE },
	{ "foreground", no_argument, NULL, OPTION_FOREGROUND },
	{ "idle-exit", required_argument, NULL, OPTION_IDLE_EXIT },
	{ "state", required_argument, NULL, OPTION_STATE },
	{ "no-state", no_argument, NULL, OPTION_NO_STATE },
	{ "max-sessions", required_argument, NULL, OPTION_MAX_SESSIONS },
	{ "max-clients", required_argument, NULL, OPTION_MAX_CLIENTS },
	{ "max-snapshots", required_argument, NULL, OPTION_MAX_SNAPSHOTS },
	{ "max-memory", required_argument, NULL, OPTION_MAX_MEMORY },
	{ "max-disk", required_argument, NULL, OPTION_MAX_DISK },
	{ "tracer", required_argument, NULL, OPTION_TRACER },
	{ "tracer-service", required_argument, NULL, OPTION_TRACER_SERVICE },
	{ "symbolizer", required_argument, NULL, OPTION_SYMBOLIZER },
	{ "heal", no_argument, NULL, OPTION_HEAL },
	{ "no-heal", no_argument, NULL, OPTION_NO_HEAL },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static const char help[] =
	"Usage: allocwatchd [OPTION]...\n"
	"       allocwatchd --heal [PID]\n"
	"Traces the heaps of processes and answers questions about them on a Unix socket.\n"
	"\n"
	"  --socket PATH         listen there; without it on the socket that systemd hands over,\n"
	"                        else where allocwatch looks for this user's daemon\n"
	"  --private             be this user's own daemon, which leaves when it is idle\n"
	"  --foreground          stay in the foreground, as the daemon always does\n"
	"  --idle-exit SECONDS   leave that long after the last target, client and request;\n"
	"                        0: never (default: 600 when private, else never)\n"
	"  --state FOLDER        keep snapshots there\n"
	"  --no-state            keep snapshots in memory only\n"
	"  --max-sessions N      processes traced at the same time (default 64)\n"
	"  --max-clients N       connections at the same time (default 512)\n"
	"  --max-snapshots N     snapshots kept (default 512)\n"
	"  --max-memory MIB      memory for snapshots (default 4096); those on disk make way\n"
	"  --max-disk MIB        for their files (default 16384)\n"
	"  --heal [PID]          take out of all processes, or of PID and others of its program,\n"
	"                        what a tracer that died has left in them, and leave\n"
	"  --no-heal             do not look for that in all processes at the start\n"
	"  --tracer-service PATH have tracers started by systemd, one for each connection to this\n"
	"                        socket, since the daemon's own service may not trace\n"
	"  --tracer PROGRAM      instead of allocwatch-tracer, and\n"
	"  --symbolizer PROGRAM  instead of allocwatch-symbolizer: for tests\n"
	"  --help, --version\n";

static int complain(const char *what, const char *on)
{
	fprintf(stderr, "allocwatchd: %s%s; 'allocwatchd --help' shows the options\n", what, on);
	return -EINVAL;
}

static int parse_number(const char *name, const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || number < min || number > max) {
		fprintf(stderr, "allocwatchd: %s wants a number from %llu to %llu, not '%s'\n", name,
			(unsigned long long)min, (unsigned long long)max, text);
		return -EINVAL;
	}
	*ret = number;
	return 0;
}

static int parse_limit(const char *name, const char *text, uint64_t max, size_t *ret)
{
	uint64_t number;
	int r = parse_number(name, text, 1, max, &number);

	if (r == 0)
		*ret = (size_t)number;
	return r;
}

static int set_text(char **text, const char *value)
{
	free(*text);
	*text = value ? strdup(value) : NULL;
	return value && !*text ? -ENOMEM : 0;
}

/* What was given, before what depends on several options. */
struct given {
	bool idle_exit, state;
};

static int take_idle_exit(struct options *options, struct given *given)
{
	uint64_t number;
	int r = parse_number("--idle-exit", optarg, 0, INT_MAX, &number);

	if (r == 0) {
		options->limits.idle_exit_s = (unsigned)number;
		given->idle_exit = true;
	}
	return r;
}

static int take_mebibytes(const char *name, uint64_t *ret_bytes)
{
	uint64_t number;
	int r = parse_number(name, optarg, 1, UINT32_MAX, &number);

	if (r == 0)
		*ret_bytes = number << 20;
	return r;
}

static int take_heal_pid(const char *text, int *ret_pid)
{
	uint64_t number;
	int r = parse_number("--heal", text, 1, INT_MAX, &number);

	if (r == 0)
		*ret_pid = (int)number;
	return r;
}

static int take(int option, struct options *options, struct given *given)
{
	switch (option) {
	case OPTION_SOCKET:
		options->socket = optarg;
		return 0;
	case OPTION_PRIVATE:
		options->private_daemon = true;
		return 0;
	case OPTION_FOREGROUND:
		return 0;
	case OPTION_IDLE_EXIT:
		return take_idle_exit(options, given);
	case OPTION_STATE:
	case OPTION_NO_STATE:
		given->state = true;
		return set_text(&options->state_folder, option == OPTION_STATE ? optarg : NULL);
	case OPTION_MAX_SESSIONS:
		return parse_limit("--max-sessions", optarg, 4096, &options->limits.sessions);
	case OPTION_MAX_CLIENTS:
		return parse_limit("--max-clients", optarg, 65536, &options->limits.clients);
	case OPTION_MAX_SNAPSHOTS:
		return parse_limit("--max-snapshots", optarg, 1000000, &options->limits.snapshots);
	case OPTION_MAX_MEMORY:
		return take_mebibytes("--max-memory", &options->limits.snapshot_bytes);
	case OPTION_MAX_DISK:
		return take_mebibytes("--max-disk", &options->limits.file_bytes);
	case OPTION_HEAL:
		options->heal = true;
		return 0;
	case OPTION_NO_HEAL:
		options->no_heal = true;
		return 0;
	case OPTION_TRACER:
		return set_text(&options->tracer, optarg);
	case OPTION_TRACER_SERVICE:
		options->tracer_service = optarg;
		return 0;
	case OPTION_SYMBOLIZER:
		return set_text(&options->symbolizer, optarg);
	case 'h':
		fputs(help, stdout);
		return 1;
	case 'V':
		puts("allocwatchd " PACKAGE_VERSION);
		return 1;
	default:
		return -EINVAL;      /* getopt has said why */
	}
}

/* In the build tree the helpers lie beside the daemon; installed, in pkglibexecdir. */
static int find_helper(const char *name, char **ret_path)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash = NULL, *path;

	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
	}
	if (slash) {
		*slash = '\0';
		if (asprintf(&path, "%s/%s", self, name) < 0)
			return -ENOMEM;
		if (access(path, X_OK) == 0) {
			*ret_path = path;
			return 0;
		}
		free(path);
	}
	return asprintf(ret_path, "%s/%s", PKGLIBEXECDIR, name) < 0 ? -ENOMEM : 0;
}

static int fill_in(struct options *options, const struct given *given)
{
	int r = 0;

	if (!given->idle_exit)
		options->limits.idle_exit_s = options->private_daemon ? PRIVATE_IDLE_EXIT_S : 0;
	if (!given->state)
		options->state_folder = spool_default_folder(options->private_daemon);
	if (!options->tracer)
		r = find_helper("allocwatch-tracer", &options->tracer);
	if (r == 0 && !options->symbolizer)
		r = find_helper("allocwatch-symbolizer", &options->symbolizer);
	return r;
}

int options_parse(int argc, char **argv, struct options *ret)
{
	struct options options = {
		.limits = { .sessions = SESSIONS_MAX, .clients = CLIENTS_MAX, .snapshots = SNAPSHOTS_MAX,
			    .snapshot_bytes = SNAPSHOT_BYTES_MAX, .file_bytes = FILE_BYTES_MAX },
	};
	struct given given = { 0 };
	int option, r = 0;

	while (r == 0 && (option = getopt_long(argc, argv, "hV", long_options, NULL)) != -1)
		r = take(option, &options, &given);
	if (r == 0 && options.heal && optind < argc)
		r = take_heal_pid(argv[optind++], &options.heal_pid);
	if (r == 0 && optind < argc)
		r = complain("takes no argument: ", argv[optind]);
	if (r == 0)
		r = fill_in(&options, &given);
	if (r != 0) {
		options_fini(&options);
		return r;
	}
	*ret = options;
	return 0;
}

void options_fini(struct options *options)
{
	free(options->tracer);
	free(options->symbolizer);
	free(options->state_folder);
}
