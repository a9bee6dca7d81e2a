// SPDX-License-Identifier: Apache-2.0
#include "core/parameters.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "core/orthogonal.h"
#include "core/random_fill.h"

namespace syntra {

const Parameter& ParameterStore::Declare(ParameterSpec spec) {
  SYNTRA_CHECK(static_cast<int>(spec.axes.size()) == spec.shape.rank(), "axes of {}", spec.name);
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

std::vector<ElementRange> ParameterStore::Pieces(int64_t piece_elements) const {
  std::vector<ElementRange> pieces;
  for (int64_t end = arena_elements(); end > 0; end = pieces.back().begin) {
    const int64_t size = piece_elements > 0 ? std::min(end, piece_elements) : end;
    pieces.push_back({end - size, end});
  }
  return pieces;
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
