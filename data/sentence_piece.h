// SPDX-License-Identifier: Apache-2.0
// Messages of the SentencePiece library, for users.
#pragma once

#include <string>
#include <string_view>

namespace syntra {

// The reason in a status of the library, without "./src/file.cc(12) [condition]" before it; empty
// where the status has nothing else.
std::string ReasonOfStatus(std::string_view message);

// The version of the linked library, e.g. "0.1.97".
std::string_view SentencePieceVersion();

}  // namespace syntra
