// Every form of new, kept, and given back by the form of delete that belongs to it.  Obeys as builds.c does; depends on the
// C++ library alone, so that any allocator can be put before libc's.
#include <cstdio>
#include <new>
#include <unistd.h>

namespace {

struct alignas(64) wide {
	char bytes[192];
};

constexpr int rounds_max = 1000;

struct round {
	int *one, *many, *quiet;
	wide *aligned, *aligned_many;
	char *quiet_many;
	wide *quiet_aligned, *quiet_aligned_many;
	void *plain, *plain_many;
} kept[rounds_max];
int rounds;

constexpr std::size_t plain_bytes = 50, plain_many_bytes = 70;
constexpr std::size_t blocks_a_round = 10;
constexpr std::size_t bytes_a_round = sizeof(int) + 10 * sizeof(int) + sizeof(wide) + 2 * sizeof(wide) + sizeof(int) + 30 +
				      sizeof(wide) + 3 * sizeof(wide) + plain_bytes + plain_many_bytes;

__attribute__((noinline)) void keep(round &r)
{
	r.one = new int(1);
	r.many = new int[10];
	r.aligned = new wide;
	r.aligned_many = new wide[2];
	r.quiet = new (std::nothrow) int(2);
	r.quiet_many = new (std::nothrow) char[30];
	r.quiet_aligned = new (std::nothrow) wide;
	r.quiet_aligned_many = new (std::nothrow) wide[3];
	r.plain = ::operator new(plain_bytes);
	r.plain_many = ::operator new[](plain_many_bytes);
}

__attribute__((noinline)) void give_back(round &r)
{
	delete r.one;
	delete[] r.many;
	delete r.aligned;
	::operator delete[](r.aligned_many, 2 * sizeof(wide), std::align_val_t(alignof(wide)));
	delete r.quiet;
	::operator delete[](r.quiet_many, std::nothrow);
	::operator delete(r.quiet_aligned, std::align_val_t(alignof(wide)), std::nothrow);
	::operator delete[](r.quiet_aligned_many, std::align_val_t(alignof(wide)), std::nothrow);
	::operator delete(r.plain, plain_bytes);
	::operator delete[](r.plain_many, plain_many_bytes);
}

} // namespace

int main()
{
	char command, line[64];

	if (write(STDOUT_FILENO, "R\n", 2) != 2)
		return 98;
	while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q') {
		if (command == 'g' && rounds < rounds_max)
			keep(kept[rounds++]);
		while (command == 'f' && rounds > 0)
			give_back(kept[--rounds]);
		int length = std::snprintf(line, sizeof(line), "blocks=%zu bytes=%zu\n", rounds * blocks_a_round,
					   rounds * bytes_a_round);
		if (write(STDOUT_FILENO, line, length) != length)
			return 98;
	}
	_exit(0);
}
