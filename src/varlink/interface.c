#include "varlink/interface.h"

#include <stddef.h>
#include <string.h>

static const char own_description[] =
#include "varlink/description.inc"
	;

/* As varlink.org gives it for every service. */
static const char service_description[] =
	"# What every Varlink service answers.\n"
	"interface org.varlink.service\n"
	"\n"
	"method GetInfo() -> (\n"
	"  vendor: string,\n"
	"  product: string,\n"
	"  version: string,\n"
	"  url: string,\n"
	"  interfaces: []string\n"
	")\n"
	"method GetInterfaceDescription(interface: string) -> (description: string)\n"
	"\n"
	"error InterfaceNotFound (interface: string)\n"
	"error MethodNotFound (method: string)\n"
	"error MethodNotImplemented (method: string)\n"
	"error InvalidParameter (parameter: string)\n"
	"error PermissionDenied ()\n"
	"error ExpectedMore ()\n";

const char *varlink_interface_description(const char *interface)
{
	if (strcmp(interface, VARLINK_OWN_INTERFACE) == 0)
		return own_description;
	if (strcmp(interface, VARLINK_SERVICE_INTERFACE) == 0)
		return service_description;
	return NULL;
}
