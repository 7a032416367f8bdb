/* Servers of debug information on this machine's own network, for tests: Debian's debuginfod, and some that misbehave.  All
 * of them end with the process that has started them. */
#ifndef ALLOCWATCH_TESTS_DEBUG_SERVER_H
#define ALLOCWATCH_TESTS_DEBUG_SERVER_H

#include <stddef.h>
#include <sys/types.h>

enum debug_server_way {
	DEBUG_SERVER_SILENT,         /* it listens, and does not even accept */
	DEBUG_SERVER_RUBBISH,        /* answers every question with a text */
	DEBUG_SERVER_ENDLESS,        /* sends bytes for ever */
	DEBUG_SERVER_SLOW,           /* begins to answer, and says no more */
};

/* Its URL goes to url.  The process, to be ended by debug_server_stop(); aborts when there cannot be one. */
pid_t debug_server_misbehave(enum debug_server_way way, char *url, size_t space);
/* Debian's, with what lies in a folder; -1: it is not installed.  It knows the files a little later. */
pid_t debug_server_start(const char *folder, char *url, size_t space);
/* The status of the HTTP answer to GET URL/buildid/ID/debuginfo; 0: there was none. */
int debug_server_status(const char *url, const char *build_id);
void debug_server_stop(pid_t server);

#endif
