// SPDX-License-Identifier: Apache-2.0
// What tests need to know of each mixer: one row per mixer, in cases/<kind>.cc.
#pragma once

#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "configs/schema/mixers.pb.h"

namespace syntra {

// A mixer on its own, in rows of up to 9 positions that are 10 wide (MixerTrial).
struct MixerCase {
  std::string name, text;  // MixerConfig
  // The farthest later position that the first one reads where nothing is causal.
  int64_t reach = std::numeric_limits<int64_t>::max();
  double rounding = 0;  // of constants that two ways to one result do not share
  bool sorts = false;   // positions: where some move, sums over others are rounded in another order
  // In rows as short as those of the trials the place of an example does not count, whatever the
  // traits say.
  bool any_place = false;
};

inline void PrintTo(const MixerCase& one, std::ostream* out) { *out << one.name; }

// A mixer in whole models, which are 16 wide and have rows of up to 16 positions (TinyModel).
struct MixerInModel {
  std::string name, text;  // MixerConfig
  // How many elements a layer keeps of a row in decoding: for each position, and once.
  int64_t kept_per_position = 16, kept_once = 0;

  int64_t Kept(int64_t positions) const { return positions * kept_per_position + kept_once; }
};

inline void PrintTo(const MixerInModel& one, std::ostream* out) { *out << one.name; }

struct MixerRow {
  std::vector<MixerCase> alone;
  std::vector<MixerInModel> in_models;
};

// The cases of all mixers, in the order of mixers.def.
const std::vector<MixerCase>& MixerCases();
const std::vector<MixerInModel>& MixersInModels();

MixerConfig ConfigOf(const MixerCase& mixer);

}  // namespace syntra
