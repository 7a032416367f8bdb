#include "target/maps_query.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

/* struct procmap_query and its flags, from include/uapi/linux/fs.h: the headers of older systems have none. */
struct query {
	uint64_t size, flags, address;
	uint64_t start, end, mapping_flags, page_size, offset, inode;
	uint32_t device_major, device_minor;
	uint32_t name_size, build_id_size;
	uint64_t name_address, build_id_address;
};

#define QUERY _IOWR('f', 17, struct query)
#define QUERY_READABLE 0x01
#define QUERY_EXECUTABLE 0x04
#define QUERY_THERE_OR_BEHIND 0x10
#define QUERY_OF_FILE 0x20

static int ask(int maps_fd, uint64_t flags, raddr from, struct query *ret)
{
	int r;

	*ret = (struct query){ .size = sizeof(*ret), .flags = flags, .address = from };
	do
		r = ioctl(maps_fd, QUERY, ret);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int maps_query_code(int maps_fd, raddr from, struct mapped_code *ret)
{
	struct query query;
	int r = ask(maps_fd, QUERY_EXECUTABLE | QUERY_THERE_OR_BEHIND | QUERY_OF_FILE, from, &query);

	if (r < 0)
		return r;
	*ret = (struct mapped_code){ query.start, query.end, makedev(query.device_major, query.device_minor), query.inode };
	return 0;
}

int maps_query_readable(int maps_fd, raddr from, struct mapped_range *ret)
{
	struct query query;
	int r = ask(maps_fd, QUERY_READABLE | QUERY_THERE_OR_BEHIND, from, &query);

	if (r < 0)
		return r;
	*ret = (struct mapped_range){ query.start, query.end };
	return 0;
}
