// Parameter, gradient and state arenas of one backend's element type, for tests.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/parameters.h"
#include "program/executable.h"

namespace syntra {

class ArenaMemory {
 public:
  ArenaMemory(const ParameterStore& store, Backend backend, int64_t state_elements = 0)
      : backend_(backend),
        parameters_(store.arena_elements()),
        gradients_(store.arena_elements()),
        state_(state_elements) {}

  Arenas arenas() {
    return {parameters_.data(backend_), gradients_.data(backend_), state_.data(backend_)};
  }
  template <typename T>
  void SetParameter(const Parameter& parameter, const std::vector<T>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      parameters_.wide[parameter.offset + i] = values[i];
      parameters_.narrow[parameter.offset + i] = static_cast<float>(values[i]);
    }
  }
  std::vector<double> ParameterValues(const Parameter& p) const {
    return parameters_.Get(backend_, p.offset, p.shape.size());
  }
  std::vector<double> Gradient(const Parameter& p) const {
    return gradients_.Get(backend_, p.offset, p.shape.size());
  }
  void ClearGradients() { gradients_.Clear(); }
  void SetGradient(const Parameter& parameter, std::span<const float> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      gradients_.wide[parameter.offset + i] = values[i];
      gradients_.narrow[parameter.offset + i] = values[i];
    }
  }

 private:
  struct Arena {
    explicit Arena(int64_t elements) : narrow(elements), wide(elements) {}
    void* data(Backend backend) {
      return backend == Backend::kReference ? static_cast<void*>(wide.data()) : narrow.data();
    }
    std::vector<double> Get(Backend backend, int64_t offset, int64_t count) const {
      if (backend == Backend::kReference) {
        return {wide.begin() + offset, wide.begin() + offset + count};
      }
      return {narrow.begin() + offset, narrow.begin() + offset + count};
    }
    void Clear() {
      std::ranges::fill(narrow, 0.0f);
      std::ranges::fill(wide, 0.0);
    }
    std::vector<float> narrow;
    std::vector<double> wide;
  };
  Backend backend_;
  Arena parameters_, gradients_, state_;
};

}  // namespace syntra
