// The keep decision of dropout's masks, shared by every backend: element e of a row of the batch
// reads word e % 4 of Philox at counter e / 4 of the stream `site`, under the row's own key.
#pragma once

#include <cstdint>

#include "core/random.h"

namespace syntra {

// `words`: the row's two entries of a `keys` tensor.
inline RandomKey RowKey(const int32_t* words) {
  return {static_cast<uint32_t>(words[0]), static_cast<uint32_t>(words[1])};
}

// The rate is compared in float, so that backends agree on every draw.
inline bool Keeps(RandomKey key, uint64_t element, uint64_t site, float rate) {
  return UniformFloat(RandomAt(key, element / 4, site)[element % 4]) >= rate;
}

}  // namespace syntra
