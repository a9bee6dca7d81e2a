// The program.
#include "cli/command_line.h"
#include "train/signals.h"

int main(int argc, char** argv) {
  // First of all: a signal that meets no handler ends the process, and MPI takes long to start.
  syntra::InstallSignalHandlers();
  syntra::DieWithParent();
  return syntra::RunCommandLine(argc, argv);
}
