// SPDX-License-Identifier: Apache-2.0
// The schema's comments.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>

namespace syntra {

// Comments above and after fields, messages and enum values of the schema, as one paragraph each;
// "" where there is none. The compiled-in descriptors have no comments, so these come from a copy
// that the program carries.
class SchemaComments {
 public:
  SchemaComments();

  std::string Of(const google::protobuf::FieldDescriptor& field) const;
  std::string Of(const google::protobuf::Descriptor& message) const;
  std::string Of(const google::protobuf::EnumValueDescriptor& value) const;

 private:
  google::protobuf::DescriptorPool pool_;
};

}  // namespace syntra
