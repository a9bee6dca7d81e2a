// SPDX-License-Identifier: Apache-2.0
// The schema as a serialized FileDescriptorSet with comments; made from config.proto by the build.
#pragma once

#include <cstddef>

namespace syntra {

extern const unsigned char kSchemaDescriptors[];
extern const size_t kSchemaDescriptorsSize;

}  // namespace syntra
