// SPDX-License-Identifier: Apache-2.0
// Token-mean log-perplexity on the validation split (natural logarithm, sentinels and EOS included,
// no dropout, no z-loss), as the Synthesizer paper reports it.
#pragma once

#include <functional>
#include <optional>

#include "configs/schema/config.pb.h"
#include "data/validation_data.h"
#include "dist/communicator.h"
#include "train/evaluation_replica.h"

namespace syntra {

struct LogPerplexity {
  double value = 0;  // nats a target token
  int64_t tokens = 0;
  // What was read of the split, and what not: what evaluation.batches does not ask for, and the
  // examples after the last whole batch.
  int64_t examples = 0, batches = 0;
  int64_t left_out_examples = 0, left_out_batches = 0;
  uint64_t label_checksum = 0;  // equal for runs that saw the same targets
  // The size of the targets as text, if it was counted.
  int64_t words = 0, bytes = 0;

  // Numbers that models with different tokenizers can be compared by.
  double PerplexityPerWord() const;
  double BitsPerByte() const;
};

// Measures the log-perplexity as config.evaluation says, on the same examples for any ranks and
// micro-batches: the first `batches` batches, or all there are. A split smaller than one batch is
// one batch. The work is shared among the ranks and every rank gets the same result. Throws
// Error(kData) if the split is empty.
//
// `counts_text`: the tokenizer, if the words and bytes of the targets are wanted; or null.
// `stop` is called now and then, by all ranks together and with the same answer on all: once true,
// there is no result.
std::optional<LogPerplexity> MeasureLogPerplexity(EvaluationReplica& replica,
                                                  const ValidationData& data, Communicator& ranks,
                                                  const Config& config,
                                                  const std::function<bool()>& stop = {},
                                                  const Tokenizer* counts_text = nullptr);

}  // namespace syntra
