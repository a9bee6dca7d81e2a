// SPDX-License-Identifier: Apache-2.0
#include "cli/request_reader.h"

#include <fmt/format.h>

#include <utility>

#include "cli/gaps.h"
#include "data/example.h"

namespace syntra {

RequestReader::RequestReader(const LoadedModel& model, const Task* task)
    : tokenizer_(*model.tokenizer),
      settings_(DecodeSettingsOf(model.config)),
      goes_on_(!task && IsLanguageModelling(model.config.data())) {
  if (task) task_lines_.emplace(*task, tokenizer_, RowLengths(model.config.data()).inputs);
}

DecodeRequest RequestReader::RequestOf(std::string_view text) const {
  return (goes_on_ ? RequestToGoOn : RequestFor)(tokenizer_, text);
}

std::optional<DecodeRequest> RequestReader::Read(const std::string& line, std::string* error) {
  if (task_lines_) {
    std::optional<std::vector<int32_t>> input = task_lines_->Read(line, error);
    return input ? std::optional(DecodeRequest{std::move(*input), {}}) : std::nullopt;
  }
  DecodeRequest request = RequestOf(line);
  if (std::ssize(request.ids) <= settings_.input_length) return request;
  *error = fmt::format("has {} tokens, but the model reads {} (its data.input_length{})",
                       request.ids.size(), settings_.input_length,
                       settings_.together > 0 ? ", with room for a token of output" : "");
  return std::nullopt;
}

void RequestReader::WarnOfCut() const {
  if (task_lines_) task_lines_->WarnOfCut();
}

}  // namespace syntra
