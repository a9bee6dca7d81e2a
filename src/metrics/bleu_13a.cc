// SPDX-License-Identifier: Apache-2.0
// BLEU of words by mteval-v13a's rules, sacrebleu's default and that of most tables in print.
#include "metrics/bleu_score.h"
#include "metrics/bleu_words.h"

namespace syntra {

Metric metric_bleu_13a() {
  return {.reads = Metric::Reads::kTexts,
          .values = {"bleu_13a"},
          .compute = [](std::span<const Judgement> examples, int) -> std::vector<double> {
            return {CorpusBleu(examples, Mteval13aWords)};
          }};
}

}  // namespace syntra
