// SPDX-License-Identifier: Apache-2.0
#include "convert/safetensors.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "kernels/bfloat16.h"

namespace syntra {
namespace {

constexpr int64_t kMaxIndexBytes = int64_t{16} << 20;

// IEEE 754 binary16, exactly.
float FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 0x1f) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction | 0x400), exponent - 25);
}

// `bytes` need not be aligned.
template <typename Stored, typename Convert>
void Widen(const std::byte* bytes, std::span<float> values, const Convert& convert) {
  for (size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert(stored);
  }
}

void ToFloats(SafetensorsType type, const std::byte* bytes, std::span<float> values) {
  switch (type) {
    case SafetensorsType::kF64:
      return Widen<double>(bytes, values, [](double value) { return static_cast<float>(value); });
    case SafetensorsType::kF32:
      std::memcpy(values.data(), bytes, values.size_bytes());
      return;
    case SafetensorsType::kF16:
      return Widen<uint16_t>(bytes, values, FromHalf);
    case SafetensorsType::kBF16:
      return Widen<BFloat16>(bytes, values, [](BFloat16 value) { return ToFloat(value); });
  }
}

// Whether it can be the name of a file in the same directory.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= NAME_MAX && !name.starts_with('.') &&
         Path(name).filename() == name && name.find('\0') == std::string::npos;
}

// The tensors of the JSON object "weight_map", by the file that they are in. A file name with a
// folder in it could lead anywhere.
std::map<std::string, std::set<std::string>> TensorsByFile(const Path& path) {
  const std::string text = ReadWholeFile(path, kMaxIndexBytes, ExitCode::kCheckpoint);
  std::map<std::string, std::set<std::string>> files;
  try {
    // Not as Json, which keeps members in a list: a million names would take hours.
    const auto json = nlohmann::json::parse(text);
    const auto& map = json.at("weight_map").get_ref<const nlohmann::json::object_t&>();
    for (const auto& [name, file] : map) {
      files[file.get<std::string>()].insert(name);
    }
  } catch (const nlohmann::json::exception&) {
    Fail(ExitCode::kCheckpoint,
         "{} is not an index of safetensors files: no \"weight_map\" from names "
         "of tensors to names of files",
         path.string());
  }
  for (const auto& [file, names] : files) {
    if (IsPlainName(file)) continue;
    Fail(ExitCode::kCheckpoint, "{} names the file \"{}\"; only files beside it are read",
         path.string(), Printable(file, kMostShown));
  }
  return files;
}

void RefuseWithoutIndex(const Path& directory) {
  for (const Path& path : ListDirectory(directory)) {
    if (path.extension() != ".safetensors") continue;
    Fail(ExitCode::kCheckpoint,
         "{} has {}, but neither {} nor {}, which names the file of each tensor; is the copy "
         "complete?",
         directory.string(), path.filename().string(), kSafetensorsFile, kSafetensorsIndex);
  }
}

}  // namespace

SafetensorsSource::SafetensorsSource(const Path& directory) {
  if (Exists(directory / kSafetensorsFile)) {
    Add(directory / kSafetensorsFile);
  } else if (Exists(directory / kSafetensorsIndex)) {
    AddFilesOfIndex(directory);
  } else {
    RefuseWithoutIndex(directory);
    Fail(ExitCode::kCheckpoint,
         "{} has neither {} nor {}; other files of weights (pytorch_model.bin) are not read, since "
         "they are programs: save the model again with safe_serialization=True",
         directory.string(), kSafetensorsFile, kSafetensorsIndex);
  }
}

std::vector<std::string> SafetensorsSource::Add(const Path& path) {
  const ErrorContext context([&] { return "reading " + path.string(); });
  MappedFile file(path, ExitCode::kCheckpoint);
  const SafetensorsHeader header = ParseSafetensorsHeader(file.bytes());
  std::vector<std::string> names;
  for (const auto& [name, entry] : header.tensors) {
    if (!places_.emplace(name, Place{files_.size(), entry}).second) {
      Fail(ExitCode::kCheckpoint, "tensor \"{}\" is in another file, too",
           Printable(name, kMostShown));
    }
    tensors_.emplace(name, TensorType{DType::kF32, entry.shape});
    names.push_back(name);
  }
  files_.emplace_back(std::move(file), header.bytes);
  return names;
}

void SafetensorsSource::AddFilesOfIndex(const Path& directory) {
  for (const auto& [file, expected] : TensorsByFile(directory / kSafetensorsIndex)) {
    if (!Exists(directory / file)) {
      Fail(ExitCode::kCheckpoint, "{} names {}, which is not there; is the copy complete?",
           (directory / kSafetensorsIndex).string(), Printable(file, kMostShown));
    }
    const std::vector<std::string> found = Add(directory / file);
    if (std::set<std::string>(found.begin(), found.end()) == expected) continue;
    Fail(ExitCode::kCheckpoint, "{} does not hold the tensors that {} says: {} there, {} here",
         (directory / file).string(), kSafetensorsIndex, expected.size(), found.size());
  }
}

void SafetensorsSource::Read(std::string_view name, std::span<float> values) {
  const auto it = places_.find(name);
  SYNTRA_CHECK(it != places_.end(), "no tensor {}", name);
  const SafetensorsEntry& entry = it->second.entry;
  SYNTRA_CHECK(static_cast<int64_t>(values.size()) == entry.shape.size(), "size of {}", name);
  const auto& [file, begin] = files_[it->second.file];
  ToFloats(entry.type, file.bytes().data() + begin + entry.begin, values);
}

SafetensorsWriter::SafetensorsWriter(const Path& directory, const TensorSource::Types& tensors,
                                     const SafetensorsOptions& options)
    : directory_(directory), options_(options) {
  SYNTRA_CHECK(options.type == SafetensorsType::kF32 || options.type == SafetensorsType::kBF16);
  Plan(tensors);
  NameParts();
}

void SafetensorsWriter::Plan(const TensorSource::Types& tensors) {
  int64_t used = 0;
  for (const auto& [name, type] : tensors) {
    const int64_t bytes = type.shape.size() * SizeOf(options_.type);
    if (parts_.empty() || (used > 0 && used + bytes > options_.file_bytes)) {
      parts_.emplace_back();
      parts_.back().header.metadata["format"] = "pt";  // what transformers asks for
      used = 0;
    }
    parts_.back().header.tensors[name] = {options_.type, type.shape, used, used + bytes};
    used += bytes;
    order_.push_back(name);
  }
}

void SafetensorsWriter::NameParts() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].name = parts_.size() == 1
                         ? kSafetensorsFile
                         : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, parts_.size());
  }
}

void SafetensorsWriter::Write(std::string_view name, std::span<const float> values) {
  SYNTRA_CHECK(written_ < order_.size() && order_[written_] == name, "{} out of order", name);
  ++written_;
  if (file_ && !parts_[part_].header.tensors.contains(name)) {
    CloseFile();
    ++part_;
  }
  const Part& part = parts_[part_];
  if (!file_) {
    file_.emplace(File::CreateNew(directory_ / part.name));
    file_->Write(SafetensorsHeaderText(part.header));
  }
  SYNTRA_CHECK(static_cast<int64_t>(values.size()) ==
               part.header.tensors.find(name)->second.shape.size());
  if (options_.type == SafetensorsType::kF32) return file_->Write(std::as_bytes(values));
  std::vector<BFloat16> rounded(values.size());
  std::ranges::transform(values, rounded.begin(), ToBFloat16);
  file_->Write(std::as_bytes(std::span(rounded)));
}

void SafetensorsWriter::CloseFile() {
  file_->Sync();
  file_->Close();
  file_.reset();
}

void SafetensorsWriter::Finish() {
  SYNTRA_CHECK(written_ == order_.size(), "{} of {} tensors", written_, order_.size());
  CloseFile();
  if (parts_.size() == 1) return;
  Json files = Json::object();
  int64_t bytes = 0;
  for (const Part& part : parts_) {
    for (const auto& [name, entry] : part.header.tensors) {
      files[name] = part.name;
      bytes += entry.end - entry.begin;
    }
  }
  const Json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", files}};
  ReplaceFileDurably(directory_ / kSafetensorsIndex, JsonText(index, 2) + "\n");
}

}  // namespace syntra
