/* Help texts, made from the tables of commands and options. */
#ifndef ALLOCWATCH_CLI_HELP_H
#define ALLOCWATCH_CLI_HELP_H

#include "cli/command.h"

void help_program(FILE *out);
void help_command(FILE *out, const struct command *command);

#endif
