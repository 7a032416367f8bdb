/* Gives up everything a parser of hostile files does not need, before the first of their bytes is
 * touched: privileges, files, core dumps, unbounded memory, other descriptors, most system calls. */
#ifndef ALLOCWATCH_SYMBOL_CONFINE_H
#define ALLOCWATCH_SYMBOL_CONFINE_H

/* The most address space: a debug file of 1 GiB can be mapped and indexed. */
#define CONFINE_MEMORY_MAX (4ULL << 30)
#define CONFINE_DESCRIPTORS_MAX 512
/* The largest file it may write (an unpacked section in memory). */
#define CONFINE_FILE_MAX (256ULL << 20)
/* Whom root becomes: nobody and nogroup. */
#define CONFINE_ID 65534

/* keep_fd: the one descriptor to keep, besides 0 to 2.  0 or negative errno: then this process must
 * end, for it may have some of its rights still. */
int confine(int keep_fd);

#endif
