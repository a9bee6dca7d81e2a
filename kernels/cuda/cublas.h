// SPDX-License-Identifier: Apache-2.0
// cuBLASLt as a table of functions, filled when a GPU first needs a product: the library is half a
// gigabyte that machines without a GPU lack.
#pragma once

#include <cublasLt.h>

namespace syntra::gpu {

struct CublasLt {
#define SYNTRA_CUBLAS_FUNCTIONS(F)        \
  F(cublasLtCreate)                       \
  F(cublasLtGetStatusString)              \
  F(cublasLtMatmul)                       \
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

// Throws Error(kResources), saying what to do, if the library is not there.
const CublasLt& Cublas();

}  // namespace syntra::gpu
