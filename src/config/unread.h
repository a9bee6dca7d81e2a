// SPDX-License-Identifier: Apache-2.0
// Settings without effect: fields that are not read, because of how others are set. They are not
// refused, since layers may be combined so: a later one chooses another kind than the one that an
// earlier one describes.
#pragma once

#include <google/protobuf/message.h>

#include <functional>
#include <string>
#include <vector>

#include "configs/schema/config.pb.h"

namespace syntra {

struct UnreadRule {
  const google::protobuf::Descriptor* owner;
  std::string field;  // a path below the owner; of a message, it is about all that is inside
  // Takes a message of the owner's type, in a valid configuration, and the one that it lies in.
  std::function<bool(const google::protobuf::Message&, const google::protobuf::Message&)> unread;
  std::string why;
};

// The table of rules.
const std::vector<UnreadRule>& UnreadRules();

// "optimizer.beta1 has no effect: ADAFACTOR does not use it" for each setting of the configuration,
// which is valid, that is not read. A default is no setting: full forms of a configuration have all
// of them.
std::vector<std::string> UnreadSettings(const Config& config);

}  // namespace syntra
