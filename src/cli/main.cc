// SPDX-License-Identifier: Apache-2.0
// The program.
#include "base/output.h"
#include "cli/command_line.h"
#include "cli/rank_cores.h"
#include "core/thread.h"
#include "run/signals.h"

int main(int argc, char** argv) {
  syntra::OpenStandardDescriptors();
  syntra::IgnoreBrokenPipes();
  syntra::DieWithParent();
  syntra::SetThreadCount(syntra::MostThreads(/*processes=*/1));
  return syntra::RunCommandLine(argc, argv);
}
