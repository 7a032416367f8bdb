/* Everything that can be set: its key in the configuration files, its option on the command line, what values it takes,
 * and whether a running daemon can change it. */
#ifndef ALLOCWATCH_DAEMON_SETTINGS_H
#define ALLOCWATCH_DAEMON_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options;
struct setting;

/* -EINVAL: *ret_reason, to be freed, says what values there are ("wants ..."); -ENOMEM. */
typedef int (*setting_take_fn)(const struct setting *setting, const char *value, void *field, char **ret_reason);

struct setting {
	const char *section, *key;
	setting_take_fn take;
	size_t offset;                 /* of the field in struct options */
	size_t size;                   /* of the field; 0: a text that is owned */
	uint64_t least, most;          /* of a number */
	const char *const *words;      /* of a word: its field is an unsigned, the word's place */
	bool path;                     /* absolute, in a file */
	bool live;                     /* changed by a reload; else by a restart */
};

/* Ends with one whose key is NULL. */
extern const struct setting settings[];
const struct setting *setting_find(const char *key);
/* "" gives the default back. */
int setting_take(const struct setting *setting, const char *value, struct options *options, char **ret_reason);
bool setting_differs(const struct setting *setting, const struct options *a, const struct options *b);
/* Copies the field. */
int setting_copy(const struct setting *setting, const struct options *from, struct options *to);
void settings_free(struct options *options);
/* 0 or -ENOMEM. */
int settings_init(struct options *options);

#endif
