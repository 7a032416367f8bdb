/* The other files that belong to the one that is read: by whom they are opened.  A program of its own opens them itself;
 * the symbolizer asks the daemon, since it has no rights, and what may be read is not for it to say.
 *
 * libdw opens the .dwo file of a unit by itself and cannot be handed one.  So the program's open(), which libdw calls,
 * is defined here. */
#ifndef ALLOCWATCH_SYMBOL_OPENER_H
#define ALLOCWATCH_SYMBOL_OPENER_H

#include <stddef.h>

struct opener {
	void *context;
	/* A regular file, for reading, of an absolute path that came out of a hostile file: a descriptor, or negative
	 * errno. */
	int (*open)(void *context, const char *path);
	/* The debug information of the module that is being opened (len 0), or the file with this build-id that dwz has made of a
	 * part of it, from elsewhere than this machine's folders: a descriptor, -EINPROGRESS: later, or another negative errno.
	 * NULL: there is none. */
	int (*fetch)(void *context, const void *build_id, size_t len);
};

/* Of this whole process, which opens no file by any other way from then on; NULL: file_open_plain(), again. */
void opener_set(const struct opener *opener);
/* A descriptor or negative errno. */
int opener_open(const char *path);

int opener_fetch(const void *build_id, size_t len);

/* Between the two libdw's open() is opener_open().  otherwise: tried where there is no such file; NULL: nothing is. */
void opener_enter(int (*otherwise)(void *context), void *context);
void opener_leave(void);

#endif
