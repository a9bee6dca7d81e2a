// The program.
#include "cli/command_line.h"

int main(int argc, char** argv) { return syntra::RunCommandLine(argc, argv); }
