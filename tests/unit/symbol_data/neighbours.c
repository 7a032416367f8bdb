/* A static function between two exported ones: stripped, it has no symbol and must get no name. */
volatile int sink;

__attribute__((noinline, noclone)) int before_it(int x)
{
	sink += x;
	return sink * 3;
}

__attribute__((noinline, noclone)) static int without_symbol(int x)
{
	sink -= x;
	return sink * 5;
}

int after_it(int x)
{
	sink ^= x;
	return without_symbol(x) * 7;
}

/* What a person calls it, what the library calls it, and a local name, at one address. */
int __internal_name(int x)
{
	sink |= x;
	return x + 1;
}
extern int public_name(int x) __attribute__((weak, alias("__internal_name")));

static int local_only(int x)
{
	return x - 1 + sink;
}
extern int _exported_name(int x) __attribute__((alias("local_only")));

static int chosen(int x)
{
	return x + sink;
}

static int (*choose(void))(int)
{
	return chosen;
}
int indirect(int x) __attribute__((ifunc("choose")));

int old_version(int x)
{
	return sink + x * 11;
}

int new_version(int x)
{
	return sink + x * 13;
}
__asm__(".symver old_version, versioned@NEIGHBOURS_1");
__asm__(".symver new_version, versioned@@NEIGHBOURS_2");

/* Without them the compiler would think nobody calls these. */
int (*const keep[])(int) = { old_version, new_version, local_only };
