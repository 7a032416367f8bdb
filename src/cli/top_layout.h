/* How `allocwatch top` looks: from its state to the characters of a screen. */
#ifndef ALLOCWATCH_CLI_TOP_LAYOUT_H
#define ALLOCWATCH_CLI_TOP_LAYOUT_H

#include "cli/canvas.h"
#include "cli/top_model.h"

struct top_scene {
	uint64_t now_ns;                /* CLOCK_REALTIME */
	uint64_t waiting_ns;            /* for an answer that is late; 0: for none */
	const char *target;             /* "4242 (httpd)" */
};

/* Draws all of it on a blank canvas.  0 or -ENOMEM. */
int top_layout(const struct top *top, const struct top_scene *scene, struct canvas *canvas);
/* Where the cursor of a terminal belongs: behind what is being typed, else *ret_x is -1. */
void top_layout_cursor(const struct top *top, int *ret_y, int *ret_x);

#endif
