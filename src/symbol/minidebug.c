#define _GNU_SOURCE              /* memfd_create */

#include "symbol/minidebug.h"

#include "base/fd.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* No function in here looks for files or asks a server. */
static int find_no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			     const char *file, const char *link, GElf_Word crc, char **ret_name)
{
	(void)module, (void)userdata, (void)name, (void)base;
	(void)file, (void)link, (void)crc, (void)ret_name;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_debuginfo = find_no_debuginfo,
	.section_address = dwfl_offline_section_address,
};

struct minidebug {
	Dwfl *dwfl;
	Elf *elf;
};

/* libdwfl unpacks a compressed file when it opens one, so it is given the section as a file. */
static int section_as_file(const Elf_Data *data)
{
	int fd = memfd_create("gnu_debugdata", MFD_CLOEXEC);

	if (fd >= 0 && fd_write_all(fd, data->d_buf, data->d_size) < 0)
		fd_close(&fd);
	return fd;
}

static int unpack(struct minidebug *minidebug, int fd)
{
	Dwfl_Module *module;
	GElf_Addr bias;

	minidebug->dwfl = dwfl_begin(&callbacks);
	if (!minidebug->dwfl)
		return -ENOMEM;
	module = dwfl_report_offline(minidebug->dwfl, "minidebug", "", fd);
	if (!module)
		return -ENOENT;
	dwfl_report_end(minidebug->dwfl, NULL, NULL);
	minidebug->elf = dwfl_module_getelf(module, &bias);
	return minidebug->elf ? 0 : -ENOENT;
}

int minidebug_open(const struct elf_file *file, struct minidebug **ret)
{
	Elf_Data *data = elf_file_section_data(file, ".gnu_debugdata");
	struct minidebug *minidebug;
	int fd, r;

	if (!data)
		return -ENOENT;
	fd = section_as_file(data);
	if (fd < 0)
		return -ENOENT;
	minidebug = calloc(1, sizeof(*minidebug));
	r = minidebug ? unpack(minidebug, fd) : -ENOMEM;
	if (r < 0) {
		fd_close(&fd);
		minidebug_free(minidebug);
		return r;
	}
	*ret = minidebug;
	return 0;
}

Elf *minidebug_elf(const struct minidebug *minidebug)
{
	return minidebug->elf;
}

void minidebug_free(struct minidebug *minidebug)
{
	if (!minidebug)
		return;
	if (minidebug->dwfl)
		dwfl_end(minidebug->dwfl);
	free(minidebug);
}
