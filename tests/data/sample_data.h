// SPDX-License-Identifier: Apache-2.0
// The bundled sample of C4, prepared once for all tests of a program, and batches to compare.
#pragma once

#include <gtest/gtest.h>

#include "base/file.h"
#include "configs/schema/config.pb.h"
#include "data/batch.h"
#include "data/corpus_index.h"
#include "data/corpus_source.h"
#include "data/tokenizer.h"

namespace syntra {

const Tokenizer& T5();
DataConfig SampleConfig();
// Where both splits of SampleConfig() are prepared.
const Path& PreparedSample();
// A split of what was prepared there, as its INDEX.json lists it.
inline PreparedCorpus SplitOf(const Path& prepared, const std::string& split = kTrainSplit) {
  return {prepared / split, ReadIndex(prepared / split)};
}

// Puts the rows of `part` after those of `whole`, with padding where these are longer.
void Append(Batch* whole, const Batch& part);
void ExpectEqual(const Batch& a, const Batch& b);

}  // namespace syntra
