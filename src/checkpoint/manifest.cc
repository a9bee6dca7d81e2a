// SPDX-License-Identifier: Apache-2.0
// Writing and strict reading of MANIFEST.
#include "checkpoint/manifest.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/digest.h"
#include "base/text.h"
#include "base/utf8.h"
#include "checkpoint/layout.h"

namespace syntra {
namespace {

using SortedJson = nlohmann::json;

constexpr std::string_view kMagic = "syntra-checkpoint ";
constexpr int64_t kVersion = Manifest::kVersion;
constexpr std::string_view kDigestKey = "xxh3-128 ";
constexpr size_t kDigestDigits = 32;
constexpr size_t kMaxTensors = 1'000'000;
constexpr size_t kMaxFiles = 100'000;
constexpr size_t kMaxNameBytes = 1024;
constexpr int64_t kMaxTensorBytes = int64_t{1} << 56;  // as many elements are the most of a Shape

std::string DigestOfText(std::string_view text) {
  return HexDigestOf(std::as_bytes(std::span(text)));
}

void RequireUtf8(std::string_view text, std::string_view what) {
  if (!IsUtf8(text)) Fail(ExitCode::kCheckpoint, "{} is not UTF-8 text", what);
}

[[noreturn]] void FailEntry(std::string_view what) {
  Fail(ExitCode::kCheckpoint, "{}: {} is missing or not valid", kManifestName, Printable(what));
}

// `object` must have exactly these keys, so that a misspelt or foreign one is noticed.
void RequireKeys(const SortedJson& object, std::initializer_list<const char*> keys,
                 std::string_view what) {
  if (!object.is_object() || object.size() != keys.size()) FailEntry(what);
  for (const char* key : keys) {
    if (!object.contains(key)) FailEntry(fmt::format("{} of {}", key, what));
  }
}

int64_t Count(const SortedJson& value, std::string_view what) {
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    FailEntry(what);
  }
  return value.get<int64_t>();
}

const std::string& Text(const SortedJson& value, std::string_view what) {
  if (!value.is_string()) FailEntry(what);
  return value.get_ref<const std::string&>();
}

DType ParseDType(const std::string& name, std::string_view what) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI32}) {
    if (NameOf(dtype) == name) return dtype;
  }
  FailEntry(fmt::format("dtype of {}", what));
}

FileDigest ParseFile(const std::string& name, const SortedJson& entry) {
  if (!IsSafeFileName(name)) {
    Fail(ExitCode::kCheckpoint, "{}: refused file name \"{}\"", kManifestName, Printable(name));
  }
  RequireKeys(entry, {"bytes", "xxh3_128"}, name);
  FileDigest file{Count(entry["bytes"], name), Text(entry["xxh3_128"], name)};
  if (file.digest.size() != kDigestDigits) FailEntry(fmt::format("digest of {}", name));
  return file;
}

// Adds the tensor's size to `used`, which must stay within the file that holds it: no later
// allocation can be larger than files that are really there.
TensorEntry ParseTensor(const std::string& name, const SortedJson& entry, const Manifest& manifest,
                        std::map<std::string, int64_t>* used) {
  const bool has_offset = manifest.version > 1;
  if (has_offset) {
    RequireKeys(entry, {"dtype", "file", "offset", "shape"}, name);
  } else {
    RequireKeys(entry, {"dtype", "file", "shape"}, name);
  }
  const DType dtype = ParseDType(Text(entry["dtype"], name), name);
  const std::string& file = Text(entry["file"], name);
  const auto holder = manifest.files.find(file);
  if (holder == manifest.files.end()) FailEntry(fmt::format("file of {}", name));
  const SortedJson& shape = entry["shape"];
  if (!shape.is_array() || shape.size() > Shape::kMaxRank)
    FailEntry(fmt::format("shape of {}", name));
  std::vector<int64_t> dims;
  int64_t bytes = SizeOf(dtype);
  for (const SortedJson& dim : shape) {
    dims.push_back(Count(dim, name));
    if (dims.back() == 0 || __builtin_mul_overflow(bytes, dims.back(), &bytes) ||
        bytes > kMaxTensorBytes) {
      FailEntry(fmt::format("shape of {}", name));
    }
  }
  int64_t& total = (*used)[file];
  if (__builtin_add_overflow(total, bytes, &total) || total > holder->second.bytes) {
    Fail(ExitCode::kCheckpoint, "{}: tensor {} does not fit into {} of {} bytes", kManifestName,
         Printable(name), file, holder->second.bytes);
  }
  const int64_t offset = has_offset ? Count(entry["offset"], name) : -1;
  if (offset > holder->second.bytes - bytes) FailEntry(fmt::format("offset of {}", name));
  return {{dtype, Shape(std::span<const int64_t>(dims))}, file, offset};
}

Manifest ParseBody(const SortedJson& body, int64_t version) {
  RequireKeys(body, {"attributes", "files", "run_id", "step", "tensors"}, "the top level");
  Manifest manifest;
  manifest.version = version;
  manifest.info.step = Count(body["step"], "step");
  manifest.info.run_id = Text(body["run_id"], "run_id");
  const SortedJson& files = body["files"];
  const SortedJson& tensors = body["tensors"];
  if (!body["attributes"].is_object()) FailEntry("attributes");
  if (!files.is_object() || files.size() > kMaxFiles) FailEntry("files");
  if (!tensors.is_object() || tensors.size() > kMaxTensors) FailEntry("tensors");
  for (const auto& [key, value] : body["attributes"].items()) {
    manifest.info.attributes[key] = Text(value, fmt::format("attribute {}", key));
  }
  for (const auto& [name, entry] : files.items()) manifest.files[name] = ParseFile(name, entry);
  std::map<std::string, int64_t> used;
  for (const auto& [name, entry] : tensors.items()) {
    manifest.tensors[name] = ParseTensor(name, entry, manifest, &used);
  }
  CheckTensorNames(manifest.tensors);
  return manifest;
}

}  // namespace

const std::string& AttributeOf(const Path& path, const CheckpointInfo& info,
                               std::string_view name) {
  const auto it = info.attributes.find(std::string(name));
  if (it == info.attributes.end()) {
    Fail(ExitCode::kCheckpoint, "{} has no attribute {}", path.string(), name);
  }
  return it->second;
}

std::string AttributeOrNone(const CheckpointInfo& info, std::string_view name) {
  const auto it = info.attributes.find(std::string(name));
  return it == info.attributes.end() ? "" : it->second;
}

void CheckTensorNames(const std::map<std::string, TensorEntry, std::less<>>& tensors) {
  for (const auto& [name, entry] : tensors) {
    const std::vector<std::string> parts = Split(name, '/');
    const bool whole = std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
      return part.empty() || part == "." || part == "..";
    });
    if (name.empty() || name.size() > kMaxNameBytes || !whole || Printable(name) != name) {
      Fail(ExitCode::kCheckpoint, "tensor name \"{}\" cannot be stored", Printable(name));
    }
    for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
      if (tensors.contains(std::string_view(name).substr(0, slash))) {
        Fail(ExitCode::kCheckpoint, "tensor name \"{}\" is also the group of \"{}\"",
             Printable(name.substr(0, slash)), Printable(name));
      }
    }
  }
}

std::string ToText(const Manifest& manifest) {
  RequireUtf8(manifest.info.run_id, "the run id");
  for (const auto& [key, value] : manifest.info.attributes) {
    RequireUtf8(key, "an attribute's name");
    RequireUtf8(value, fmt::format("attribute {}", key));
  }
  SortedJson files = SortedJson::object(), tensors = SortedJson::object();
  for (const auto& [name, file] : manifest.files) {
    files[name] = {{"bytes", file.bytes}, {"xxh3_128", file.digest}};
  }
  for (const auto& [name, entry] : manifest.tensors) {
    const auto dims = entry.type.shape.dims();
    SYNTRA_CHECK(entry.offset >= 0, "tensor {} has no place in {}", name, entry.file);
    tensors[name] = {{"dtype", NameOf(entry.type.dtype)},
                     {"file", entry.file},
                     {"offset", entry.offset},
                     {"shape", std::vector<int64_t>(dims.begin(), dims.end())}};
  }
  const SortedJson body = {{"attributes", manifest.info.attributes},
                           {"files", files},
                           {"run_id", manifest.info.run_id},
                           {"step", manifest.info.step},
                           {"tensors", tensors}};
  const std::string text = fmt::format("{}{}\n{}\n", kMagic, kVersion, body.dump(1));
  return fmt::format("{}{}{}\n", text, kDigestKey, DigestOfText(text));
}

Manifest ParseManifest(std::string_view text) {
  // The digest line comes first: what it does not cover is never interpreted.
  const size_t tail_size = kDigestKey.size() + kDigestDigits + 1;
  if (text.size() < tail_size) {
    Fail(ExitCode::kCheckpoint, "{} is truncated: {} bytes", kManifestName, text.size());
  }
  const std::string_view covered = text.substr(0, text.size() - tail_size);
  const std::string_view tail = text.substr(covered.size());
  const std::string expected = fmt::format("{}{}\n", kDigestKey, DigestOfText(covered));
  if (tail != expected) {
    Fail(ExitCode::kCheckpoint, "{} is damaged or truncated: its last line should be \"{}\"",
         kManifestName, StripSpace(expected));
  }
  const size_t line_end = covered.find('\n');
  int64_t version;
  if (!covered.starts_with(kMagic) || line_end == covered.npos ||
      !ParseInt64(covered.substr(kMagic.size(), line_end - kMagic.size()), &version)) {
    Fail(ExitCode::kCheckpoint, "{} is not a checkpoint manifest", kManifestName);
  }
  if (version < 1 || version > kVersion) {
    throw UnsupportedFormat(
        fmt::format("{} has format version {}; this program reads versions 1 "
                    "to {}: use the program that wrote it",
                    kManifestName, version, kVersion));
  }
  const SortedJson body =
      SortedJson::parse(covered.substr(line_end + 1), nullptr, /*allow_exceptions=*/false);
  if (body.is_discarded()) Fail(ExitCode::kCheckpoint, "{} holds broken JSON", kManifestName);
  return ParseBody(body, version);
}

}  // namespace syntra
