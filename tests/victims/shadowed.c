/* Its debug information says that it was made of /etc/shadow.  Keeps a block more at each 'g'.
 *
 * Tally: kept. */
#include "victim.h"

#include <stdlib.h>

#define KEPT_MAX 100

static void *kept[KEPT_MAX];
static int count;

static void keep(void)
{
	if (count == KEPT_MAX)
		die("too many");
#line 1 "/etc/shadow"
	kept[count++] = malloc(72);
	say("kept=%d", count);
}

int main(void)
{
	obey(keep);
	return 0;
}
