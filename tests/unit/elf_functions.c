#include "elf_functions.h"

#include <check.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void map_file(struct elf_functions *functions, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	ck_assert_msg(fd >= 0, "%s is missing: contrib/ lists the packages the tests need", path);
	ck_assert_int_eq(fstat(fd, &st), 0);
	functions->file_size = (size_t)st.st_size;
	functions->file = mmap(NULL, functions->file_size, PROT_READ, MAP_PRIVATE, fd, 0);
	ck_assert_ptr_ne(functions->file, MAP_FAILED);
	close(fd);
}

static const uint8_t *code_at(const struct elf_functions *functions, uint64_t address, uint64_t size)
{
	size_t count;

	ck_assert_int_eq(elf_getphdrnum(functions->elf, &count), 0);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr phdr;

		if (!gelf_getphdr(functions->elf, (int)i, &phdr) || phdr.p_type != PT_LOAD)
			continue;
		if (!(phdr.p_flags & PF_X) || address < phdr.p_vaddr ||
		    address + size > phdr.p_vaddr + phdr.p_filesz)
			continue;
		return (const uint8_t *)functions->file + phdr.p_offset + (address - phdr.p_vaddr);
	}
	return NULL;
}

static void add_symbols(struct elf_functions *functions, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_getdata(scn, NULL);

	for (size_t i = 0; i < shdr->sh_size / shdr->sh_entsize; i++) {
		struct elf_function *function;
		const uint8_t *code;
		GElf_Sym sym;

		if (!gelf_getsym(data, (int)i, &sym) || sym.st_size == 0 || sym.st_shndx == SHN_UNDEF)
			continue;
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC)
			continue;
		code = code_at(functions, sym.st_value, sym.st_size);
		if (!code)
			continue;
		function = vec_push(&functions->items);
		ck_assert_ptr_nonnull(function);
		function->address = sym.st_value;
		function->size = sym.st_size;
		function->code = code;
		function->name = elf_strptr(functions->elf, shdr->sh_link, sym.st_name);
	}
}

static int by_address(const void *a, const void *b)
{
	const struct elf_function *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;
}

void elf_functions_load(struct elf_functions *functions, const char *path)
{
	Elf_Scn *scn = NULL;

	memset(functions, 0, sizeof(*functions));
	map_file(functions, path);
	elf_version(EV_CURRENT);
	functions->elf = elf_memory(functions->file, functions->file_size);
	ck_assert_ptr_nonnull(functions->elf);
	while ((scn = elf_nextscn(functions->elf, scn))) {
		GElf_Shdr shdr;

		if (gelf_getshdr(scn, &shdr) && (shdr.sh_type == SHT_DYNSYM || shdr.sh_type == SHT_SYMTAB))
			add_symbols(functions, scn, &shdr);
	}
	ck_assert_uint_gt(functions->items.count, 0);
	qsort(functions->items.items, functions->items.count, sizeof(*functions->items.items), by_address);
}

void elf_functions_fini(struct elf_functions *functions)
{
	vec_fini(&functions->items);
	elf_end(functions->elf);
	munmap(functions->file, functions->file_size);
}

/* "  9a1b0:\tret" or "repz ret", "bnd ret", "ret    $0x8"; never "retf" or "iret". */
static int is_ret_line(const char *mnemonic)
{
	size_t len;

	for (;;) {
		len = strcspn(mnemonic, " \t\n");
		if ((len == 3 && !strncmp(mnemonic, "ret", 3)) || (len == 4 && !strncmp(mnemonic, "retq", 4)))
			return 1;
		if (!((len == 4 && (!strncmp(mnemonic, "repz", 4))) || (len == 3 && !strncmp(mnemonic, "bnd", 3))))
			return 0;
		mnemonic += len + strspn(mnemonic + len, " \t");
	}
}

void objdump_rets(const char *path, struct addresses *ret)
{
	char command[4096], line[1024];
	FILE *out;

	memset(ret, 0, sizeof(*ret));
	snprintf(command, sizeof(command), "LC_ALL=C objdump -d --no-show-raw-insn '%s'", path);
	out = popen(command, "re");
	ck_assert_ptr_nonnull(out);
	while (fgets(line, sizeof(line), out)) {
		char *end;
		uint64_t address = strtoull(line, &end, 16), *item;

		if (end == line || *end != ':' || !is_ret_line(end + 1 + strspn(end + 1, " \t")))
			continue;
		item = vec_push(&ret->items);
		ck_assert_ptr_nonnull(item);
		*item = address;
	}
	ck_assert_int_eq(pclose(out), 0);
	ck_assert_uint_gt(ret->items.count, 0);
}

size_t addresses_find(const struct addresses *addresses, uint64_t address)
{
	size_t low = 0, high = addresses->items.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (addresses->items.items[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
