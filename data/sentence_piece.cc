// SPDX-License-Identifier: Apache-2.0
#include "data/sentence_piece.h"

#include "base/text.h"

namespace syntra {

std::string ReasonOfStatus(std::string_view message) {
  if (message.find(".cc(") != std::string_view::npos) {
    const size_t condition_end = message.rfind(']');
    message = condition_end == std::string_view::npos ? "" : message.substr(condition_end + 1);
  }
  message = StripSpace(message);
  if (message.ends_with('.')) message.remove_suffix(1);
  return std::string(message);
}

std::string_view SentencePieceVersion() { return SYNTRA_SENTENCEPIECE_VERSION; }

}  // namespace syntra
