// Token-mean log-perplexity on the validation split (natural logarithm, sentinels and EOS included, no
// dropout, no z-loss), as the Synthesizer paper reports it.
#pragma once

#include "data/validation_data.h"
#include "dist/communicator.h"
#include "train/replica.h"

namespace syntra {

struct EvaluationResult {
  double log_perplexity = 0;
  int64_t tokens = 0;
  int64_t batches = 0;
  uint64_t label_checksum = 0;  // equal for runs that saw the same targets
};

// The first `batches` batches (or all there are) of `batch_size` rows, shared among the ranks; every rank
// gets the same result. Throws Error(kData) if the split has no whole batch.
EvaluationResult Evaluate(Replica& replica, const ValidationData& data, Communicator& ranks,
                          int64_t batches, int64_t batch_size);

}  // namespace syntra
