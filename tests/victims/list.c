/* Lists and strings of GLib.  Built by the test that watches it. */
#include <glib.h>
#include <unistd.h>

static GList *list;

static void fill(void)
{
	for (int i = 0; i < 100; i++)
		list = g_list_prepend(list, NULL); /* list */
	for (GList *node = list; node; node = node->next) {
		if (!node->data)
			node->data = g_strdup_printf("%01000d", 7); /* text */
	}
}

int main(void)
{
	char command;

	if (write(STDOUT_FILENO, "R\n", 2) != 2)
		return 1;
	while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q') {
		fill();
		if (write(STDOUT_FILENO, "done=1\n", 7) != 7)
			return 1;
	}
	return 0;
}
