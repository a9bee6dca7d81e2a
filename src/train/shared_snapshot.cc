// SPDX-License-Identifier: Apache-2.0
#include "train/shared_snapshot.h"

#include <string_view>
#include <utility>

#include "base/failure.h"
#include "base/text.h"
#include "checkpoint/finite.h"
#include "run/rank_names.h"

namespace syntra {
namespace {

// A line before a text.
std::string WithFirstLine(std::string_view line, std::string_view text) {
  return fmt::format("{}\n{}", line, text);
}

std::pair<std::string, std::string> SplitOff(const std::string& joined) {
  const size_t end = joined.find('\n');
  SYNTRA_CHECK(end != joined.npos);
  return {joined.substr(0, end), joined.substr(end + 1)};
}

std::string Answer(ExitCode code, std::string_view text) {
  return WithFirstLine(std::to_string(static_cast<int>(code)), text);
}

// Records of whole tensors.
std::vector<TensorRecord> Outline(std::span<const HostTensor> state) {
  std::vector<TensorRecord> records;
  for (const HostTensor& tensor : state) records.push_back({tensor.name, tensor.type});
  return records;
}

}  // namespace

std::string SharedSnapshot::Begin(const RunPosition& position, std::span<const HostTensor> state) {
  if (!frame_) frame_ = MakeFrame(Outline(state));
  step_ = position.step;
  save_.reset();  // which removes the directory of a save that could not be committed
  save_ = std::make_unique<SharedSave>(
      run_.directory.checkpoints(), InfoOf(run_.identity, position), *frame_,
      OptionsOf(run_.config, run_.chief->lock),
      std::vector<FileRecord>{{kTokenizerFile, run_.identity.tokenizer_model}});
  return WithFirstLine(save_->directory().filename().string(), ToText(frame_->outline));
}

std::string SharedSnapshot::WritePart(const std::string& begun,
                                      std::span<const TensorRecord> part) const {
  try {
    const std::string bad = NotFinite(part);
    if (!bad.empty()) return Answer(ExitCode::kDiverged, bad);
    const auto [name, outline] = SplitOff(begun);
    const Path directory = run_.directory.checkpoints() / name;
    return Answer(ExitCode::kDone, ToText(WriteParts(directory, ParseManifest(outline), part)));
  } catch (...) {
    return Failed();
  }
}

std::string SharedSnapshot::Failed() {
  const Failure failure = CurrentFailure();
  return Answer(failure.code, failure.message);
}

void SharedSnapshot::Commit(const std::vector<std::string>& answers) {
  // No rank writes any more. If it is not committed, it is removed here.
  const std::unique_ptr<SharedSave> save = std::move(save_);
  std::vector<FilePart> written;
  std::vector<std::string> not_finite;
  for (int rank = 0; rank < std::ssize(answers); ++rank) {
    const auto [line, text] = SplitOff(answers[rank]);
    const auto code = static_cast<ExitCode>(std::stoi(line));
    if (code == ExitCode::kDiverged) {
      not_finite.push_back(text);
    } else if (code == ExitCode::kDone) {
      for (FilePart& part : ParseFileParts(text)) written.push_back(std::move(part));
    } else {
      Fail(code, "{}: {}", NameRanks({&rank, 1}, run_.hosts), text);
    }
  }
  RequireFinite(Join(not_finite, ", "), step_, run_.directory.checkpoints());
  save->Commit(std::move(written));
}

}  // namespace syntra
