/* The daemon against those who speak to it: clients, a tracer that its target has taken over, a symbolizer that a file
 * has taken over. */
#include "daemon.h"
#include "fuzz.h"

const struct fuzz_target fuzz_targets[] = {
	{ "socket", fuzz_socket_run, fuzz_socket_restructure,
	  { "a message", "a method's call", "right parameters", "answered without an error" } },
	{ "messages", fuzz_messages_run, NULL, { "a message", "an answer", "an image", "a snapshot" } },
	{ "names", fuzz_names_run, NULL, { "a message", "names", "in a snapshot" } },
	{ "wire", fuzz_wire_run, NULL,
	  { "from a tracer", "to a tracer", "to the symbolizer", "from the symbolizer" } },
	{ 0 }
};
