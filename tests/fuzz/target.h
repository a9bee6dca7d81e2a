// SPDX-License-Identifier: Apache-2.0
// A fuzz target: a reader, and what must hold of it for any bytes. libFuzzer runs targets with
// inputs that it grows (libfuzzer.cc), and replay_test with a fixed number of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace syntra {

// A row of targets.def: `fuzz_NAME` in targets/NAME.cc.
struct Target {
  const char* name;
  // The exit codes with which an input may be refused; none: every input is accepted. Any other
  // exception is a finding, and so is a property that does not hold (SYNTRA_CHECK).
  std::vector<ExitCode> refusals;
  void (*run)(std::string_view input);
  // Inputs to begin with, all of them accepted.
  std::vector<std::string> (*seeds)();
  // What inputs are made of: the fuzzer's dictionary.
  std::vector<std::string> tokens = {};
  int mutations = 1000;      // in replay_test
  size_t longest = 1 << 14;  // bytes of an input that the fuzzer makes
};

#define SYNTRA_FUZZ_TARGET(name) extern const Target fuzz_##name;
#include "targets.def"
#undef SYNTRA_FUZZ_TARGET

// Whether the target may refuse the input with this code: one of its own, or that of Git LFS
// pointers, which every reader of files refuses.
bool MayBeRefused(const Target& target, std::string_view input, ExitCode code);

// Whether the target accepts the input; throws whatever is a finding.
bool Accepts(const Target& target, std::string_view input);

// The files below tests/fuzz/reproducers/NAME: inputs that were findings once.
std::vector<Path> ReproducersOf(const Target& target);

// One of the seeds, a little changed: `number` tells how.
std::string MutationOf(const Target& target, std::span<const std::string> seeds, uint64_t number);

// A file in memory with this content and name, until the next one of that name.
Path InputFile(std::string_view content, const std::string& name);
// The directory of such files.
const Path& InputDirectory();
// The content of a file of the source tree.
std::string SourceFile(const std::string& path);

}  // namespace syntra
