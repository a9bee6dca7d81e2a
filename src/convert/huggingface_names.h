// SPDX-License-Identifier: Apache-2.0
// The tensors of a Hugging Face T5 and the parameters that they are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"
#include "convert/tensor_source.h"

namespace syntra {

struct HuggingFaceName {
  std::string ours;
  std::string theirs;
  // torch's Linear and Embedding keep [out, in] where this program has [in, out].
  bool transposed = false;
  // Other names under which transformers may store the same tensor, in addition or instead.
  std::vector<std::string> aliases;
};

// The names of every parameter of a model that CheckIsHuggingFaceModel lets through.
std::vector<HuggingFaceName> HuggingFaceNames(const ModelConfig& model);

// The parameters under this program's names and in its shapes. `shares_embeddings`: an output
// matrix of its own that is not there is the embedding. Throws Error(kCheckpoint) with all tensors
// of `theirs` that are missing, of another shape or unknown, or if aliases differ.
std::unique_ptr<TensorSource> FromHuggingFaceNames(std::unique_ptr<TensorSource> theirs,
                                                   const ModelConfig& model,
                                                   bool shares_embeddings);

// `theirs` with one more token; `rows` is the odd number of tokens. Its row, in tensors with a row
// for each token, is a copy of that of token 0, padding. No model is trained to write padding, so
// the new token is just as unlikely. Greedy outputs stay the same, since the lower id wins among
// equals. A row of zeros could be likelier than all others.
std::unique_ptr<TensorSource> WithAnotherToken(std::unique_ptr<TensorSource> theirs, int64_t rows);

// The reverse: `ours`, which must outlive the result, under transformers' names and in its shapes.
std::unique_ptr<TensorSource> ToHuggingFaceNames(TensorSource& ours, const ModelConfig& model);

}  // namespace syntra
