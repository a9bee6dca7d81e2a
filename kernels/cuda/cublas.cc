// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cublas.h"

#include "base/shared_library.h"
#include "base/text.h"

namespace syntra::gpu {

const CublasLt& Cublas() {
  static const CublasLt functions = [] {
    const std::string version = std::to_string(CUBLAS_VER_MAJOR);
    const SharedLibrary library("libcublasLt.so." + version, CudaDirectories(),
                                "install the CUDA toolkit " + version +
                                    ", or set CUDA_HOME or LD_LIBRARY_PATH to where it is");
    CublasLt table;
#define SYNTRA_FUNCTION(name) \
  table.name = reinterpret_cast<decltype(table.name)>(library.Find(#name));
    SYNTRA_CUBLAS_FUNCTIONS(SYNTRA_FUNCTION)
#undef SYNTRA_FUNCTION
    return table;
  }();
  return functions;
}

}  // namespace syntra::gpu
