// SPDX-License-Identifier: Apache-2.0
// Floyd's algorithm (Bentley and Floyd 1987, "A sample of brilliance").
#include "data/random_choice.h"

#include "base/error.h"

namespace syntra {

void ChooseAtRandom(int64_t count, RandomKey key, uint64_t stream, std::span<uint8_t> marks) {
  const int64_t items = std::ssize(marks);
  SYNTRA_CHECK(count >= 0 && count <= items, "{} of {} items", count, items);
  RandomBits bits{};
  for (int64_t i = 0; i < count; ++i) {
    if (i % 4 == 0) bits = RandomAt(key, i / 4, stream);
    const int64_t last = items - count + i;
    const int64_t drawn = UniformBelow(bits[i % 4], static_cast<uint32_t>(last + 1));
    marks[marks[drawn] ? last : drawn] = 1;
  }
}

}  // namespace syntra
