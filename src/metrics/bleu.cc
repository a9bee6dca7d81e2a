// SPDX-License-Identifier: Apache-2.0
// BLEU of words by mteval-v14's rules for any script, as T5 calls sacrebleu.
#include "metrics/bleu_score.h"
#include "metrics/bleu_words.h"

namespace syntra {

Metric metric_bleu() {
  return {.reads = Metric::Reads::kTexts,
          .values = {"bleu"},
          .compute = [](std::span<const Judgement> examples, int) -> std::vector<double> {
            return {CorpusBleu(examples, InternationalWords)};
          }};
}

}  // namespace syntra
