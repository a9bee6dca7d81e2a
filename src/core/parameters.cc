// SPDX-License-Identifier: Apache-2.0
#include "core/parameters.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "core/orthogonal.h"
#include "core/random_fill.h"

namespace syntra {

const Parameter& ParameterStore::Declare(ParameterSpec spec) {
  const int index = static_cast<int>(parameters_.size());
  SYNTRA_CHECK(index_.emplace(spec.name, index).second, "parameter {} is declared twice",
               spec.name);
  Parameter parameter{std::move(spec), end_};
  end_ = CheckedAdd(end_, RoundUp(parameter.shape.size(), 1), "parameters");
  return parameters_.emplace_back(std::move(parameter));
}

const Parameter* ParameterStore::Find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &parameters_[it->second];
}

const Parameter& ParameterStore::Get(const std::string& name) const {
  const Parameter* parameter = Find(name);
  SYNTRA_CHECK(parameter != nullptr, "no parameter {}", name);
  return *parameter;
}

int64_t ParameterStore::element_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.shape.size();
  return count;
}

int64_t ParameterStore::trainable_element_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) {
    if (parameter.trainable) count += parameter.shape.size();
  }
  return count;
}

// The first parameter embeds the inputs: its gradient is complete when all others are, and nothing
// hides what is summed from then on. So all of it is one sum, and what comes just before is short.
std::vector<ElementRange> ParameterStore::Buckets(int64_t bucket_elements) const {
  const int64_t first = parameters_.empty() ? 0 : parameters_.front().shape.size();
  const int64_t largest = RoundUp(bucket_elements, ranks_), least = RoundUp(largest / 8, ranks_);
  std::vector<ElementRange> buckets;
  int64_t end = arena_elements();
  while (bucket_elements > 0 && end - RoundUp(first, ranks_) > least) {
    const int64_t half = RoundUp((end - RoundUp(first, ranks_)) / 2, ranks_);
    const int64_t size = std::clamp(half, least, largest);
    buckets.push_back({end - size, end});
    end -= size;
  }
  buckets.push_back({0, end});
  return buckets;
}

void Initialize(const ParameterSpec& parameter, uint64_t seed, std::span<float> values) {
  SYNTRA_CHECK(static_cast<int64_t>(values.size()) == parameter.shape.size());
  const RandomKey key = DeriveKey(seed, parameter.name);
  const double scale = parameter.initializer.scale;
  switch (parameter.initializer.kind) {
    case Initializer::Kind::kConstant:
      std::ranges::fill(values, static_cast<float>(scale));
      break;
    case Initializer::Kind::kNormal:
      FillNormal(key, scale, 0, values);
      break;
    case Initializer::Kind::kTruncatedNormal:
      FillNormal(key, scale, 2, values);
      break;
    case Initializer::Kind::kUniform:
      FillUniform(key, scale, values);
      break;
    case Initializer::Kind::kOrthogonal:
      FillOrthogonal(key, parameter.shape[0], values);
      break;
  }
}

}  // namespace syntra
