/* allocwatch-symbolizer: started by the daemon with its end of the socket as descriptor 3. */
#include "symbol/confine.h"
#include "base/sanitized.h"
#include "symbol/server.h"
#include "symbol/symbol.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define SOCKET_FD 3

#if SANITIZED
/* LeakSanitizer would have to trace this process, which no longer allows that to anybody. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

static int is_socket(int fd)
{
	socklen_t len = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

int main(void)
{
	int r;

	if (!is_socket(SOCKET_FD)) {
		fputs("allocwatch-symbolizer: descriptor 3 is not the daemon's socket: it is started by "
		      "allocwatchd, not by hand\n", stderr);
		return 2;
	}
	r = confine(SOCKET_FD);
	if (r == 0)
		r = server_run(SOCKET_FD, SYMBOL_DEBUG_ROOT);
	else
		fprintf(stderr, "allocwatch-symbolizer: cannot give up its privileges: %s\n",
			strerror(-r));
	return r == 0 ? 0 : 1;
}
