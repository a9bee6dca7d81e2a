// SPDX-License-Identifier: Apache-2.0
#include "convert/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "core/buffer.h"

namespace syntra {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's byte order");

constexpr int64_t kLengthBytes = 8;
constexpr std::string_view kMetadata = "__metadata__";

struct TypeRow {
  SafetensorsType type;
  std::string_view name;
  int64_t bytes;
};
constexpr TypeRow kTypes[] = {{SafetensorsType::kF64, "F64", 8},
                              {SafetensorsType::kF32, "F32", 4},
                              {SafetensorsType::kF16, "F16", 2},
                              {SafetensorsType::kBF16, "BF16", 2}};

const TypeRow& RowOf(SafetensorsType type) {
  return *std::ranges::find(kTypes, type, &TypeRow::type);
}

template <typename... Args>
[[noreturn]] void Refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ExitCode::kCheckpoint,
              "not a sound safetensors file: " + fmt::format(format, std::forward<Args>(args)...));
}

std::string Named(std::string_view name) {
  return fmt::format("tensor \"{}\"", Printable(name, kMostShown));
}

// The header's fields of a tensor, as far as they were read.
struct Fields {
  std::optional<std::string> dtype;
  std::optional<std::vector<uint64_t>> shape, offsets;
};

SafetensorsEntry CheckedEntry(const std::string& name, const Fields& fields, int64_t data_bytes) {
  if (!fields.dtype || !fields.shape || !fields.offsets) {
    Refuse("{} lacks dtype, shape or data_offsets", Named(name));
  }
  const auto row = std::ranges::find(kTypes, *fields.dtype, &TypeRow::name);
  if (row == std::end(kTypes)) {
    Refuse("{} has the type {}; only F64, F32, F16 and BF16 are read", Named(name),
           Printable(*fields.dtype, kMostShown));
  }
  const std::vector<uint64_t>& offsets = *fields.offsets;
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    Refuse("the data_offsets of {} are no range", Named(name));
  }
  if (offsets[1] > static_cast<uint64_t>(data_bytes)) {
    Refuse("{} ends at byte {} of {}; the file is cut short, or its header is wrong", Named(name),
           offsets[1], data_bytes);
  }
  std::vector<int64_t> dims;
  int64_t bytes = row->bytes;
  for (const uint64_t extent : *fields.shape) {
    if (extent == 0) Refuse("{} is empty", Named(name));
    if (extent > static_cast<uint64_t>(INT64_MAX) ||
        __builtin_mul_overflow(bytes, static_cast<int64_t>(extent), &bytes)) {
      Refuse("the shape of {} is too large to count", Named(name));
    }
    dims.push_back(static_cast<int64_t>(extent));
  }
  const auto begin = static_cast<int64_t>(offsets[0]), end = static_cast<int64_t>(offsets[1]);
  if (end - begin != bytes) {
    Refuse("{} is {}[{}], which takes {} bytes, but has {}", Named(name), row->name,
           fmt::join(dims, ", "), bytes, end - begin);
  }
  return {row->type, Shape(std::span<const int64_t>(dims)), begin, end};
}

// Takes the header's JSON as it is parsed, so that nothing is kept but tensors, and refuses
// whatever is not of its form at once.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(SafetensorsHeader* header, int64_t data_bytes)
      : header_(header), data_bytes_(data_bytes) {}

  bool null() override { Misplaced("null"); }
  bool boolean(bool) override { Misplaced("a truth value"); }
  bool number_integer(number_integer_t value) override { Misplaced(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { Misplaced(text); }
  bool binary(binary_t&) override { Misplaced("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (!numbers_) Misplaced(std::to_string(value));
    if (numbers_->size() == Shape::kMaxRank) {
      Refuse("a list of {} has more than {} numbers", Named(name_), Shape::kMaxRank);
    }
    numbers_->push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == kInMetadata) {
      if (!header_->metadata.emplace(key_, value).second) Refuse("metadata has a key twice");
      return true;
    }
    if (place_ != kInTensor || numbers_ || key_ != "dtype") Misplaced("a text");
    if (fields_.dtype) Refuse("{} has two types", Named(name_));
    fields_.dtype = std::move(value);
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == kOutside) {
      place_ = kAtTop;
    } else if (place_ == kAtTop) {
      place_ = name_ == kMetadata ? kInMetadata : kInTensor;
      fields_ = {};
    } else {
      Misplaced("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == kInTensor) {
      if (header_->tensors.size() == SafetensorsHeader::kMaxTensors) {
        Refuse("it has more than {} tensors", SafetensorsHeader::kMaxTensors);
      }
      if (!header_->tensors.emplace(name_, CheckedEntry(name_, fields_, data_bytes_)).second) {
        Refuse("{} is there twice", Named(name_));
      }
    }
    if (place_ == kInMetadata && std::exchange(has_metadata_, true)) {
      Refuse("{} is there twice", kMetadata);
    }
    place_ = place_ == kAtTop ? kOutside : kAtTop;
    return true;
  }

  bool key(string_t& value) override {
    (place_ == kAtTop ? name_ : key_) = std::move(value);
    return true;
  }

  bool start_array(std::size_t) override {
    std::optional<std::vector<uint64_t>>* list = nullptr;
    if (place_ == kInTensor && !numbers_) {
      if (key_ == "shape") list = &fields_.shape;
      if (key_ == "data_offsets") list = &fields_.offsets;
    }
    if (!list) Misplaced("a list");
    if (*list) Refuse("{} of {} is there twice", key_, Named(name_));
    numbers_ = &list->emplace();
    return true;
  }

  bool end_array() override {
    numbers_ = nullptr;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    Refuse("the header is not JSON: byte {} does not belong there", position);
  }

 private:
  enum Place { kOutside, kAtTop, kInTensor, kInMetadata };

  [[noreturn]] void Misplaced(std::string_view what) const {
    Refuse("{} stands in the header at {} where it means nothing", Printable(what, kMostShown),
           place_ == kInTensor ? fmt::format("{} of {}", Printable(key_, kMostShown), Named(name_))
                               : fmt::format("\"{}\"", Printable(name_, kMostShown)));
  }

  SafetensorsHeader* header_;
  int64_t data_bytes_;
  Place place_ = kOutside;
  std::string name_, key_;
  Fields fields_;
  std::vector<uint64_t>* numbers_ = nullptr;  // the list that is being read
  bool has_metadata_ = false;
};

// Every byte after the header belongs to exactly one tensor.
void CheckRanges(const SafetensorsHeader& header, int64_t data_bytes) {
  std::vector<std::pair<const std::string*, const SafetensorsEntry*>> tensors;
  for (const auto& [name, entry] : header.tensors) tensors.emplace_back(&name, &entry);
  std::ranges::sort(tensors, {}, [](const auto& tensor) { return tensor.second->begin; });
  int64_t covered = 0;
  for (const auto& [name, entry] : tensors) {
    if (entry->begin < covered) Refuse("{} overlaps with another tensor", Named(*name));
    if (entry->begin > covered) {
      Refuse("bytes {} to {} before {} belong to no tensor", covered, entry->begin, Named(*name));
    }
    covered = entry->end;
  }
  if (covered != data_bytes) {
    Refuse("the last {} bytes belong to no tensor", data_bytes - covered);
  }
}

}  // namespace

std::string_view NameOf(SafetensorsType type) { return RowOf(type).name; }
int64_t SizeOf(SafetensorsType type) { return RowOf(type).bytes; }

SafetensorsHeader ParseSafetensorsHeader(std::span<const std::byte> file) {
  const auto size = static_cast<int64_t>(file.size());
  if (size < kLengthBytes) Refuse("it has {} bytes", size);
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > SafetensorsHeader::kMaxBytes) {
    Refuse("its header claims {} bytes; {} are the most", length, SafetensorsHeader::kMaxBytes);
  }
  if (static_cast<int64_t>(length) > size - kLengthBytes) {
    Refuse("its header claims {} bytes, but the file has {}", length, size);
  }
  SafetensorsHeader header;
  header.bytes = kLengthBytes + static_cast<int64_t>(length);
  const auto* text = reinterpret_cast<const char*>(file.data()) + kLengthBytes;
  if (length == 0 || *text != '{') Refuse("its header does not begin with a brace");
  HeaderReader reader(&header, size - header.bytes);
  nlohmann::json::sax_parse(text, text + length, &reader);
  CheckRanges(header, size - header.bytes);
  return header;
}

std::string SafetensorsHeaderText(const SafetensorsHeader& header) {
  nlohmann::json json = nlohmann::json::object();
  if (!header.metadata.empty()) {
    for (const auto& [key, value] : header.metadata) json[std::string(kMetadata)][key] = value;
  }
  for (const auto& [name, entry] : header.tensors) {
    const auto dims = entry.shape.dims();
    json[name] = {{"dtype", NameOf(entry.type)},
                  {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                  {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = json.dump();
  text.resize(AlignUp(text.size(), 8), ' ');
  const uint64_t length = text.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  return bytes + text;
}

}  // namespace syntra
