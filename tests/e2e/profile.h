// SPDX-License-Identifier: Apache-2.0
// The timelines that train.profile leaves, for tests.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"

namespace syntra {

// A span or an instant of a timeline, in nanoseconds.
struct ProfileEvent {
  std::string name, around;  // `around`: the span that it lies in; "" if it lies in none
  int lane = 0;
  int64_t begin = 0, end = 0;
  Json facts;
};

enum ProfileLane { kTrainingLane, kDataLane, kCheckpointLane };

Path ProfilePath(const Path& run, int rank = 0);
Json ReadProfile(const Path& run, int rank = 0);

// Lane by lane, by their begins, those that hold others before them. Expects that the spans of a
// lane lie in each other or beside each other.
std::vector<ProfileEvent> ProfileEvents(const Path& run, int rank = 0);

// The steps of the spans of this name, in their order.
std::vector<int64_t> StepsOf(const std::vector<ProfileEvent>& events, ProfileLane lane,
                             const std::string& name);
int64_t CountOf(const std::vector<ProfileEvent>& events, const std::string& name);

}  // namespace syntra
