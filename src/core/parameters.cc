#include "core/parameters.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "core/buffer.h"
#include "core/random.h"
#include "core/thread.h"

namespace syntra {

const Parameter& ParameterStore::Declare(ParameterSpec spec) {
  SYNTRA_CHECK(static_cast<int>(spec.axes.size()) == spec.shape.rank(), "axes of {}", spec.name);
  const int index = static_cast<int>(parameters_.size());
  SYNTRA_CHECK(index_.emplace(spec.name, index).second, "parameter {} is declared twice", spec.name);
  Parameter parameter{std::move(spec), index, arena_elements_};
  arena_elements_ += static_cast<int64_t>(
      AlignUp(parameter.shape.size(), Buffer::kAlignment / sizeof(float)));
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

namespace {

// The normal at `index`, redrawn until it lies within two deviations.
float TruncatedNormalAt(RandomKey key, uint64_t index) {
  for (uint64_t attempt = 0;; ++attempt) {
    const RandomBits bits = RandomAt(key, index, attempt);
    for (const NormalPair pair : {NormalFromBits(bits[0], bits[1]), NormalFromBits(bits[2], bits[3])}) {
      if (std::abs(pair.first) <= 2) return pair.first;
      if (std::abs(pair.second) <= 2) return pair.second;
    }
  }
}

// Writes the four values that share the counter `block`, clipped to the end of `values`.
void FillBlock(const Initializer& initializer, RandomKey key, int64_t block,
               std::span<float> values) {
  float draws[4];
  if (initializer.kind == Initializer::Kind::kTruncatedNormal) {
    for (int i = 0; i < 4; ++i) draws[i] = TruncatedNormalAt(key, block * 4 + i);
  } else {
    const RandomBits bits = RandomAt(key, block);
    if (initializer.kind == Initializer::Kind::kUniform) {
      for (int i = 0; i < 4; ++i) draws[i] = 2 * UniformFloat(bits[i]) - 1;
    } else {
      const NormalPair a = NormalFromBits(bits[0], bits[1]), b = NormalFromBits(bits[2], bits[3]);
      draws[0] = a.first, draws[1] = a.second, draws[2] = b.first, draws[3] = b.second;
    }
  }
  const size_t begin = block * 4, end = std::min(values.size(), begin + 4);
  for (size_t i = begin; i < end; ++i) {
    values[i] = draws[i - begin] * static_cast<float>(initializer.scale);
  }
}

}  // namespace

void Initialize(const ParameterSpec& parameter, uint64_t seed, std::span<float> values) {
  SYNTRA_CHECK(static_cast<int64_t>(values.size()) == parameter.shape.size());
  if (parameter.initializer.kind == Initializer::Kind::kConstant) {
    std::ranges::fill(values, static_cast<float>(parameter.initializer.scale));
    return;
  }
  const RandomKey key = DeriveKey(seed, parameter.name);
  ParallelFor((values.size() + 3) / 4, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      FillBlock(parameter.initializer, key, block, values);
    }
  });
}

}  // namespace syntra
