/* A file that a command writes: under another name first, so that nobody ever sees half of it, and one
 * that is there already stays until the new one is complete. */
#ifndef ALLOCWATCH_CLI_NEW_FILE_H
#define ALLOCWATCH_CLI_NEW_FILE_H

#include <stdio.h>

struct new_file {
	FILE *out;
	char *path, *temporary;         /* NULL: written in place, it is no regular file */
};

/* path NULL: standard output.  0 or negative errno. */
int new_file_open(struct new_file *file, const char *path);
/* Puts it in place; negative errno when something could not be written: then there is none. */
int new_file_finish(struct new_file *file);
void new_file_drop(struct new_file *file);

#endif
