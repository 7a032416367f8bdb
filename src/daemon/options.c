#define _GNU_SOURCE              /* asprintf */
#include "config.h"

#include "daemon/options.h"

#include "daemon/conf_folders.h"
#include "daemon/log.h"
#include "daemon/spool.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the command line --- */

/* Options that say what a key of the files says: with an argument, or with this value. */
static const struct flag {
	const char *name, *key, *value;
} flags[] = {
	{ "socket", "Socket", NULL },
	{ "max-sessions", "MaxSessions", NULL },
	{ "max-clients", "MaxClients", NULL },
	{ "idle-exit", "IdleExit", NULL },
	{ "no-heal", "Heal", "no" },
	{ "log-level", "LogLevel", NULL },
	{ "tracer", "Tracer", NULL },
	{ "tracer-service", "TracerService", NULL },
	{ "symbolizer", "Symbolizer", NULL },
	{ "fetcher", "Fetcher", NULL },
	{ "fetcher-service", "FetcherService", NULL },
	{ "debuginfod", "Debuginfod", NULL },
	{ "state", "State", NULL },
	{ "no-state", "State", STATE_NONE },
	{ "max-snapshots", "MaxSnapshots", NULL },
	{ "max-memory", "MaxMemory", NULL },
	{ "max-disk", "MaxDisk", NULL },
	{ "metrics-listen", "Listen", NULL },
	{ "metrics-show", "Show", NULL },
	{ "metrics-groups", "Groups", NULL },
	{ "metrics-interval", "Interval", NULL },
};
#define FLAG_COUNT (sizeof(flags) / sizeof(flags[0]))

/* Behind the flags, whose numbers are FLAG and their places. */
#define FLAG 1000
enum { OPTION_PRIVATE = 256, OPTION_FOREGROUND, OPTION_HEAL, OPTION_CONFIG, OPTION_CHECK_CONFIG };

static const struct option other_options[] = {
	{ "private", no_argument, NULL, OPTION_PRIVATE },
	{ "foreground", no_argument, NULL, OPTION_FOREGROUND },
	{ "heal", no_argument, NULL, OPTION_HEAL },
	{ "config", required_argument, NULL, OPTION_CONFIG },
	{ "check-config", no_argument, NULL, OPTION_CHECK_CONFIG },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};
#define OTHER_COUNT (sizeof(other_options) / sizeof(other_options[0]))

static const char help[] =
	"Usage: allocwatchd [OPTION]...\n"
	"       allocwatchd --heal [PID]\n"
	"       allocwatchd --check-config [FILE]\n"
	"Traces the heaps of processes and answers questions about them on a Unix socket.\n"
	"What options say can stand in allocwatchd.conf, too; options win.\n"
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
	"  --debuginfod no|environment|URL...\n"
	"                        ask these servers for debug information that this machine lacks,\n"
	"                        or those of DEBUGINFOD_URLS (default: no)\n"
	"  --metrics-listen ADDRESS\n"
	"                        serve metrics by HTTP at 127.0.0.1:PORT, [::1]:PORT or PATH\n"
	"                        (default: none)\n"
	"  --metrics-show own|all\n"
	"                        there, tell of the processes of this user (the default) or of all\n"
	"  --metrics-groups N    tell the N source lines of a process that hold most (default 10)\n"
	"  --metrics-interval SECONDS\n"
	"                        look for them that often at most (default 60)\n"
	"  --config FILE         read that file and the drop-ins of FILE.d, not the usual ones\n"
	"  --check-config [FILE] say what is wrong with the configuration, or with FILE, and leave\n"
	"  --log-level LEVEL     log what is at least that important: error, warning, notice,\n"
	"                        info (the default) or debug\n"
	"  --heal [PID]          take out of all processes, or of PID and others of its program,\n"
	"                        what a tracer that died has left in them, and leave\n"
	"  --no-heal             do not look for that in all processes at the start\n"
	"  --tracer-service PATH have tracers started by systemd, one for each connection to this\n"
	"                        socket, since the daemon's own service may not trace\n"
	"  --fetcher-service PATH\n"
	"                        likewise what asks these servers\n"
	"  --tracer PROGRAM      instead of allocwatch-tracer,\n"
	"  --symbolizer PROGRAM  instead of allocwatch-symbolizer, and\n"
	"  --fetcher PROGRAM     instead of allocwatch-fetcher: for tests\n"
	"  --help, --version\n";

static int complain(const char *what, const char *on)
{
	fprintf(stderr, "allocwatchd: %s%s; 'allocwatchd --help' shows the options\n", what, on);
	return -EINVAL;
}

static void list_options(struct option options[FLAG_COUNT + OTHER_COUNT])
{
	for (size_t i = 0; i < FLAG_COUNT; i++)
		options[i] = (struct option){ flags[i].name, flags[i].value ? no_argument : required_argument, NULL,
					      FLAG + (int)i };
	memcpy(options + FLAG_COUNT, other_options, sizeof(other_options));
}

static int take_flag(const struct flag *flag, struct command_line *line)
{
	struct given *given = vec_push(&line->given);

	if (!given)
		return -ENOMEM;
	*given = (struct given){ setting_find(flag->key), flag->name, flag->value ? flag->value : optarg };
	return 0;
}

static int take(int option, struct command_line *line)
{
	if (option >= FLAG)
		return take_flag(&flags[option - FLAG], line);
	switch (option) {
	case OPTION_PRIVATE:
		line->private_daemon = true;
		return 0;
	case OPTION_FOREGROUND:
		return 0;
	case OPTION_HEAL:
		line->heal = true;
		return 0;
	case OPTION_CONFIG:
		line->config = optarg;
		return 0;
	case OPTION_CHECK_CONFIG:
		line->check_config = true;
		return 0;
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

static int take_heal_pid(const char *text, int *ret_pid)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || number < 1 || number > INT_MAX) {
		fprintf(stderr, "allocwatchd: --heal wants a number from 1 to %d, not '%s'\n", INT_MAX, text);
		return -EINVAL;
	}
	*ret_pid = (int)number;
	return 0;
}

static int take_command_line(int argc, char **argv, struct command_line *line)
{
	struct option long_options[FLAG_COUNT + OTHER_COUNT];
	int option, r = 0;

	list_options(long_options);
	while (r == 0 && (option = getopt_long(argc, argv, "hV", long_options, NULL)) != -1)
		r = take(option, line);
	if (r == 0 && line->heal && optind < argc)
		r = take_heal_pid(argv[optind++], &line->heal_pid);
	if (r == 0 && line->check_config && optind < argc)
		line->config = argv[optind++];
	if (r == 0 && optind < argc)
		r = complain("takes no argument: ", argv[optind]);
	return r;
}

/* Wins over the files, so it comes last. */
static int apply_command_line(const struct command_line *line, struct options *options)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < line->given.count; i++) {
		const struct given *given = &line->given.items[i];
		char *reason = NULL;

		r = setting_take(given->setting, given->value, options, &reason);
		if (r == -EINVAL)
			fprintf(stderr, "allocwatchd: --%s %s\n", given->option, reason);
		free(reason);
	}
	return r;
}

/* --- the files --- */

static bool section_is_known(const char *section)
{
	for (const struct setting *setting = settings; setting->key; setting++) {
		if (strcmp(setting->section, section) == 0)
			return true;
	}
	return false;
}

/* What is not known is no error: a newer daemon's file is of use to an older one, too.  "X-" is for others' own. */
static const struct setting *look_up(struct conf_reader *reader, const char *section, const char *key)
{
	const struct setting *setting = setting_find(key);

	if (strncmp(section, "X-", 2) == 0)
		return NULL;
	if (*section == '\0')
		conf_complain(reader, CONF_ERROR, "%.80s= stands before the first [SECTION]", key);
	else if (!section_is_known(section))
		conf_complain(reader, CONF_WARNING, "%.80s= is ignored: there is no section [%s]", key, section);
	else if (!setting)
		conf_complain(reader, CONF_WARNING, "%.80s= is ignored: there is no such key in [%s]", key, section);
	else if (strcmp(setting->section, section) != 0)
		conf_complain(reader, CONF_WARNING, "%s= is ignored: it belongs to [%s], not to [%s]", key,
			      setting->section, section);
	else
		return setting;
	return NULL;
}

static void assign(struct conf_reader *reader, const char *section, const char *key, const char *value)
{
	const struct setting *setting = look_up(reader, section, key);
	char *reason = NULL;

	if (!setting)
		return;
	if (setting->path && *value && *value != '/' && strcmp(value, STATE_NONE) != 0)
		conf_complain(reader, CONF_ERROR, "%s= wants an absolute path, not '%.80s'", key, value);
	else if (setting_take(setting, value, reader->context, &reason) < 0)
		conf_complain(reader, CONF_ERROR, "%s= %s", key, reason ? reason : strerror(ENOMEM));
	free(reason);
}

static void log_complaint(void *context, enum conf_kind kind, const char *line)
{
	(void)context;
	if (kind == CONF_ERROR)
		log_error("%s", line);
	else
		log_warning("%s", line);
}

static void print_complaint(void *context, enum conf_kind kind, const char *line)
{
	(void)context;
	fprintf(stderr, "%s%s\n", kind == CONF_WARNING ? "warning: " : "", line);
}

static int find_files(const struct command_line *line, struct conf_reader *reader, struct conf_paths *ret)
{
	char *folders[CONF_FOLDERS_MAX + 1];
	int r;

	if (line->config)
		return conf_paths_of_file(reader, line->config, ret);
	r = conf_folders(!line->private_daemon && geteuid() == 0, folders);
	if (r < 0)
		return r;
	r = conf_paths_find(reader, folders, ret);
	conf_folders_free(folders);
	return r;
}

static void read_files(struct conf_reader *reader, const struct conf_paths *paths)
{
	for (size_t i = 0; i < paths->files.count; i++) {
		conf_read_file(reader, paths->files.items[i]);
		log_debug("%s was read", paths->files.items[i]);
	}
}

/* 0; -EBADMSG: what is wrong was said; -ENOMEM. */
static int apply_files(const struct command_line *line, struct options *options)
{
	struct conf_reader reader = { .context = options, .assign = assign, .complain = log_complaint };
	struct conf_paths paths;
	int r = find_files(line, &reader, &paths);

	if (r < 0)
		return r;
	read_files(&reader, &paths);
	if (reader.errors + reader.warnings > CONF_COMPLAINTS_MAX)
		log_warning("the configuration: there is more to complain of, %u things in all",
			    reader.errors + reader.warnings);
	conf_paths_fini(&paths);
	return reader.errors > 0 ? -EBADMSG : 0;
}

/* 1: done, nothing is wrong; -EBADMSG; -ENOMEM. */
static int check_config(const struct command_line *line, struct options *options)
{
	struct conf_reader reader = { .context = options, .assign = assign, .complain = print_complaint };
	struct conf_paths paths;
	int r = find_files(line, &reader, &paths);

	if (r < 0)
		return r;
	read_files(&reader, &paths);
	for (size_t i = 0; i < paths.files.count; i++)
		puts(paths.files.items[i]);
	printf("%zu files, %u errors, %u warnings\n", paths.files.count, reader.errors, reader.warnings);
	conf_paths_fini(&paths);
	return reader.errors > 0 ? -EBADMSG : 1;
}

/* --- what becomes of it --- */

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

static int choose_helper(const char *chosen, const char *name, char **ret_path)
{
	if (!chosen)
		return find_helper(name, ret_path);
	*ret_path = strdup(chosen);
	return *ret_path ? 0 : -ENOMEM;
}

static int choose_state(struct options *options)
{
	if (!options->state) {
		options->state_folder = spool_default_folder(options->line.private_daemon);
		return 0;
	}
	if (strcmp(options->state, STATE_NONE) == 0)
		return 0;
	options->state_folder = strdup(options->state);
	return options->state_folder ? 0 : -ENOMEM;
}

static int fill_in(struct options *options)
{
	int r = choose_state(options);

	options->limits.idle_exit_s = options->idle_exit_s != IDLE_EXIT_DEFAULT ? (unsigned)options->idle_exit_s :
				      options->line.private_daemon ? PRIVATE_IDLE_EXIT_S : 0;
	if (r == 0)
		r = choose_helper(options->tracer, "allocwatch-tracer", &options->tracer_program);
	if (r == 0)
		r = choose_helper(options->symbolizer, "allocwatch-symbolizer", &options->symbolizer_program);
	if (r == 0)
		r = choose_helper(options->fetcher, "allocwatch-fetcher", &options->fetcher_program);
	return r;
}

/* Of a command line that is wrong, too, the files are looked through. */
static int check_all(struct options *options)
{
	int of_files = check_config(&options->line, options), of_line = apply_command_line(&options->line, options);

	return of_line < 0 ? of_line : of_files;
}

static int apply(struct options *options)
{
	int r = settings_init(options);

	if (r == 0 && options->line.check_config)
		return check_all(options);
	/* Healing must not fail for an error in a file. */
	if (r == 0 && !options->line.heal)
		r = apply_files(&options->line, options);
	if (r == 0)
		r = apply_command_line(&options->line, options);
	return r == 0 ? fill_in(options) : r;
}

int options_parse(int argc, char **argv, struct options *ret)
{
	struct options options = { 0 };
	int r = take_command_line(argc, argv, &options.line);

	if (r == 0)
		r = apply(&options);
	if (r != 0) {
		options_fini(&options);
		return r;
	}
	*ret = options;
	return 0;
}

int options_read_again(const struct options *old, struct options *ret)
{
	struct options options = { .line = old->line };
	struct given *given;
	int r = 0;

	memset(&options.line.given, 0, sizeof(options.line.given));
	for (size_t i = 0; r == 0 && i < old->line.given.count; i++) {
		given = vec_push(&options.line.given);
		if (given)
			*given = old->line.given.items[i];
		else
			r = -ENOMEM;
	}
	if (r == 0)
		r = apply(&options);
	if (r < 0) {
		options_fini(&options);
		return r;
	}
	*ret = options;
	return 0;
}

void options_fini(struct options *options)
{
	vec_fini(&options->line.given);
	settings_free(options);
	free(options->tracer_program);
	free(options->symbolizer_program);
	free(options->fetcher_program);
	free(options->state_folder);
}
