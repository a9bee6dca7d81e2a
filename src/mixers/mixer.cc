// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer.h"

#include "base/error.h"
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

// Writes rows [B, T, W] from position `start` on into the state of all `length` positions.
Value WriteRows(const Scope& scope, const MixerState& state, int64_t length, Value start,
                const std::string& name, Value rows) {
  TensorType type = scope.TypeOf(rows);
  type.shape = {type.shape[0], length, type.shape[2]};
  const Value all = state(name, type, StateKind::kPositions);
  scope.program().RecordUpdate("write_rows", {{"length", length}}, {rows, start}, {all});
  return all;
}

}  // namespace

Value Remember(const Scope& scope, const MixerStep& step, const std::string& name, Value row) {
  return WriteRows(scope, step.state, step.length, step.start, name, row);
}

void Remember(const Scope& scope, const MixerInput& input, const std::string& name, Value rows) {
  if (!input.state) return;
  const Value first = scope.program().Constant({1}, std::vector<int32_t>{0});
  WriteRows(scope, input.state, input.length, first, name, rows);
}

Value TokenMixer::BuildStep(const Scope&, const MixerStep&) const {
  SYNTRA_CHECK(false, "a step of a mixer that is not incremental");
}

std::string MixerKind(const MixerConfig& config) {
  const std::string kind = KindOf(config);
  return kind.empty() ? "attention" : kind;
}

AttentionConfig* MutableAttention(MixerConfig* config) {
  return MixerKind(*config) == "attention" ? config->mutable_attention() : nullptr;
}

std::unique_ptr<TokenMixer> MakeMixer(const MixerConfig& config) {
  return Mixers().Get(MixerKind(config))(config);
}

}  // namespace syntra
