// SPDX-License-Identifier: Apache-2.0
// Cases that are larger than the ops' own. They need several blocks, chunks and threads, with
// remainders.
#pragma once

#include "tests/kernels/case_data.h"

namespace syntra {

struct LargeCase {
  std::string op;
  OpCase test;
};

const std::vector<LargeCase>& LargeCases();

// Finds a case among the ops' own cases and the large ones.
OpCase FindAnyCase(const SweepCase& sweep);

// Whether a case has a query_start, as in incremental decoding. Such calls have no gradient.
bool Decodes(const std::string& op, const OpCase& test);

}  // namespace syntra
