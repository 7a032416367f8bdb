/* The daemon's log: lines on stderr, with the priority prefixes of sd-daemon(3) when stderr goes to
 * the journal.  Texts of targets and clients are made harmless. */
#ifndef ALLOCWATCH_DAEMON_LOG_H
#define ALLOCWATCH_DAEMON_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_NOTICE, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
/* Their names, by number, and NULL. */
extern const char *const log_levels[];

void log_init(void);
/* What is less important than this is left out. */
void log_set_level(enum log_level level);
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What whoever runs the daemon should see, though nothing is wrong. */
void log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
