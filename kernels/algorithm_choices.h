// SPDX-License-Identifier: Apache-2.0
// Chooses among several algorithms of a library for a problem, where only timing can show which one
// is fastest. Algorithms may sum in different orders, so a choice decides the bits of results. It
// is made once and then read from files, by all processes that share one of them.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "core/tensor.h"

namespace syntra {

// Problems and algorithms are texts that the library's user makes up. For one thread.
class AlgorithmChoices {
 public:
  // Choices are remembered in `user_file` for all of the user's programs; its directory is
  // created if needed. Empty: in no such file. Several processes may use it at once: the first one
  // to choose decides for a problem. A damaged file is recreated. One that cannot be read or
  // written is left out, with a line in the log.
  explicit AlgorithmChoices(Path user_file = {});

  // From now on the choices are also kept in the run's own file, in place of another run's. It
  // takes precedence over the user's file; choices that are only in the user's file are added to
  // it.
  void KeepIn(const Path& run_file);

  // The index of the algorithm to take for a problem. If no file names one, `measure` gives the
  // seconds of each, and the fastest is remembered. If it gives nothing, because they cannot be
  // measured now, the first is taken, which only the run remembers. Returns 0 if no file can
  // remember the choice, or the remembered algorithm is not offered: a choice that cannot be
  // repeated is not made.
  size_t Choose(const std::string& problem, std::span<const std::string> algorithms,
                const std::function<std::vector<double>()>& measure);

 private:
  // Takes the choices in the files, adds to each file those that it lacks, and leaves out files for
  // which that fails.
  void Agree();

  std::map<std::string, std::string> chosen_;  // the algorithm of each problem
  Path user_file_;
  std::vector<Path> files_;  // the user's, the run's
};

// Where a user's programs keep choices: "syntra/algorithms.json" in $XDG_CACHE_HOME or, without it,
// in $HOME/.cache; empty if there is neither. `variable`: std::getenv.
Path UserAlgorithmsFile(const std::function<const char*(const char*)>& variable);

// Values for the operands on which products are measured. They are small, of both signs and of
// different bits, as elements of bf16 and, in pairs, of f32: a GPU that multiplies zeros, or one
// value with itself, needs less power than with real operands, and so may run faster.
std::vector<BFloat16> MeasuringValues(size_t count);

}  // namespace syntra
