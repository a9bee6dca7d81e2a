// SPDX-License-Identifier: Apache-2.0
// The parameter, gradient and state arenas of a backend, for tests.
#pragma once

#include <span>
#include <vector>

#include "core/parameters.h"
#include "program/executable.h"

namespace syntra {

class ArenaMemory {
 public:
  ArenaMemory(const ParameterStore& store, Backend& backend, int64_t state_elements = 0)
      : parameters_(backend, store.arena_elements()),
        gradients_(backend, store.gradient_elements()),
        state_(backend, state_elements) {}

  Arenas arenas() { return {parameters_.data(), gradients_.data(), state_.data()}; }
  template <typename T>
  void SetParameter(const Parameter& parameter, const std::vector<T>& values) {
    parameters_.Set(parameter.offset, std::span<const T>(values));
  }
  std::vector<double> ParameterValues(const Parameter& p) const {
    return parameters_.Get(p.offset, p.shape.size());
  }
  std::vector<double> Gradient(const Parameter& p) const {
    return gradients_.Get(p.offset, p.shape.size());
  }
  void ClearGradients() { gradients_.Clear(); }
  void SetGradient(const Parameter& parameter, std::span<const float> values) {
    gradients_.Set(parameter.offset, values);
  }
  std::vector<double> State(int64_t offset, int64_t count) const {
    return state_.Get(offset, count);
  }
  void SetState(int64_t offset, std::span<const double> values) { state_.Set(offset, values); }

 private:
  // An arena of f32 elements, in the type in which the backend stores f32.
  class Numbers {
   public:
    Numbers(Backend& backend, int64_t elements)
        : device_(backend.device()),
          wide_(backend.Stored({DType::kF32, {1}}).dtype == DType::kF64),
          memory_(device_.Allocate(elements * element_bytes(), "a test's arena")) {}

    void* data() { return memory_.data(); }
    template <typename T>
    void Set(int64_t offset, std::span<const T> values) {
      wide_ ? SetAs<double>(offset, values) : SetAs<float>(offset, values);
    }
    std::vector<double> Get(int64_t offset, int64_t count) const {
      return wide_ ? GetAs<double>(offset, count) : GetAs<float>(offset, count);
    }
    void Clear() { device_.Clear(memory_.data(), memory_.size()); }

   private:
    size_t element_bytes() const { return wide_ ? sizeof(double) : sizeof(float); }
    template <typename Element, typename T>
    void SetAs(int64_t offset, std::span<const T> values) {
      const std::vector<Element> elements(values.begin(), values.end());
      device_.CopyIn(memory_.data() + offset * sizeof(Element), elements.data(),
                     elements.size() * sizeof(Element));
    }
    template <typename Element>
    std::vector<double> GetAs(int64_t offset, int64_t count) const {
      std::vector<Element> elements(count);
      device_.CopyOut(elements.data(), memory_.data() + offset * sizeof(Element),
                      count * sizeof(Element));
      return {elements.begin(), elements.end()};
    }

    Device& device_;
    bool wide_;
    Buffer memory_;
  };
  Numbers parameters_, gradients_, state_;
};

}  // namespace syntra
