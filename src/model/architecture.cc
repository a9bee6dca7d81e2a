// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"

#include <algorithm>

#include "base/error.h"
#include "data/example.h"

namespace syntra {

#define SYNTRA_ARCHITECTURE(kind, name) const Architecture& architecture_##name();
#include "model/architectures.def"
#undef SYNTRA_ARCHITECTURE

int64_t RowLength(const DecodeShape& shape) {
  return std::min(shape.input_length + shape.max_length, shape.together);
}

// The slot after the inputs has the last of them as its token.
int64_t PrefillLength(const DecodeShape& shape) {
  return std::min(shape.input_length + 1, RowLength(shape));
}

bool Architecture::Has(Side side) const {
  const std::vector<Side> all = sides();
  return std::ranges::find(all, side) != all.end();
}

std::vector<std::string> Architecture::foreign_fields() const {
  const bool encoder = Has(Side::kEncoder), decoder = Has(Side::kDecoder);
  std::vector<std::string> fields;
  if (!encoder) fields.insert(fields.end(), {"encoder_layers", "encoder"});
  if (!decoder) fields.insert(fields.end(), {"decoder_layers", "decoder"});
  if (!encoder || !decoder) fields.insert(fields.end(), {"decoder_mixer", "cross_attention"});
  fields.push_back(outputs() == Outputs::kClasses ? "tied_embeddings" : "classifier");
  if (encoder) fields.push_back("bidirectional_prefix");
  return fields;
}

void Architecture::RecordInputs(const Model&, const Scope&, const DecodeShape&,
                                const MixerState&) const {
  SYNTRA_CHECK(false, "inputs that are read by steps");
}

Value Architecture::RecordStep(const Model&, const Scope&, const DecodeShape&,
                               const MixerState&) const {
  SYNTRA_CHECK(false, "a step of a model without a decoder");
}

const Architecture& ArchitectureOf(const ModelConfig& model) {
  switch (model.architecture()) {
#define SYNTRA_ARCHITECTURE(kind, name) \
  case ModelConfig::kind:               \
    return architecture_##name();
#include "model/architectures.def"
#undef SYNTRA_ARCHITECTURE
  }
  SYNTRA_CHECK(false, "architecture {}", static_cast<int>(model.architecture()));
}

const std::string& NameOf(ModelConfig::Architecture architecture) {
  return ModelConfig::Architecture_Name(architecture);
}

void ClearForeignFields(ModelConfig* model) {
  for (const std::string& name : ArchitectureOf(*model).foreign_fields()) {
    model->GetReflection()->ClearField(model, model->GetDescriptor()->FindFieldByName(name));
  }
}

bool HasSide(const ModelConfig& model, Side side) { return ArchitectureOf(model).Has(side); }

bool HasCrossAttention(const ModelConfig& model) {
  return HasSide(model, Side::kEncoder) && HasSide(model, Side::kDecoder);
}

void CheckGivesTokens(const ModelConfig& model) {
  if (ArchitectureOf(model).outputs() != Outputs::kClasses) return;
  Fail(ExitCode::kConfig,
       "a model of architecture {} predicts classes, not text; syntra generate gives each line its "
       "class, with --json also the log-probabilities",
       NameOf(model.architecture()));
}

void CheckWritesText(const ModelConfig& model) {
  CheckGivesTokens(model);
  if (ArchitectureOf(model).outputs() == Outputs::kTokens) return;
  Fail(ExitCode::kConfig,
       "a model of architecture {} predicts masked tokens and writes no text; start a model with a "
       "decoder or a classifier from it (checkpoint.initial)",
       NameOf(model.architecture()));
}

ExampleLengths RowSlots(const Config& config) {
  return ArchitectureOf(config.model()).layout().SlotsOf(RowLengths(config.data()));
}

}  // namespace syntra
