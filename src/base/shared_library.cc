// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"

namespace syntra {

SharedLibrary::SharedLibrary(const std::string& name, std::span<const std::string> directories,
                             const std::string& advice)
    : name_(name), advice_(advice) {
  handle_ = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  const std::string problem = handle_ ? "" : dlerror();
  for (const std::string& directory : directories) {
    if (!handle_) handle_ = dlopen((directory + '/' + name).c_str(), RTLD_LAZY | RTLD_LOCAL);
  }
  if (!handle_) Fail(ExitCode::kResources, "cannot load {} ({}); {}", name, problem, advice);
}

void* SharedLibrary::Find(const char* function) const {
  void* address = dlsym(handle_, function);
  if (!address) Fail(ExitCode::kResources, "{} has no {}; {}", name_, function, advice_);
  return address;
}

std::span<const std::string> CudaDirectories() {
  static const std::vector<std::string> directories = [] {
    std::vector<std::string> list;
    if (const char* home = std::getenv("CUDA_HOME")) list.push_back(std::string(home) + "/lib64");
    list.push_back("/usr/local/cuda/lib64");
    return list;
  }();
  return directories;
}

}  // namespace syntra
