// SPDX-License-Identifier: Apache-2.0
// A small training state for the tests of checkpoints: tensors of every dtype and of ranks 0 to 4,
// whose contents depend on the step.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/recover.h"
#include "checkpoint/save.h"
#include "checkpoint/shared_save.h"
#include "tests/base/error_of.h"
#include "tests/base/scratch.h"

namespace syntra {

class Sample {
 public:
  explicit Sample(int64_t step) {
    info.step = step;
    info.run_id = "run-\xc3\xa4";
    info.attributes = {{"config", "model {\n  layers: 2\n}\n"},
                       {"data_position", std::to_string(step * 7)}};
    Add("step", {DType::kI32, {}});
    Add("parameters/embedding", {DType::kF32, {16, 8}});
    Add("parameters/encoder/layer_00/scale", {DType::kF32, {8}});
    Add("parameters/encoder/layer_00/value", {DType::kBF16, {2, 3, 4, 5}});
    Add("moments/row", {DType::kF64, {3, 1}});
    Add("moments/\xce\xb2", {DType::kF32, {}});
  }

  std::vector<TensorRecord> Records() const {
    std::vector<TensorRecord> records;
    for (size_t i = 0; i < types.size(); ++i)
      records.push_back({names[i], types[i], bytes[i].data()});
    return records;
  }

  void Save(const Path& root, const SaveOptions& options = {.shard_bytes = 600}) const {
    SaveCheckpoint(root, info, Records(), options);
  }

  // What one of several processes holds: an equal part of each tensor.
  std::vector<TensorRecord> Part(int process, int processes) const {
    std::vector<TensorRecord> part;
    for (TensorRecord record : Records()) {
      const auto elements = static_cast<int64_t>(record.type.shape.size());
      record.begin = elements * process / processes;
      const int64_t end = elements * (process + 1) / processes;
      if (record.begin == end) continue;
      record.data += record.begin * static_cast<int64_t>(SizeOf(record.type.dtype));
      record.type.shape = {end - record.begin};
      part.push_back(record);
    }
    return part;
  }

  // As so many processes do together.
  void SaveShared(const Path& root, int processes) const {
    const CheckpointFrame frame = MakeFrame(Records(), 600);
    SharedSave save(root, info, frame);
    std::vector<FilePart> written;
    for (int process = 0; process < processes; ++process) {
      for (FilePart& part : WriteParts(save.directory(), frame.outline, Part(process, processes))) {
        written.push_back(std::move(part));
      }
    }
    save.Commit(written);
  }

  // True if `checkpoint` holds exactly this state, read one by one and all at once.
  bool Matches(Checkpoint& checkpoint) const {
    if (checkpoint.info().step != info.step || checkpoint.info().run_id != info.run_id ||
        checkpoint.info().attributes != info.attributes ||
        checkpoint.tensors().size() != names.size()) {
      return false;
    }
    std::vector<std::vector<std::byte>> together;
    std::vector<TensorDestination> destinations;
    for (size_t i = 0; i < names.size(); ++i) {
      std::vector<std::byte> read(types[i].bytes());
      checkpoint.Read(names[i], TensorView{read.data(), types[i]});
      if (read != bytes[i]) return false;
      together.emplace_back(read.size());
      destinations.push_back({names[i], {together.back().data(), types[i]}});
    }
    checkpoint.Read(destinations);
    return together == bytes;
  }

  void Add(const std::string& name, const TensorType& type) {
    names.push_back(name);
    types.push_back(type);
    bytes.emplace_back(type.bytes());
    for (size_t i = 0; i < bytes.back().size(); ++i) {
      bytes.back()[i] =
          static_cast<std::byte>((i * 131 + names.size() * 17 + info.step * 29) % 251);
    }
  }

  CheckpointInfo info;
  std::vector<std::string> names;
  std::vector<TensorType> types;
  std::vector<std::vector<std::byte>> bytes;
};

// The step of the newest valid checkpoint; -1 if there is none, -2 if its content is wrong.
inline int64_t NewestStep(const Path& root, Recovery mode = Recovery::kReadOnly) {
  auto found = FindNewestValid(root, mode);
  if (!found) return -1;
  return Sample(found->info().step).Matches(*found) ? found->info().step : -2;
}

// The message of the Error(kCheckpoint) that `action` must throw.
inline std::string ErrorOf(const std::function<void()>& action) {
  return ErrorOf(action, ExitCode::kCheckpoint);
}

inline std::string ReadFile(const Path& path) { return ReadWholeFile(path); }

inline void OverwriteFile(const Path& path, const std::string& content) {
  std::filesystem::remove(path);
  File file = File::CreateNew(path);
  file.Write(content);
}

}  // namespace syntra
