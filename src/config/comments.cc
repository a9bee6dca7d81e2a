// SPDX-License-Identifier: Apache-2.0
#include "config/comments.h"

#include <google/protobuf/descriptor.pb.h>

#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/schema_descriptors.h"

namespace syntra {
namespace {

// The comment above and the one after, as one paragraph.
template <typename Descriptor>
std::string Text(const Descriptor& descriptor) {
  google::protobuf::SourceLocation location;
  if (!descriptor.GetSourceLocation(&location)) return "";
  std::vector<std::string> lines;
  for (const std::string& comment : {location.leading_comments, location.trailing_comments}) {
    for (const std::string& line : Split(comment, '\n')) {
      if (!StripSpace(line).empty()) lines.emplace_back(StripSpace(line));
    }
  }
  return Join(lines, " ");
}

}  // namespace

SchemaComments::SchemaComments() {
  google::protobuf::FileDescriptorSet files;
  SYNTRA_CHECK(files.ParseFromArray(kSchemaDescriptors, static_cast<int>(kSchemaDescriptorsSize)));
  for (const auto& file : files.file()) SYNTRA_CHECK(pool_.BuildFile(file));
}

std::string SchemaComments::Of(const google::protobuf::FieldDescriptor& field) const {
  return Text(*pool_.FindFieldByName(field.full_name()));
}

std::string SchemaComments::Of(const google::protobuf::Descriptor& message) const {
  return Text(*pool_.FindMessageTypeByName(message.full_name()));
}

std::string SchemaComments::Of(const google::protobuf::EnumValueDescriptor& value) const {
  return Text(*pool_.FindEnumTypeByName(value.type()->full_name())->FindValueByName(value.name()));
}

}  // namespace syntra
