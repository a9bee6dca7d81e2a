// SPDX-License-Identifier: Apache-2.0
// The bundled sample of C4, prepared once for all tests of a program, and batches to compare.
#pragma once

#include <gtest/gtest.h>

#include "base/file.h"
#include "configs/schema/config.pb.h"
#include "data/batch.h"
#include "data/tokenizer.h"

namespace syntra {

const Tokenizer& T5();
DataConfig SampleConfig();
// Where both splits of SampleConfig() are prepared.
const Path& PreparedSample();

// Puts the rows of `part` after those of `whole`, with padding where these are longer.
void Append(Batch* whole, const Batch& part);
void ExpectEqual(const Batch& a, const Batch& b);

}  // namespace syntra
