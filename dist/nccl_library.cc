// SPDX-License-Identifier: Apache-2.0
#include "dist/nccl_library.h"

#include <fmt/format.h>

#include "base/shared_library.h"

namespace syntra::nccl {

std::string Library::Version() const {
  int version = 0;
  ncclGetVersion(&version);
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

const Library& Load() {
  static const Library functions = [] {
    const SharedLibrary library("libnccl.so.2", CudaDirectories(),
                                "install NCCL 2.14 or newer, or set CUDA_HOME or LD_LIBRARY_PATH "
                                "to where it is");
    Library table;
#define SYNTRA_FUNCTION(name) \
  table.name = reinterpret_cast<decltype(table.name)>(library.Find(#name));
    SYNTRA_NCCL_FUNCTIONS(SYNTRA_FUNCTION)
#undef SYNTRA_FUNCTION
    return table;
  }();
  return functions;
}

}  // namespace syntra::nccl
