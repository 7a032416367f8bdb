/* Folders of the user whose daemon this is. */
#ifndef ALLOCWATCH_DAEMON_PLACES_H
#define ALLOCWATCH_DAEMON_PLACES_H

/* What the variable names, XDG_STATE_HOME say, else `below` the user's home; not what belongs to somebody else.  To be
 * freed; NULL: there is none. */
char *place_of_user(const char *variable, const char *below);

#endif
