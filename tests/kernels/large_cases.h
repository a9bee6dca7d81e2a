// SPDX-License-Identifier: Apache-2.0
// Cases larger than the ops' own: several blocks, chunks and threads, all with remainders.
#pragma once

#include "tests/kernels/case_data.h"

namespace syntra {

struct LargeCase {
  std::string op;
  OpCase test;
};

const std::vector<LargeCase>& LargeCases();

// Among the ops' own cases and the large ones.
OpCase FindAnyCase(const SweepCase& sweep);

// Whether a case starts from a query_start, as incremental decoding does; such calls have no
// gradient.
bool Decodes(const std::string& op, const OpCase& test);

}  // namespace syntra
