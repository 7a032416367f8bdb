#include "target/again.h"

#include "target/ptrace.h"
#include "target/resident.h"
#include "target/rights.h"
#include "arch/arch.h"
#include "arch/resident.h"
#include "arch/syscall.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#define WORDS_MAX (4u << 20)           /* arguments, environment, auxiliary vector: the kernel's limits lie below */
#define CHUNK_WORDS 256
#define PAGE 4096
#define CODE_MAX PAGE

/* Reads words one after the other, a piece of a page at a time, for nobody knows how many there are. */
struct words {
	pid_t tid;
	raddr at;                      /* of the next one */
	size_t next, count, total;
	uint64_t items[CHUNK_WORDS];
};

static int next_word(struct words *words, uint64_t *ret_word)
{
	if (words->next == words->count) {
		size_t len = PAGE - words->at % PAGE;

		if (len > sizeof(words->items))
			len = sizeof(words->items);
		if (words->at % sizeof(uint64_t) != 0 ||
		    !rights_read_memory(words->tid, words->at, words->items, len))
			return -EFAULT;
		words->next = 0;
		words->count = len / sizeof(uint64_t);
	}
	if (++words->total > WORDS_MAX)
		return -E2BIG;
	*ret_word = words->items[words->next++];
	words->at += sizeof(uint64_t);
	return 0;
}

static int skip_to_zero(struct words *words)
{
	uint64_t word = 1;
	int r = 0;

	while (r == 0 && word != 0)
		r = next_word(words, &word);
	return r;
}

static int find_name(struct words *words, raddr *ret_name)
{
	uint64_t type, value;
	int r;

	do {
		r = next_word(words, &type);
		if (r == 0)
			r = next_word(words, &value);
		if (r < 0)
			return r;
		if (type == AT_EXECFN) {
			*ret_name = value;
			return 0;
		}
	} while (type != AT_NULL);
	return -ENOENT;
}

int again_look(pid_t tid, struct again *ret_again)
{
	struct words words = { .tid = tid };
	struct user_regs_struct regs;
	struct again again;
	uint64_t argc;
	int r = ptrace_getregs(tid, &regs);

	if (r < 0)
		return r;
	words.at = arch_sp(&regs);
	r = next_word(&words, &argc);
	again.argv = words.at;
	if (r == 0)
		r = skip_to_zero(&words);
	again.envp = words.at;
	if (r == 0)
		r = skip_to_zero(&words);
	if (r == 0)
		r = find_name(&words, &again.name);
	if (r == 0)
		*ret_again = again;
	return r;
}

static int read_of(void *tid, raddr at, void *buf, size_t len)
{
	return rights_read_memory(*(const pid_t *)tid, at, buf, len) ? 0 : -EFAULT;
}

int again_name(pid_t tid, const struct again *again, char *name, size_t space)
{
	const struct reader reader = { .read = read_of, .context = &tid };

	return reader_string(&reader, again->name, name, space);
}

static int build(raddr at, const struct again *again, const char *path, const struct user_regs_struct *regs,
		 uint8_t code[CODE_MAX], struct arch_stub *ret)
{
	const struct arch_stub_call call = {
		.number = SYS_execve,
		.args = { again->name, again->argv, again->envp },
		.data = path, .data_length = path ? (uint32_t)strlen(path) + 1 : 0,
		.data_arg = path ? 0 : -1,
	};

	return arch_build_stub(at, &call, regs, code, CODE_MAX, ret);
}

int again_prepare(pid_t tid, const struct again *again, const char *path)
{
	struct user_regs_struct regs, settled;
	uint8_t code[CODE_MAX];
	struct arch_stub stub;
	raddr at;
	int r = ptrace_getregs(tid, &regs);

	if (r == 0)
		r = resident_find_room(tid, arch_pc(&regs), path ? strlen(path) + 1 : 0, &at);
	if (r < 0)
		return r;
	settled = regs;
	syscall_settle(&settled);
	r = build(at, again, path, &settled, code, &stub);
	if (r == 0)
		r = ptrace_poke(tid, at, code, stub.length);
	if (r < 0)
		return r;
	arch_set_pc(&regs, at);
	syscall_forget(&regs);
	return ptrace_setregs(tid, &regs);
}
