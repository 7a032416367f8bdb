/* A file system with one file, which can stop to answer: FUSE, spoken by a child of the test.
 *
 * It is mounted in a mount namespace of the case's own, which everything has that the case starts afterwards. */
#ifndef ALLOCWATCH_TESTS_FILE_SERVER_H
#define ALLOCWATCH_TESTS_FILE_SERVER_H

#include <sys/types.h>

struct file_server;

/* Serves the file `backing` as NAME in a new folder, for everybody.  Skips the case where nothing may be mounted. */
struct file_server *file_server_start(const char *name, const char *backing);
/* The file's path there. */
const char *file_server_path(const struct file_server *server);
/* From now on it takes requests and answers none: who has asked sleeps, and not even SIGKILL ends it.  What is in the
 * kernel's memory by then (the whole file, when it was read) serves who has it mapped. */
void file_server_go_mute(struct file_server *server);
/* Requests that it has taken and never answers. */
unsigned file_server_unanswered(const struct file_server *server);
/* What is asked from now on is answered again. */
void file_server_speak(struct file_server *server);
/* Ends it: whoever waits gets an error, as if the file system were gone. */
void file_server_end(struct file_server *server);

#endif
