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
#define QUERY_EXECUTABLE 0x04
#define QUERY_THERE_OR_BEHIND 0x10
#define QUERY_OF_FILE 0x20

int maps_query_code(int maps_fd, raddr from, struct mapped_code *ret)
{
	struct query query = {
		.size = sizeof(query), .flags = QUERY_EXECUTABLE | QUERY_THERE_OR_BEHIND | QUERY_OF_FILE, .address = from,
	};
	int r;

	do
		r = ioctl(maps_fd, QUERY, &query);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	*ret = (struct mapped_code){ query.start, query.end, makedev(query.device_major, query.device_minor), query.inode };
	return 0;
}
