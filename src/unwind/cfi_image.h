/* A small ELF image in memory that holds nothing of a file but its unwind tables.
 *
 * Why a copy: the file may be changed or cut while it is in use (a mapping of it would then raise
 * SIGBUS), it need not stay open, and libdw gets a complete and sorted .eh_frame_hdr whether or not the
 * file has a good one, so no first lookup has to walk the whole section. */
#ifndef ALLOCWATCH_UNWIND_CFI_IMAGE_H
#define ALLOCWATCH_UNWIND_CFI_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_SECTION_MAX (256u << 20)   /* bytes; that of Debian's libLLVM-14 has 4.8 MiB */

struct cfi_image {
	char *bytes;
	size_t size;
	bool has_eh_frame, has_debug_frame;
	size_t eh_frame, eh_frame_size;    /* where .eh_frame is in the image */
	uint64_t eh_frame_address;         /* ELF virtual address */
	size_t search_table;           /* offset of .eh_frame_hdr's table: pairs of two addresses */
	uint32_t functions;            /* its entries */
	uint32_t refused;              /* entries that did not pass cfi_section_index */
};

/* Reads what it needs through elf_fd, which may be closed afterwards.  Fills in *ret (free with
 * cfi_image_fini).  0; -ENODATA: no usable CFI in it; -ENOEXEC: no x86-64 ELF file; -ENOMEM or what
 * reading gave. */
int cfi_image_make(int elf_fd, struct cfi_image *ret);
void cfi_image_fini(struct cfi_image *image);

#endif
