// SPDX-License-Identifier: Apache-2.0
// Runs work on bytes that may be hostile in a process of its own, so that a crash, an endless loop
// or too much use of memory ends only that process.
#pragma once

#include <functional>
#include <string>

namespace syntra {

struct ContainedLimits {
  int seconds = 20;                       // of processor time
  int wall_seconds = 300;                 // in all
  size_t extra_memory = size_t{1} << 30;  // bytes beyond what this process has
  size_t answer_bytes = size_t{256} << 20;
};

// Calls `work` in a child of this process and returns its result. The child is a copy made by fork:
// `work` may use memory as it is now, but no other thread, no device and no communicator, and its
// changes are lost. No other thread may be in a library that `work` uses. `what` is the subject of
// sentences such as "HDF5 crashed (Segmentation fault)". Throws Error(kCheckpoint) if the child
// crashes, computes or answers too long, or throws. Throws Error(kResources) where the file need
// not be bad: if no child can be started, if it waits too long and, as OutOfMemory, if it finds too
// little memory.
//
// The bytes may take control of the child, so its answer may be anything: check it.
std::string RunContained(const char* what, const std::function<std::string()>& work,
                         const ContainedLimits& limits = {});

}  // namespace syntra
