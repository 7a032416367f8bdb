// Leaves the allocator by other ways than its return: exceptions and longjmp.
//
// A round: operator new throws bad_alloc (too large), a new-handler throws its own exception, a
// new-handler jumps out by longjmp, each under a catch that goes on allocating.
// Tally: escapes, blocks and bytes (kept, by new, one of 136 bytes after each escape).
extern "C" {
#include "victim.h"
}

#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kept_bytes = 136;
volatile std::size_t too_much = PTRDIFF_MAX;
long escapes, blocks;
std::jmp_buf way_out;

struct refusal {
	int code;
};

__attribute__((noinline)) void keep_one()
{
	char *p = new char[kept_bytes]; // kept
	p[0] = 1;
	blocks++;
}

void by_bad_alloc()
{
	try {
		char *p = new char[too_much];
		die("operator new of %zu bytes succeeded: %p", too_much, static_cast<void *>(p));
	} catch (const std::bad_alloc &) {
		escapes++;
	}
	keep_one();
}

void refuse()
{
	throw refusal{ 3 };
}

void by_own_exception()
{
	std::set_new_handler(refuse);
	try {
		char *p = new char[too_much];
		die("operator new succeeded: %p", static_cast<void *>(p));
	} catch (const refusal &r) {
		if (r.code != 3)
			die("another exception arrived");
		escapes++;
	}
	std::set_new_handler(nullptr);
	keep_one();
}

void jump_out()
{
	std::longjmp(way_out, 1);
}

void by_longjmp()
{
	std::set_new_handler(jump_out);
	if (setjmp(way_out) == 0) {
		char *p = new char[too_much];
		die("operator new succeeded: %p", static_cast<void *>(p));
	}
	escapes++;
	std::set_new_handler(nullptr);
	keep_one();
}

void escape()
{
	by_bad_alloc();
	by_own_exception();
	by_longjmp();
	say("escapes=%ld blocks=%ld bytes=%ld", escapes, blocks, blocks * static_cast<long>(kept_bytes));
}

} // namespace

int main()
{
	obey(escape);
	return 0;
}
