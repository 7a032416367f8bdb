// Frees what it should not: by another form than made it, twice, or what is no block.
// Built by the test that watches it.  With an argument it frees wrongly at once, and waits.
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

#define VISIBLE extern "C" __attribute__((noinline, used))

static char arena[4096];

VISIBLE void *pool_get(size_t)
{
	return arena;
}

VISIBLE void pool_put(void *p)
{
	*static_cast<volatile char *>(p) = 0;
}

static void *volatile place;

// Not seen through by the compiler.
template <class T> static T *hidden(T *p)
{
	place = p;
	return static_cast<T *>(place);
}

__attribute__((noinline)) static void right()
{
	delete hidden(new int);
	delete[] hidden(new int[10]);
	std::free(hidden(std::malloc(10)));
	std::string text(100, 'x');
	hidden(text.data());
}

__attribute__((noinline)) static void wrong()
{
	std::free(hidden(new int[25])); // array by free
	delete hidden(new int[50]); // array by delete
	::operator delete(hidden(std::malloc(300))); // malloc by delete
	std::free(hidden(new double)); // new by free
}

__attribute__((noinline)) static void twice()
{
	void *p = pool_get(10);

	pool_put(p);
	pool_put(p); // the second time
}

int main(int argc, char **)
{
	char command;

	if (argc > 1) {
		pool_put(arena + 64); // no block
		for (;;)
			pause();
	}
	if (write(STDOUT_FILENO, "R\n", 2) != 2)
		return 1;
	while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q') {
		right();
		if (command == 'w')
			wrong();
		if (command == 't')
			twice();
		if (write(STDOUT_FILENO, "done=1\n", 7) != 7)
			return 1;
	}
}
