/* Why a daemon took a snapshot by itself.  The snapshot's name says it, also in files; nobody else may give these names. */
#ifndef ALLOCWATCH_MODEL_OCCASION_H
#define ALLOCWATCH_MODEL_OCCASION_H

/* For people; NULL: no such name, so somebody asked for that snapshot. */
const char *occasion_text(const char *name);

#endif
