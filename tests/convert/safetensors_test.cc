// SPDX-License-Identifier: Apache-2.0
// Safetensors files: values in and out, and hostile files.
#include "convert/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/text.h"
#include "tests/base/error_of.h"
#include "tests/base/scratch.h"

namespace syntra {
namespace {

std::string File(const std::string& header, size_t data_bytes = 0) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, 'x');
}

// The error about these bytes; "" if they are taken.
std::string Complaint(const std::string& file) {
  try {
    ParseSafetensorsHeader(std::as_bytes(std::span(file)));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kCheckpoint) << error.what();
    return error.what();
  }
  return "";
}

std::string Tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   int64_t begin, int64_t end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, dtype,
                     shape, begin, end);
}

TEST(SafetensorsHeader, HoldsWhatTheFileSays) {
  const std::string file = File(
      R"({"__metadata__":{"format":"pt"},)" + Tensor("b", "F32", "[2,3]", 4, 28) + "," +
          Tensor("a", "BF16", "[2]", 0, 4) + "," + Tensor("scalar", "F64", "[]", 28, 36) + "}  ",
      36);
  const SafetensorsHeader header = ParseSafetensorsHeader(std::as_bytes(std::span(file)));
  EXPECT_EQ(header.bytes, static_cast<int64_t>(file.size()) - 36);
  EXPECT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors.at("b").shape, Shape({2, 3}));
  EXPECT_EQ(header.tensors.at("a").type, SafetensorsType::kBF16);
  EXPECT_EQ(header.tensors.at("scalar").shape.rank(), 0);
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(SafetensorsHeader, RefusesEveryLie) {
  const auto one = [](const std::string& tensor) { return File("{" + tensor + "}", 8); };
  const std::string sound = Tensor("a", "F32", "[2]", 0, 8);
  EXPECT_EQ(Complaint(one(sound)), "");
  const std::pair<std::string, std::string> cases[] = {
      {"", "it has 0 bytes"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + "{}", "its header claims"},
      {std::string("\x00\xe1\xf5\x05\x00\x00\x00\x00", 8) + "{}", "but the file has 10"},
      {std::string("\x01\xe1\xf5\x05\x00\x00\x00\x00", 8) + "{}", "are the most"},
      {File(""), "begin with a brace"},
      {File("[1]"), "begin with a brace"},
      {File("{\"a\":"), "not JSON"},
      {File("{} x"), "not JSON"},
      {one(Tensor("a", "F32", "[2]", 0, 9)), "ends at byte 9 of 8"},
      {one(Tensor("a", "F32", "[2]", 8, 0)), "no range"},
      {one(Tensor("a", "F32", "[1]", 0, 8)), "takes 4 bytes, but has 8"},
      {one(Tensor("a", "F16", "[2]", 0, 8)), "takes 4 bytes, but has 8"},
      {one(Tensor("a", "I64", "[1]", 0, 8)), "only F64, F32, F16 and BF16"},
      {one(Tensor("a", "F32", "[-2]", 0, 8)), "-2 stands in the header"},
      {one(Tensor("a", "F32", "[2.0]", 0, 8)), "2.0 stands in the header"},
      {one(Tensor("a", "F32", "[0]", 0, 8)), "is empty"},
      {one(Tensor("a", "F32", "[4294967296,4294967296]", 0, 8)), "too large to count"},
      {one(Tensor("a", "F32", "[9223372036854775809]", 0, 8)), "too large to count"},
      {one(Tensor("a", "F32", "[1,1,1,1,1,1,2]", 0, 8)), "more than 6 numbers"},
      {one(Tensor("a", "F32", "[[2]]", 0, 8)), "a list stands"},
      {one(Tensor("a", "F32", "{}", 0, 8)), "an object stands"},
      {one(sound + "," + sound), "is there twice"},
      {one(R"("a":{"dtype":"F32","dtype":"F16","shape":[2],"data_offsets":[0,8]})"), "two types"},
      {one(R"("a":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]})"), "there twice"},
      {one(R"("a":{"dtype":"F32","shape":[2]})"), "lacks dtype"},
      {one(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0]})"), "no range"},
      {one(R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1})"), "1 stands"},
      {one(R"("a":null)"), "null stands"},
      {one(R"("__metadata__":{"a":1})"), "1 stands"},
      {one(R"("__metadata__":{},"__metadata__":{},)" + sound), "there twice"},
      {one(Tensor("a", "F32", "[1]", 0, 4)), "the last 4 bytes belong to no tensor"},
      {one(Tensor("a", "F32", "[1]", 4, 8)), "bytes 0 to 4"},
      {one(Tensor("a", "F32", "[1]", 0, 4) + "," + Tensor("b", "F32", "[2]", 0, 8)), "overlaps"},
      {one(Tensor("a", "F32", "[2]", 0, 8) + "," + Tensor("b", "F16", "[2]", 2, 6)), "overlaps"},
      {File("{}", 8), "the last 8 bytes"},
  };
  for (const auto& [file, part] : cases) {
    EXPECT_NE(Complaint(file).find(part), std::string::npos)
        << "\"" << Complaint(file) << "\" about " << Printable(file, 120) << " lacks " << part;
  }
}

// A header is bytes like any others: none may crash, hang or be taken for another file.
TEST(SafetensorsHeader, EveryByteOfASoundOneMayBeDamaged) {
  const std::string file = File(
      "{" + Tensor("a", "F32", "[2]", 0, 8) + "," + Tensor("b", "F16", "[1]", 8, 10) + "}", 10);
  ASSERT_EQ(Complaint(file), "");
  for (size_t at = 0; at < file.size() - 10; ++at) {
    for (const int change : {1, 2, 16, 128, 255}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      Complaint(damaged);
    }
    Complaint(file.substr(0, at));
  }
}

class Safetensors : public ScratchTest {
 protected:
  TensorSource::Types types_ = {{"half", {DType::kF32, {3}}},
                                {"matrix", {DType::kF32, {2, 2}}},
                                {"scalar", {DType::kF32, Shape{}}}};
  std::map<std::string, std::vector<float>> values_ = {
      {"half", {0.1f, -2, 3e38f}}, {"matrix", {1, 2, 3, 1e-40f}}, {"scalar", {7}}};

  void Save(const SafetensorsOptions& options) {
    SafetensorsWriter writer(scratch_, types_, options);
    for (const std::string& name : writer.order()) writer.Write(name, values_.at(name));
    writer.Finish();
  }
  std::vector<float> Read(const std::string& name) {
    SafetensorsSource source(scratch_);
    std::vector<float> values(values_.at(name).size());
    source.Read(name, values);
    return values;
  }
};

TEST_F(Safetensors, FloatsComeBackToTheBit) {
  Save({});
  EXPECT_FALSE(Exists(scratch_ / kSafetensorsIndex));
  EXPECT_EQ(SafetensorsSource(scratch_).tensors(), types_);
  for (const auto& [name, values] : values_) EXPECT_EQ(Read(name), values) << name;
}

TEST_F(Safetensors, SeveralFilesAndTheirIndex) {
  Save({.file_bytes = 12});
  EXPECT_TRUE(Exists(scratch_ / "model-00002-of-00003.safetensors"));
  EXPECT_EQ(SafetensorsSource(scratch_).tensors(), types_);
  for (const auto& [name, values] : values_) EXPECT_EQ(Read(name), values) << name;
}

// As where transformers has saved a model in several files, and later in one.
TEST_F(Safetensors, AnIndexBesideTheOneFileIsNotRead) {
  Save({.file_bytes = 12});
  values_.at("scalar") = {8};
  Save({});
  for (int part = 1; part <= 3; ++part) {
    EXPECT_EQ(Read("scalar"), std::vector<float>{8});
    RemoveAll(scratch_ / fmt::format("model-0000{}-of-00003.safetensors", part));
  }
  EXPECT_EQ(Read("scalar"), std::vector<float>{8});
}

TEST_F(Safetensors, BFloat16IsRoundedToTheNearest) {
  Save({.type = SafetensorsType::kBF16});
  EXPECT_EQ(Read("half"), (std::vector<float>{0.10009765625f, -2, std::ldexp(226.0f, 120)}));
}

TEST_F(Safetensors, HalvesAreExact) {
  const std::vector<uint16_t> halves = {0x0001, 0x03ff, 0x0400, 0x3c00, 0xc000, 0x7bff, 0x8000};
  std::string file = File("{" + Tensor("half", "F16", "[7]", 0, 14) + "}");
  file.append(reinterpret_cast<const char*>(halves.data()), 14);
  ReplaceFileDurably(scratch_ / kSafetensorsFile, file);
  SafetensorsSource source(scratch_);
  std::vector<float> values(7);
  source.Read("half", values);
  EXPECT_EQ(values, (std::vector<float>{std::ldexp(1.0f, -24), std::ldexp(1023.0f, -24),
                                        std::ldexp(1.0f, -14), 1, -2, 65504, -0.0f}));
}

TEST_F(Safetensors, AnIndexThatLies) {
  Save({.file_bytes = 12});
  const Path index = scratch_ / kSafetensorsIndex;
  const std::string sound = ReadWholeFile(index);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = sound;
    text.replace(text.find(from), from.size(), to);
    ReplaceFileDurably(index, text);
    try {
      SafetensorsSource source(scratch_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kCheckpoint) << error.what();
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(with("half", "half"), "");
  EXPECT_NE(with("\"half\"", "\"other\"").find("does not hold the tensors"), std::string::npos);
  EXPECT_NE(with("model-00001-of", "../model-00001-of").find("only files beside it"),
            std::string::npos);
  EXPECT_NE(with("weight_map", "weights").find("is not an index"), std::string::npos);
  EXPECT_NE(with("model-00001-of-00003", "model-00009-of-00003")
                .find("names model-00009-of-00003.safetensors, which is not there"),
            std::string::npos);
}

// As where some files of a download are missing.
TEST_F(Safetensors, FilesWithoutTheirIndex) {
  Save({.file_bytes = 12});
  RemoveAll(scratch_ / kSafetensorsIndex);
  const auto complaint = [&] {
    return ErrorOf([&] { SafetensorsSource source(scratch_); }, ExitCode::kCheckpoint);
  };
  EXPECT_NE(complaint().find("has model-00001-of-00003.safetensors, but neither"),
            std::string::npos);
  for (const Path& file : ListDirectory(scratch_)) RemoveAll(file);
  ReplaceFileDurably(scratch_ / "pytorch_model.bin", "a program");
  EXPECT_NE(complaint().find("save the model again with safe_serialization=True"),
            std::string::npos);
}

}  // namespace
}  // namespace syntra
