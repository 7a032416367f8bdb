// Every form of new and delete, and containers that grow; nothing by malloc.
//
// A round makes one of each form and takes all back but one std::vector (16 KiB after growing), one
// array by new[] (100 bytes) and one node of a std::map.
// Tally: blocks and bytes kept by the lines with new (the vector's and the map's own not counted),
// vectors.
extern "C" {
#include "victim.h"
}

#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace {

constexpr std::size_t array_bytes = 100;

struct alignas(64) wide {
	char bytes[192];
};

struct shape {
	virtual ~shape() = default;
	int sides = 0;
};

struct polygon : shape {
	char points[80] = {};
};

long blocks, vectors;

__attribute__((noinline)) char *keep_array()
{
	char *p = new char[array_bytes]; // kept array
	p[0] = 1;
	blocks++;
	return p;
}

__attribute__((noinline)) void keep_vector()
{
	auto *numbers = new std::vector<std::uint64_t>;

	for (std::uint64_t i = 0; i < 2048; i++)
		numbers->push_back(i); // growing vector
	vectors++;
}

__attribute__((noinline)) void keep_node(long key)
{
	static std::map<long, std::string> names;

	names[key] = std::string(60, 'n');
}

void every_form()
{
	delete new int(1);
	delete[] new int[10];
	delete new wide;
	delete[] new wide[2];
	delete new (std::nothrow) int(2);
	delete[] new (std::nothrow) char[30];
	std::unique_ptr<shape> some(new polygon);
	auto shared = std::make_shared<polygon>();
	some->sides = shared->sides;
}

void live()
{
	every_form();
	keep_array();
	keep_vector();
	keep_node(blocks);
	say("blocks=%ld bytes=%ld vectors=%ld", blocks, blocks * static_cast<long>(array_bytes), vectors);
}

} // namespace

int main()
{
	obey(live);
	return 0;
}
