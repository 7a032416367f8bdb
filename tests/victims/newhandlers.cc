// Leaves operator new through a new-handler that allocates.
//
// A round: the handler keeps a block and throws; keeps one and jumps out by longjmp; keeps one and gives up, so that
// operator new throws bad_alloc itself; frees a reserve and lets operator new try again; the same of nothrow and aligned
// new; a constructor throws within new; an exception is kept alive by exception_ptr over all of that, and let go.
// After each, deeper in the stack, blocks are kept and freed.  Tally: escapes, blocks and bytes (kept).
extern "C" {
#include "victim.h"
}

#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <new>

namespace {

volatile std::size_t too_much = PTRDIFF_MAX - 64;
long escapes, blocks, bytes;
std::jmp_buf way_out;
char *reserve;

struct refusal {
	int code;
};

struct alignas(64) wide {
	char room[192];
};

__attribute__((noinline)) void keep(std::size_t size)
{
	char *p = static_cast<char *>(std::malloc(size));

	if (!p)
		die("malloc failed");
	p[0] = 1;
	blocks++;
	bytes += static_cast<long>(size);
}

__attribute__((noinline)) void go_on(int depth)
{
	volatile char room[120];
	char *p = new char[70];

	room[0] = 1;
	blocks++;
	bytes += 70;
	p[0] = 1;
	delete[] new char[90];
	delete new wide;
	std::free(std::realloc(std::malloc(30), 3000));
	keep(25);
	if (depth > 0)
		go_on(depth - 1);
	if (room[0] != 1)
		die("the stack was written to");
}

void keep_and_throw()
{
	keep(44);
	throw refusal{ 3 };
}

void keep_and_throw_bad_alloc()
{
	keep(48);
	throw std::bad_alloc();
}

void keep_and_jump()
{
	keep(45);
	std::longjmp(way_out, 1);
}

void keep_and_give_up()
{
	keep(46);
	std::set_new_handler(nullptr);
}

void let_reserve_go()
{
	delete[] reserve;
	reserve = nullptr;
	std::set_new_handler(keep_and_throw);
}

template <typename Ask> void ask_with(std::new_handler handler, Ask ask)
{
	std::set_new_handler(handler);
	try {
		if (setjmp(way_out) == 0) {
			const void *p = ask();

			if (p)
				die("operator new succeeded: %p", p);
		}
	} catch (const refusal &r) {
		if (r.code != 3)
			die("another exception arrived");
	} catch (const std::bad_alloc &) {
	}
	std::set_new_handler(nullptr);
	escapes++;
	go_on(static_cast<int>(escapes % 4));
}

void *plainly()
{
	return ::operator new(too_much);
}

void *without_throwing()
{
	return ::operator new(too_much, std::nothrow);
}

void *aligned()
{
	return ::operator new(too_much, std::align_val_t(64));
}

struct bad {
	char room[300];
	bad()
	{
		keep(47);
		throw refusal{ 3 };
	}
};

void *construct()
{
	return new bad;
}

std::exception_ptr catch_one()
{
	std::set_new_handler(keep_and_throw);
	try {
		plainly();
	} catch (...) {
		return std::current_exception();
	}
	return nullptr;
}

void escape()
{
	std::exception_ptr kept = catch_one();

	ask_with(keep_and_throw, plainly);
	ask_with(keep_and_jump, plainly);
	ask_with(keep_and_give_up, plainly);
	reserve = new char[5000];
	ask_with(let_reserve_go, plainly);
	ask_with(keep_and_give_up, without_throwing);
	ask_with(keep_and_throw_bad_alloc, without_throwing);
	ask_with(keep_and_throw, aligned);
	ask_with(keep_and_jump, aligned);
	ask_with(nullptr, construct);
	try {
		std::rethrow_exception(kept);
	} catch (const refusal &) {
		escapes++;
	}
	kept = nullptr;
	go_on(1);
	say("escapes=%ld blocks=%ld bytes=%ld", escapes, blocks, bytes);
}

} // namespace

int main()
{
	obey(escape);
	return 0;
}
