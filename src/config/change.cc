// SPDX-License-Identifier: Apache-2.0
#include "config/change.h"

#include "base/error.h"
#include "base/text.h"
#include "config/print.h"

namespace syntra {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr std::string_view kMicroBatchSize = "train.micro_batch_size";

// With train.reduction EXACT the micro-batches are the leaves of the tree in which gradients are
// added.
bool DecidesTheTree(std::string_view path, const Config& config) {
  return path == kMicroBatchSize && config.train().reduction() == TrainConfig::EXACT;
}

}  // namespace

Change ChangeOf(std::string_view path) {
  const Descriptor* message = Config::descriptor();
  Change change = REFUSED;
  for (const std::string& part : Split(path, '.')) {
    const FieldDescriptor* field =
        message ? message->FindFieldByName(part.substr(0, part.find('['))) : nullptr;
    SYNTRA_CHECK(field, "{} is no field", path);
    if (field->options().HasExtension(syntra::change)) {
      change = field->options().GetExtension(syntra::change);
    }
    message = field->message_type();
  }
  return change;
}

ConfigChanges ChangesBetween(const Config& before, const Config& now) {
  ConfigChanges changes;
  for (const std::string& line : ConfigDifferences(before, now)) {
    const std::string path = line.substr(0, line.find(": "));
    const Change change = DecidesTheTree(path, now) ? REFUSED : ChangeOf(path);
    const bool free = change == FREE || change == MOVED;  // runs compare the content themselves
    (free                  ? changes.free
     : change == JUDGING   ? changes.judging
     : change == SCHEDULED ? changes.scheduled
                           : changes.refused)
        .push_back(line);
  }
  return changes;
}

}  // namespace syntra
