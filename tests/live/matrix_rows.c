#include "matrix_rows.h"

#define SOURCES " $S/builds.c $S/builds_more.c"
#define FLAGS " -g -fno-builtin -pthread "
#define GCC "gcc" FLAGS
#define CLANG "clang" FLAGS
#define MUSL "musl-gcc" FLAGS
/* later ones link with lld by themselves, in whose layout libunwind 1.6 finds no way */
#define RUST "rustc -O -g -C link-arg=-fuse-ld=bfd "
#define PROGRAM " -o program"
/* Debug information in a file of its own. */
#define SPLIT_OFF(file) " && objcopy --only-keep-debug program " file
#define LIBRARY(name) "/usr/lib/x86_64-linux-gnu/" name
#define NEWS "g++ -g -O2 -fno-builtin $S/news.cc" PROGRAM
#define WITH(file) GCC "-O2 -DMORE_SHAPES" SOURCES " $S/" file
#define BESIDE_IT " -Wl,-rpath,'$ORIGIN'"
#define LIBRARY_OF_IT(flags) GCC flags " -shared -fPIC $S/builds_more.c"
#define WITH_LIBRARY LIBRARY_OF_IT("-O2") " -o libmore.so && cp libmore.so reference-libmore.so && " \
		     GCC "-O2 $S/builds.c -L. -lmore" BESIDE_IT PROGRAM " && cp program reference"
#define OBJECT GCC "-O2 -shared -fPIC $S/object.c"
#define WITH_REFERENCE GCC "-O2" SOURCES PROGRAM " && cp program reference"

const struct matrix_row matrix_rows[] = {
	/* optimisation */
	{ .name = "gcc -O0", .build = GCC "-O0" SOURCES PROGRAM },
	{ .name = "gcc -O1", .build = GCC "-O1" SOURCES PROGRAM },
	{ .name = "gcc -O2", .build = GCC "-O2" SOURCES PROGRAM, .is_short = true },
	{ .name = "gcc -O3", .build = GCC "-O3" SOURCES PROGRAM },
	{ .name = "gcc -Os", .build = GCC "-Os" SOURCES PROGRAM },
	{ .name = "gcc -O2 -fomit-frame-pointer", .build = GCC "-O2 -fomit-frame-pointer" SOURCES PROGRAM },
	{ .name = "gcc -O2 -fno-omit-frame-pointer", .build = GCC "-O2 -fno-omit-frame-pointer" SOURCES PROGRAM },
	{ .name = "gcc -O2 -flto", .build = GCC "-O2 -flto" SOURCES PROGRAM },
	{ .name = "clang -O0", .build = CLANG "-O0" SOURCES PROGRAM },
	{ .name = "clang -O1", .build = CLANG "-O1" SOURCES PROGRAM },
	{ .name = "clang -O2", .build = CLANG "-O2" SOURCES PROGRAM },
	{ .name = "clang -O3", .build = CLANG "-O3" SOURCES PROGRAM },
	{ .name = "clang -Os", .build = CLANG "-Os" SOURCES PROGRAM },
	{ .name = "gcc -O2 -fcf-protection=full", .build = GCC "-O2 -fcf-protection=full" SOURCES PROGRAM },
	{ .name = "a handler on a stack of its own", .build = GCC "-O2 -DALTERNATE_STACK" SOURCES PROGRAM },
	/* layouts */
	{ .name = "gcc -static", .build = GCC "-O2 -static" SOURCES PROGRAM, .gdb_alone = true },
	{ .name = "gcc -static-pie", .build = GCC "-O2 -static-pie" SOURCES PROGRAM, .is_short = true },
	{ .name = "gcc -no-pie", .build = GCC "-O2 -fno-pie -no-pie" SOURCES PROGRAM },
	{ .name = "lazy binding", .build = GCC "-O2 -Wl,-z,lazy" SOURCES PROGRAM },
	{ .name = "gold", .build = GCC "-O2 -fuse-ld=gold" SOURCES PROGRAM },
	{ .name = "lld", .build = CLANG "-O2 -fuse-ld=lld" SOURCES PROGRAM, .gdb_alone = true },
	{ .name = "lld -z noseparate-code", .build = CLANG "-O2 -fuse-ld=lld -Wl,-z,noseparate-code" SOURCES PROGRAM,
	  .gdb_alone = true },
	{ .name = "ld -z noseparate-code", .build = GCC "-O2 -Wl,-z,noseparate-code" SOURCES PROGRAM },
	/* gdb does not know the signal's trampoline of one without symbols */
	{ .name = "musl", .build = MUSL "-O2 -DNO_SIGNAL" SOURCES PROGRAM, .gdb_alone = true, .gdb_guesses = true,
	  .is_short = true },
	{ .name = "musl -static", .build = MUSL "-O2 -static" SOURCES PROGRAM, .gdb_alone = true, .gdb_guesses = true },
	/* nothing of glibc is there */
	{ .name = "musl, in a root of its own",
	  .build = MUSL "-O2 -DNO_SIGNAL" SOURCES PROGRAM " && libc=$(realpath /lib/ld-musl-x86_64.so.1) && "
		   "mkdir -p root/usr/bin root/proc root$PWD root${libc%/*} && ln -s usr/lib root/lib && cp $libc root$libc && "
		   "ln -s $libc root/usr/lib/ld-musl-x86_64.so.1 && cp program reference && cp program root$PWD",
	  .gdb_alone = true, .gdb_guesses = true, .is_contained = true,
	  .wrapper = "/usr/bin/bwrap --unshare-all --bind @/root / --proc /proc --new-session" },
	/* debug information */
	{ .name = "DWARF 4", .build = GCC "-O2 -gdwarf-4" SOURCES PROGRAM },
	{ .name = "DWARF 5", .build = GCC "-O2 -gdwarf-5" SOURCES PROGRAM },
	{ .name = "clang, DWARF 4", .build = CLANG "-O2 -gdwarf-4" SOURCES PROGRAM },
	{ .name = "DWARF 4 and 5 mixed",
	  .build = GCC "-O2 -gdwarf-4 -c $S/builds.c && " CLANG "-O2 -gdwarf-5 -c $S/builds_more.c && "
		   "gcc -pthread builds.o builds_more.o" PROGRAM },
	{ .name = "-gz", .build = GCC "-O2 -gz" SOURCES PROGRAM },
	{ .name = "split DWARF", .build = GCC "-O2" SOURCES " -o reference && " GCC "-O2 -gsplit-dwarf" SOURCES PROGRAM },
	{ .name = "stripped, debuglink beside it",
	  .build = WITH_REFERENCE SPLIT_OFF("program.debug") " && strip program && "
		   "objcopy --add-gnu-debuglink=program.debug program", .is_short = true },
	{ .name = "stripped, debuglink in .debug",
	  .build = WITH_REFERENCE " && mkdir .debug" SPLIT_OFF(".debug/program.debug") " && strip program && "
		   "objcopy --add-gnu-debuglink=.debug/program.debug program" },
	{ .name = "stripped, file by build-id",
	  .build = WITH_REFERENCE " && id=$(readelf -n program | sed -n 's/.*Build ID: //p') && "
		   "mkdir -p /usr/lib/debug/.build-id/${id%${id#??}}"
		   SPLIT_OFF("/usr/lib/debug/.build-id/${id%${id#??}}/${id#??}.debug") " && strip program",
	  .needs_own_debug_folder = true },
	{ .name = "stripped, .gnu_debugdata",
	  .build = WITH_REFERENCE " && nm -P --defined-only program | awk '$2 ~ /^[Tt]$/ { print $1 }' >functions && "
		   "objcopy --only-keep-debug program all && "
		   "objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=functions all mini && "
		   "xz mini && strip program && objcopy --add-section .gnu_debugdata=mini.xz program",
	  .names_functions_only = true },
	{ .name = "500 MB of debug information",
	  .build = "$S/../bench/large_object liblarge.so 96 8000 && [ $(stat -c %s liblarge.so) -ge 500000000 ] && " WITH("builds_large.c") " -L. -llarge" BESIDE_IT PROGRAM },
	/* languages and allocators */
	{ .name = "C++, every new, glibc", .build = NEWS },
	{ .name = "C++, every new, jemalloc", .build = NEWS, .preload = LIBRARY("libjemalloc.so.2") },
	{ .name = "C++, every new, tcmalloc", .build = NEWS, .preload = LIBRARY("libtcmalloc_minimal.so.4") },
	{ .name = "C++, every new, mimalloc", .build = NEWS, .preload = LIBRARY("libmimalloc.so.2.0") },
	{ .name = "C, jemalloc", .build = GCC "-O2" SOURCES PROGRAM, .preload = LIBRARY("libjemalloc.so.2") },
	{ .name = "C, tcmalloc", .build = GCC "-O2" SOURCES PROGRAM, .preload = LIBRARY("libtcmalloc_minimal.so.4") },
	{ .name = "C, mimalloc", .build = GCC "-O2" SOURCES PROGRAM, .preload = LIBRARY("libmimalloc.so.2.0") },
	{ .name = "Rust, std", .build = RUST "$S/boxes.rs" PROGRAM },
	/* with the source of jemalloc that the crate has */
	{ .name = "Rust, jemalloc with its prefix",
	  .build = "mkdir j && cp -r /usr/share/cargo/registry/jemalloc-sys-*/jemalloc/. "
		   "/usr/share/cargo/registry/jemalloc-sys-*/configure/. j && cd j && touch config.stamp.in && "
		   "./configure -q --disable-cxx --with-jemalloc-prefix=_rjem_ --with-private-namespace=_rjem_ "
		   "CFLAGS='-O2 -g -w' >/dev/null && make -s -j2 lib/libjemalloc_pic.a >/dev/null && cd .. && "
		   RUST "-L j/lib $S/boxes_jemalloc.rs" PROGRAM },
	{ .name = "Go, cgo", .build = "GOCACHE=$PWD/cache go build" PROGRAM " $S/cgo.go", .gdb_alone = true,
	  .cut = TRUNCATED_LOOP, .all_are_cut = true },
	/* situations */
	{ .name = "deleted while it runs", .build = WITH_REFERENCE, .meanwhile = "rm program" },
	{ .name = "upgraded while it runs", .build = WITH_REFERENCE,
	  .meanwhile = GCC "-O0" SOURCES " -o next && mv next program" },
	{ .name = "its library deleted while it runs", .build = WITH_LIBRARY, .meanwhile = "rm libmore.so" },
	{ .name = "its library upgraded while it runs", .build = WITH_LIBRARY,
	  .meanwhile = LIBRARY_OF_IT("-O0") " -o next && mv next libmore.so" },
	{ .name = "in its own mount namespace", .build = WITH_REFERENCE, .wrapper = "/usr/bin/unshare --mount" },
	/* its own files are mounted there: what is found at its paths here is another's */
	{ .name = "other files at its paths",
	  .build = WITH_LIBRARY " && mkdir own && cp program libmore.so own && echo \"for i in program libmore.so; do "
		   "mount --bind $PWD/own/\\$i $PWD/\\$i || exit 1; done; exec \\\"\\$@\\\"\" >enter",
	  .wrapper = "/usr/bin/unshare --mount /bin/sh @/enter",
	  .meanwhile = LIBRARY_OF_IT("-O0") " -o next && cat next >libmore.so && " GCC "-O0" SOURCES " -o next && cat next >program" },
	{ .name = "in its own user namespace", .build = WITH_REFERENCE, .wrapper = "/usr/bin/unshare --user --map-root-user" },
	{ .name = "in its own PID, mount and user namespace", .build = WITH_REFERENCE, .own_pid_namespace = true,
	  .wrapper = "/usr/bin/unshare --user --map-root-user --mount" },
	{ .name = "in a sandbox of bubblewrap", .build = WITH_REFERENCE, .is_contained = true,
	  .wrapper = "/usr/bin/bwrap --unshare-all --dev-bind / / --proc /proc --new-session" },
	{ .name = "IFUNC and versions of one symbol",
	  .build = GCC "-O2 -shared -fPIC $S/ifuncs.c -Wl,--version-script=$S/ifuncs.map -o libifuncs.so && "
		   GCC "-O2" SOURCES " -L. -lifuncs" BESIDE_IT PROGRAM },
	{ .name = "coroutines", .build = WITH("builds_coroutines.c") PROGRAM },
	{ .name = "a recursion 100,000 deep", .build = WITH("builds_deep.c") PROGRAM, .cut = TRUNCATED_LIMIT },
	{ .name = "objects in turn at one address",
	  .build = "for i in 0 1 2; do " OBJECT " -Wl,-soname,o$i -o object$i.so; done && "
		   WITH("builds_objects.c") " -DTURNS -DOBJECTS=3" PROGRAM, .moving = true },
	{ .name = "400 objects with a malloc each",
	  .build = OBJECT " -DOWN_MALLOC -Wl,-Bsymbolic -o object0.so && for i in $(seq 399); do cp object0.so object$i.so; done && "
		   WITH("builds_objects.c") " -DOBJECTS=400 -L. -Wl,--no-as-needed $(seq -f -l:object%g.so 0 399)" BESIDE_IT
		   PROGRAM },
	{ .name = "1,000 threads", .build = WITH("builds_threads.c") PROGRAM },
};
const size_t matrix_row_count = sizeof(matrix_rows) / sizeof(matrix_rows[0]);
