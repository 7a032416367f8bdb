#include "model/ptrace_wish.h"

#include <stddef.h>

const char *const ptrace_wishes[] = { [PTRACE_AUTO] = "auto", [PTRACE_HOLD] = "hold", [PTRACE_RELEASE] = "release", NULL };
