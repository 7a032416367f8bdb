// A vector that grows and a string that is copied: nothing is asked for but by the library's containers.
// Built by the test that watches it, with optimisation, so that most of the library is inlined.
#include <string>
#include <unistd.h>
#include <vector>

static std::vector<long> numbers;
static std::string *volatile kept;
static std::string pattern(1000, 'x');

__attribute__((noinline)) static void grow()
{
	for (long i = 0; i < 4096; i++)
		numbers.push_back(i); // growing vector
}

__attribute__((noinline)) static void copy()
{
	std::string *copies = new std::string[100];

	for (int i = 0; i < 100; i++)
		copies[i] = pattern; // copied string
	kept = copies;
}

int main()
{
	char command;

	if (write(STDOUT_FILENO, "R\n", 2) != 2)
		return 1;
	while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q') {
		grow();
		copy();
		if (write(STDOUT_FILENO, "done=1\n", 7) != 7)
			return 1;
	}
}
