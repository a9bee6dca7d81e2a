// SPDX-License-Identifier: Apache-2.0
// Zip archives in memory.
#pragma once

#include <span>
#include <string>

namespace syntra {

struct ZipMember {
  std::string name;  // "CoLA.tsv"
  std::string content;
};

// The bytes of an archive with these files, deflated, in this order. The same files give the same
// bytes: all have the earliest date of the format, and no owner. Throws Error(kResources) if memory
// is short.
std::string ZipOf(std::span<const ZipMember> members);

}  // namespace syntra
