/* The daemon's log: lines on stderr, with the priority prefixes of sd-daemon(3) when stderr goes to
 * the journal.  Texts of targets and clients are made harmless. */
#ifndef ALLOCWATCH_DAEMON_LOG_H
#define ALLOCWATCH_DAEMON_LOG_H

void log_init(void);
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
