/* The folder that one question is answered in, and what is left of those whose fetcher was killed. */
#ifndef ALLOCWATCH_FETCH_FOLDER_H
#define ALLOCWATCH_FETCH_FOLDER_H

/* Of the names in the folder above so many are looked at; what lies behind them is left for another time. */
#define FOLDERS_LOOKED_AT_MAX 4096

struct fetch_folder {
	char *path;
	int fd;                        /* locked for as long as it is in use, which the kernel ends with the process */
};

/* Makes one below `above`, which only this user may enter.  0; -ENOMEM, or what the kernel has against it. */
int fetch_folder_make(const char *above, struct fetch_folder *ret_folder);
/* With all that is in it. */
void fetch_folder_remove(struct fetch_folder *folder);
/* Those of this user below `above` that no process holds. */
void fetch_folder_remove_left(const char *above);

#endif
