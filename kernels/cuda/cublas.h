// SPDX-License-Identifier: Apache-2.0
// cuBLASLt as a table of functions. The library is loaded when a GPU first needs a product, because
// it takes half a gigabyte and machines without a GPU do not have it.
#pragma once

#include <cublasLt.h>

namespace syntra::gpu {

struct CublasLt {
#define SYNTRA_CUBLAS_FUNCTIONS(F)        \
  F(cublasLtCreate)                       \
  F(cublasLtGetStatusString)              \
  F(cublasLtGetVersion)                   \
  F(cublasLtMatmul)                       \
  F(cublasLtMatmulAlgoConfigGetAttribute) \
  F(cublasLtMatmulAlgoGetHeuristic)       \
  F(cublasLtMatmulDescCreate)             \
  F(cublasLtMatmulDescDestroy)            \
  F(cublasLtMatmulDescSetAttribute)       \
  F(cublasLtMatmulPreferenceCreate)       \
  F(cublasLtMatmulPreferenceDestroy)      \
  F(cublasLtMatmulPreferenceSetAttribute) \
  F(cublasLtMatrixLayoutCreate)           \
  F(cublasLtMatrixLayoutDestroy)          \
  F(cublasLtMatrixLayoutSetAttribute)
#define SYNTRA_FUNCTION(name) decltype(&::name) name;
  SYNTRA_CUBLAS_FUNCTIONS(SYNTRA_FUNCTION)
#undef SYNTRA_FUNCTION
};

// Throws Error(kResources), which says what to do, if the library cannot be loaded.
const CublasLt& Cublas();

}  // namespace syntra::gpu
