#include "daemon/metrics_address.h"

#include "base/fd.h"
#include "base/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16
#define HOST_MAX 64

/* --- reading --- */

static int parse_port(const char *text, in_port_t *ret)
{
	int64_t port;

	if (units_parse_number(text, 1, UINT16_MAX, &port) < 0)
		return -EINVAL;
	*ret = htons((uint16_t)port);
	return 0;
}

static int parse_unix(const char *path, struct metrics_address *ret)
{
	struct sockaddr_un *address = (struct sockaddr_un *)&ret->address;

	if (strlen(path) >= sizeof(address->sun_path))
		return -EINVAL;
	address->sun_family = AF_UNIX;
	strcpy(address->sun_path, path);
	ret->len = sizeof(*address);
	ret->loopback = true;
	return 0;
}

static int parse_v4(const char *host, const char *port, struct metrics_address *ret)
{
	struct sockaddr_in *address = (struct sockaddr_in *)&ret->address;

	address->sin_family = AF_INET;
	if (inet_pton(AF_INET, host, &address->sin_addr) != 1)
		return -EINVAL;
	ret->len = sizeof(*address);
	ret->loopback = ntohl(address->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return parse_port(port, &address->sin_port);
}

static int parse_v6(const char *host, const char *port, struct metrics_address *ret)
{
	struct sockaddr_in6 *address = (struct sockaddr_in6 *)&ret->address;

	address->sin6_family = AF_INET6;
	if (inet_pton(AF_INET6, host, &address->sin6_addr) != 1)
		return -EINVAL;
	ret->len = sizeof(*address);
	ret->loopback = IN6_IS_ADDR_LOOPBACK(&address->sin6_addr);
	return parse_port(port, &address->sin6_port);
}

static int parse(const char *text, struct metrics_address *ret)
{
	const char *colon = strrchr(text, ':');
	char host[HOST_MAX];
	size_t len;

	if (strcmp(text, METRICS_NOWHERE) == 0)
		return 0;
	if (*text == '/')
		return parse_unix(text, ret);
	if (!colon)
		return parse_v4("127.0.0.1", text, ret);
	len = (size_t)(colon - text);
	if (len >= sizeof(host) || len == 0)
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (host[0] != '[')
		return parse_v4(host, colon + 1, ret);
	if (host[len - 1] != ']')
		return -EINVAL;
	host[len - 1] = '\0';
	return parse_v6(host + 1, colon + 1, ret);
}

int metrics_address_parse(const char *text, struct metrics_address *ret)
{
	struct metrics_address address = { 0 };
	int r = parse(text, &address);

	if (r == 0)
		*ret = address;
	return r;
}

/* --- listening --- */

static const char *path_of(const struct metrics_address *address)
{
	return address->address.ss_family == AF_UNIX ? ((const struct sockaddr_un *)&address->address)->sun_path : NULL;
}

/* A socket that is left of a daemon that died. */
static void remove_stale(const struct metrics_address *address)
{
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (sock >= 0 && lstat(path_of(address), &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid() &&
	    connect(sock, (const struct sockaddr *)&address->address, address->len) < 0 && errno == ECONNREFUSED)
		unlink(path_of(address));
	fd_close(&sock);
}

int metrics_address_listen(const struct metrics_address *address)
{
	int sock, r = 0, one = 1;
	mode_t before;

	if (path_of(address))
		remove_stale(address);
	sock = socket(address->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	/* A port whose last connections are just ending. */
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	before = umask(0111);
	if (bind(sock, (const struct sockaddr *)&address->address, address->len) < 0)
		r = -errno;
	umask(before);
	if (r == 0 && listen(sock, BACKLOG) < 0)
		r = -errno;
	if (r < 0)
		fd_close(&sock);
	return r < 0 ? r : sock;
}

void metrics_address_remove(const struct metrics_address *address)
{
	if (path_of(address))
		unlink(path_of(address));
}
