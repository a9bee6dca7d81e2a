// SPDX-License-Identifier: Apache-2.0
#include "cli/request_reader.h"

#include <fmt/format.h>

#include <cctype>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "cli/gaps.h"
#include "data/example.h"

namespace syntra {
namespace {

// Whether a byte is part of a letter or a digit, or of a character that is none of ASCII's.
bool IsOfWord(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) || (byte & 0x80) != 0;
}

}  // namespace

RequestReader::RequestReader(const LoadedModel& model, const Task* task)
    : tokenizer_(*model.tokenizer),
      settings_(DecodeSettingsOf(model.config)),
      goes_on_(!task && IsLanguageModelling(model.config.data())) {
  const DataConfig& data = model.config.data();
  if (task) task_lines_.emplace(*task, tokenizer_, RowLengths(data).inputs);
  const bool is_sum = settings_.together > 0 && !IsLanguageModelling(data);
  limit_ = is_sum ? "data.input_length and data.target_length together" : "data.input_length";
}

std::optional<DecodeRequest> RequestReader::Read(const std::string& line, std::string* error) {
  if (task_lines_) {
    std::optional<std::vector<int32_t>> input = task_lines_->Read(line, error);
    return input ? std::optional(DecodeRequest{std::move(*input), {}}) : std::nullopt;
  }
  DecodeRequest request = (goes_on_ ? RequestToGoOn : RequestFor)(tokenizer_, line);
  if (std::ssize(request.ids) <= settings_.input_length) return request;
  *error = fmt::format("has {} tokens, but the model reads {} (its {}{})", request.ids.size(),
                       settings_.input_length, limit_,
                       settings_.together > 0 ? ", with room for a token of output" : "");
  return std::nullopt;
}

std::optional<std::vector<int32_t>> RequestReader::ReadTarget(const std::string& line,
                                                              std::span<const int32_t> input,
                                                              const std::string& target,
                                                              std::string* error) {
  std::vector<int32_t> ids;
  if (goes_on_) {
    std::optional<std::vector<int32_t>> after = IdsAfter(tokenizer_, line, input, target);
    if (!after) {
      *error =
          "has a target that begins within a token of the input; move the last word of the input "
          "into the target";
      return std::nullopt;
    }
    ids = std::move(*after);
    joined_ +=
        !line.empty() && !target.empty() && IsOfWord(line.back()) && IsOfWord(target.front());
  } else if (task_lines_) {
    ids = tokenizer_.Encode(target);
    ids.push_back(tokenizer_.eos_id());
  } else {
    ids = RequestFor(tokenizer_, target).ids;
  }
  const int64_t room = RoomAfter(input);
  if (std::ssize(ids) <= room) return ids;
  *error = fmt::format(
      "has a target of {} tokens, but the model has room for {} (its {})", ids.size(), room,
      settings_.together > 0 ? limit_ + ", without the input"
                             : "data.target_length or, where that is 0, data.input_length");
  return std::nullopt;
}

int64_t RequestReader::RoomAfter(std::span<const int32_t> input) const {
  return settings_.together > 0 ? settings_.together - std::ssize(input) : settings_.output_length;
}

void RequestReader::Warn() const {
  if (task_lines_) task_lines_->WarnOfCut();
  if (joined_ == 0) return;
  Log().warn(
      "{} with the last word of the input; where a target begins a word, write a space before it",
      joined_ == 1 ? "1 target goes on" : WithThousands(joined_) + " targets go on");
}

}  // namespace syntra
