// Operators new and delete of a program's own, to be compiled into another victim: they hand on what malloc returns; with POOL
// small blocks come from a pool.
#include <cstdlib>
#include <new>

#ifdef POOL
namespace {

constexpr std::size_t slot_bytes = 64, slots = 4096;
alignas(64) char pool[slot_bytes * slots];
bool taken[slots];

void *take()
{
	for (std::size_t i = 0; i < slots; i++) {
		if (!taken[i]) {
			taken[i] = true;
			return pool + i * slot_bytes;
		}
	}
	return nullptr;
}

} // namespace
#endif

void *operator new(std::size_t size)
{
	void *block = nullptr;

#ifdef POOL
	if (size <= slot_bytes)
		block = take();
#endif
	if (!block)
		block = std::malloc(size);
	if (!block)
		throw std::bad_alloc();
	return block;
}

void *operator new[](std::size_t size)
{
	return operator new(size);
}

void operator delete(void *block) noexcept
{
#ifdef POOL
	std::size_t offset = static_cast<char *>(block) - pool;

	if (offset < sizeof(pool)) {
		taken[offset / slot_bytes] = false;
		return;
	}
#endif
	std::free(block);
}

void operator delete[](void *block) noexcept
{
	operator delete(block);
}

void operator delete(void *block, std::size_t) noexcept
{
	operator delete(block);
}

void operator delete[](void *block, std::size_t) noexcept
{
	operator delete(block);
}
