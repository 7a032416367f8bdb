/* Shared by watches.c, watched.c and watches_tell.c only. */
#ifndef ALLOCWATCH_DAEMON_WATCHES_PRIVATE_H
#define ALLOCWATCH_DAEMON_WATCHES_PRIVATE_H

#include "base/vec.h"
#include "daemon/log_limit.h"
#include "daemon/watches.h"

#include <systemd/sd-event.h>

enum watched_state {
	WATCHED_WAITING,      /* to have executed its program, or to be tried again */
	WATCHED_ATTACHING,
	WATCHED_TRACED,
	WATCHED_LEFT,         /* somebody has detached it, or it cannot be traced: it is left alone */
};

/* A process under a rule. */
struct watched {
	struct rule *rule;
	int pid;
	uint64_t start_time;
	enum watched_state state;
	bool attached_here;            /* not by somebody else, whose it is then */
	bool behind_shim;              /* attached to while it was about to execute its program */
	unsigned tries, looks, shim_looks;
	sd_event_source *timer;
};

struct rule {
	struct watches *watches;
	struct history_rule is;
	VEC_OF(struct watched *) list;
	sd_event_source *timer;
	/* Of who has asked for it. */
	watches_done_fn done;
	void *done_context;
};

/* A rule that is to be made once the shim is in its place. */
struct starting {
	struct watches *watches;
	struct history_rule is;
	watches_done_fn done;          /* NULL: nobody waits */
	void *done_context;
};

/* Who waits for a shim's being taken out. */
struct removing {
	struct watches *watches;
	watches_done_fn done;
	void *done_context;
};

struct watches {
	struct daemon *daemon;
	struct units *units;
	struct programs *programs;
	struct shims *shims;
	VEC_OF(struct starting *) starting;
	VEC_OF(struct removing *) removing;
	sd_event_source *look;
	bool stopped, started;
	VEC_OF(struct rule *) rules;
	struct history past;           /* its runs; rules are made from `rules` when it is saved */
	char *path;                    /* of the history's file; NULL: in memory only */
	bool saving, to_save;
	bool unsaved;                  /* the last time failed: once more when this comes */
	sd_event_source *save_again;
	size_t taking;                 /* snapshots under way */
	struct log_limit untaken;      /* of lines about those that were not taken */
};

/* watches.c */
struct rule *rule_find(const struct watches *watches, const char *who);
struct history_run *watches_run(struct watches *watches, const char *who, int pid, uint64_t start_time);

/* watches_file.c */
/* Before anything is saved.  Negative errno: out of memory. */
int watches_prepare_saving(struct watches *watches);
void watches_load(struct watches *watches);
/* From another thread, soon; tried again when it fails. */
void watches_save(struct watches *watches);

/* watched.c */
/* A process has come under the rule; known ones are passed over. */
void watched_begin(struct rule *rule, int pid);
/* Frees those whose process is gone. */
void watched_look_all(struct rule *rule);
void watched_free(struct watched *watched);
/* What was attached for the rule is let go. */
void watched_end(struct watched *watched);
/* How many more snapshots were not taken, once that period is over. */
void watched_tell_untaken(struct watches *watches, uint64_t now_ns);
/* Of each that is traced. */
void watched_take_all(struct rule *rule);

/* watches_tell.c */
/* Lets go what the rule keeps no longer. */
void rule_thin_out(struct rule *rule);

#endif
