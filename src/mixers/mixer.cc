// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer.h"

#include "base/name_table.h"

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

std::unique_ptr<TokenMixer> MakeMixer(const MixerConfig& config) {
  const auto* oneof = MixerConfig::descriptor()->FindOneofByName("kind");
  const auto* field = config.GetReflection()->GetOneofFieldDescriptor(config, oneof);
  // A model whose configuration says nothing about mixing is a Transformer.
  return Mixers().Get(field ? field->name() : "attention")(config);
}

}  // namespace syntra
