// SPDX-License-Identifier: Apache-2.0
#include "mixers/mixer_cases.h"

#include <google/protobuf/text_format.h>

#include "base/error.h"

namespace syntra {

#define SYNTRA_MIXER(kind) MixerRow cases_##kind();
#include "mixers/mixers.def"
#undef SYNTRA_MIXER

namespace {

const std::vector<MixerRow>& Rows() {
  static const std::vector<MixerRow> rows{
#define SYNTRA_MIXER(kind) cases_##kind(),
#include "mixers/mixers.def"
#undef SYNTRA_MIXER
  };
  return rows;
}

template <typename Case>
std::vector<Case> All(std::vector<Case> MixerRow::*part) {
  std::vector<Case> all;
  for (const MixerRow& row : Rows()) all.insert(all.end(), (row.*part).begin(), (row.*part).end());
  return all;
}

}  // namespace

const std::vector<MixerCase>& MixerCases() {
  static const std::vector<MixerCase> cases = All(&MixerRow::alone);
  return cases;
}

const std::vector<MixerInModel>& MixersInModels() {
  static const std::vector<MixerInModel> mixers = All(&MixerRow::in_models);
  return mixers;
}

MixerConfig ConfigOf(const MixerCase& mixer) {
  MixerConfig config;
  SYNTRA_CHECK(google::protobuf::TextFormat::ParseFromString(mixer.text, &config), "{}",
               mixer.text);
  return config;
}

}  // namespace syntra
