/* The interface org.allocwatch.Tracer and varlink's own org.varlink.service, as texts. */
#ifndef ALLOCWATCH_VARLINK_INTERFACE_H
#define ALLOCWATCH_VARLINK_INTERFACE_H

#define VARLINK_OWN_INTERFACE "org.allocwatch.Tracer"
#define VARLINK_SERVICE_INTERFACE "org.varlink.service"

/* The description of an interface that is served here, NULL for any other name. */
const char *varlink_interface_description(const char *interface);

#endif
