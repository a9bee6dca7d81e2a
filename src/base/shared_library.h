// SPDX-License-Identifier: Apache-2.0
// A shared library that is looked for when it is first needed, so that the program also starts
// where there is none.
#pragma once

#include <span>
#include <string>

namespace syntra {

class SharedLibrary {
 public:
  // Takes the first file that can be loaded: `name` where the loader finds it, then in each of
  // `directories`. Throws Error(kResources): what is missing, and `advice`. Stays loaded.
  SharedLibrary(const std::string& name, std::span<const std::string> directories,
                const std::string& advice);

  // The function's address. Throws Error(kResources) if the library lacks it.
  void* Find(const char* function) const;

 private:
  std::string name_, advice_;
  void* handle_ = nullptr;
};

// Where CUDA's libraries may be beside where the loader looks: in CUDA_HOME, or the usual place.
std::span<const std::string> CudaDirectories();

}  // namespace syntra
