// SPDX-License-Identifier: Apache-2.0
// A shared library that is looked for when it is first needed, so that the program also starts on
// machines without it.
#pragma once

#include <span>
#include <string>

namespace syntra {

class SharedLibrary {
 public:
  // Loads `name` from where the loader finds it, or else from the first of `directories` that has
  // it. It stays loaded. Throws Error(kResources) that says what is missing and gives `advice`.
  SharedLibrary(const std::string& name, std::span<const std::string> directories,
                const std::string& advice);

  // The function's address. Throws Error(kResources) if the library lacks it.
  void* Find(const char* function) const;

 private:
  std::string name_, advice_;
  void* handle_ = nullptr;
};

// The directories besides the loader's own that may hold CUDA's libraries: that of CUDA_HOME, or
// else the usual place.
std::span<const std::string> CudaDirectories();

}  // namespace syntra
