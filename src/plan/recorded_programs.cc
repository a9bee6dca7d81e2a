// SPDX-License-Identifier: Apache-2.0
#include "plan/recorded_programs.h"

#include <algorithm>

namespace syntra {

std::shared_ptr<const Program> RecordedPrograms::Get(const BatchShape& shape) const {
  using Entry = decltype(programs_)::value_type;
  const std::scoped_lock lock(mutex_);
  const auto known = std::ranges::find(programs_, shape, &Entry::first);
  if (known != programs_.end()) return known->second;
  return programs_.emplace_back(shape, std::make_shared<const Program>(record_(shape))).second;
}

}  // namespace syntra
