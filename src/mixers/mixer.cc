// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer.h"

#include <algorithm>

#include "base/name_table.h"
#include "configs/schema/kind_of.h"

namespace syntra {

#define SYNTRA_MIXER(kind) std::unique_ptr<TokenMixer> mixer_##kind(const MixerConfig& config);
#include "mixers/mixers.def"
#undef SYNTRA_MIXER

namespace {

using Make = std::unique_ptr<TokenMixer> (*)(const MixerConfig&);

const NameTable<Make>& Mixers() {
  static const NameTable<Make> table = [] {
    NameTable<Make> mixers("mixer");
#define SYNTRA_MIXER(kind) mixers.Add(#kind, &mixer_##kind);
#include "mixers/mixers.def"
#undef SYNTRA_MIXER
    return mixers;
  }();
  return table;
}

}  // namespace

std::optional<int64_t> MixerTraits::MaxLength() const {
  if (limits.empty()) return std::nullopt;
  return std::ranges::min_element(limits, {}, &LengthLimit::length)->length;
}

std::unique_ptr<TokenMixer> MakeMixer(const MixerConfig& config) {
  const std::string kind = KindOf(config);
  // A model whose configuration says nothing about mixing is a Transformer.
  return Mixers().Get(kind.empty() ? "attention" : kind)(config);
}

}  // namespace syntra
