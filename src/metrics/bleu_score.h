// SPDX-License-Identifier: Apache-2.0
// BLEU of a corpus (Papineni et al. 2002), as sacrebleu computes it (Post 2018).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "metrics/metric.h"

namespace syntra {

using WordsOfText = std::vector<std::string>(std::string_view text);

// In percent: the geometric mean of the precisions of runs of 1 to 4 words, counted over all
// examples, times the penalty for brevity. An order of which no run is right counts as half a right
// run, the next such as a quarter, and so on ("exp" smoothing; Chen and Cherry 2014, method 3). 0
// if no word is right, or if no prediction has four words. Of several accepted texts, a run counts
// as often as in the one that has most of it, and the length is that of the text nearest in length.
double CorpusBleu(std::span<const Judgement> examples, WordsOfText* words_of);

}  // namespace syntra
