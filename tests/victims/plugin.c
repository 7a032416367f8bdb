/* A plugin for plugins.c: keeps one block of PLUGIN_BYTES per call. */
#include <stdlib.h>

#ifndef PLUGIN_BYTES
#define PLUGIN_BYTES 333
#endif

void *plugin_allocate(void);

void *plugin_allocate(void)
{
	char *p = malloc(PLUGIN_BYTES); /* plugin block */

	if (p)
		p[0] = 1;
	return p;
}
