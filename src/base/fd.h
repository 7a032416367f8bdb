/* File descriptors: closing, whole reads and writes, passing them over a socket. */
#ifndef ALLOCWATCH_BASE_FD_H
#define ALLOCWATCH_BASE_FD_H

#include <dirent.h>
#include <stddef.h>
#include <sys/types.h>

/* Closes *fd when it is not negative and sets it to -1; keeps errno. */
void fd_close(int *fd);
/* The end of writing a memfd, which went as r says: *ret_fd sealed against every change; or it is closed.  0, r, or
 * negative errno. */
int fd_seal(int fd, int r, int *ret_fd);
/* Writes all of it, through short writes and EINTR; 0 or negative errno. */
int fd_write_all(int fd, const void *data, size_t len);
/* Reads a whole small file (proc files and the like) as a NUL-terminated string; the caller frees
 * *ret_text.  -EFBIG when it holds more than max bytes. */
int fd_read_text(int fd, size_t max, char **ret_text, size_t *ret_len);
int file_read_text(const char *path, size_t max, char **ret_text, size_t *ret_len);

/* Opens a regular file for reading, and nothing else: to open a device or a pipe can be an action of its own (a watchdog
 * begins to count, who waits to write goes on).  A descriptor, or negative errno: -EINVAL, it is another thing. */
int file_open_plain(const char *path);

/* The next name in a folder, *ret_entry, which is readdir()'s: 1; 0: there are no more; negative errno: it could not be read
 * to its end, which readdir() alone says in the same way. */
int folder_next(DIR *dir, struct dirent **ret_entry);

/* One message on a SOCK_SEQPACKET socket, with one descriptor or none (fd = -1).
 * Sending: 0 or negative errno (-EAGAIN on a full nonblocking socket). */
int fd_send_message(int sock, const void *data, size_t len, int fd);
/* Receiving: the message's length, 0 at the peer's end, or negative errno; -EMSGSIZE when it was
 * longer than space (it is then dropped, with its descriptor).  *ret_fd is the caller's, or -1;
 * further descriptors are closed. */
ssize_t fd_receive_message(int sock, void *buf, size_t space, int *ret_fd);

#endif
