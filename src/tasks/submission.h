// SPDX-License-Identifier: Apache-2.0
// Submissions to the servers of GLUE and SuperGLUE: a zip archive with a file for each of their
// tasks.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace syntra {

struct Benchmark {
  std::string name;                // as TaskTraits::benchmark
  std::string server;              // "gluebenchmark.com"
  std::vector<std::string> files;  // of a full submission
};
std::span<const Benchmark> Benchmarks();

// How many rows a submission's files lack, by their names: bad ones of the test files, which were
// left out.
using LackingRows = std::map<std::string, int64_t>;

// Packs the files of each benchmark that lie in `directory` into <benchmark>.zip there; a benchmark
// without files gets none. Logs what a full submission still needs: a run that learns some of the
// tasks gives an archive with their files alone, to be joined with those of other runs, and a file
// with `lacking` rows is not whole.
void ZipSubmissions(const Path& directory, const LackingRows& lacking = {});

}  // namespace syntra
