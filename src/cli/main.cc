// The program.
#include "base/output.h"
#include "cli/command_line.h"
#include "train/signals.h"

int main(int argc, char** argv) {
  syntra::OpenStandardDescriptors();
  // Early: a signal that meets no handler ends the process, and MPI takes long to start.
  syntra::InstallSignalHandlers();
  syntra::DieWithParent();
  return syntra::RunCommandLine(argc, argv);
}
