// SPDX-License-Identifier: Apache-2.0
// BLEU of a corpus (Papineni et al. 2002), as sacrebleu computes it (Post 2018).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "metrics/metric.h"

namespace syntra {

using WordsOfText = std::vector<std::string>(std::string_view text);

// In percent: the geometric mean of the precisions of n-grams of 1 to 4 words, counted over all
// examples, times the brevity penalty. If no n-gram of a length matches, its matches count as 1/2,
// those of the next such length as 1/4, and so on ("exp" smoothing; Chen and Cherry 2014, method
// 3). 0 if no word matches, or if no prediction has four words. With several accepted texts, an
// n-gram matches at most as often as it occurs in the text that has most of it, and the reference
// length is that of the text nearest in length.
double CorpusBleu(std::span<const Judgement> examples, WordsOfText* words_of);

}  // namespace syntra
