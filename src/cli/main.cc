// The program.
#include "cli/command_line.h"
#include "train/signals.h"

int main(int argc, char** argv) {
  syntra::IgnoreBrokenPipes();
  syntra::DieWithParent();
  return syntra::RunCommandLine(argc, argv);
}
