// SPDX-License-Identifier: Apache-2.0
// Saves the sample state of one step, for tests that kill it or make its system calls fail.
//   checkpoint_save_once ROOT STEP WRITERS
// With more than one writer, as so many processes do together, of which this one is all.
// Two access calls mark the beginning and the end of the save in a trace of system calls.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "tests/checkpoint/sample.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const syntra::Sample sample(std::atoll(argv[2]));
  const int writers = std::atoi(argv[3]);
  access("/save-begins", F_OK);
  int result = 0;
  try {
    if (writers > 1) {
      sample.SaveShared(argv[1], writers);
    } else {
      sample.Save(argv[1]);
    }
  } catch (const syntra::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    result = static_cast<int>(error.code());
  }
  access("/save-ends", F_OK);
  return result;
}
