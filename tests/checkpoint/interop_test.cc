// SPDX-License-Identifier: Apache-2.0
// The Python reader in format.md reads the tensors that were saved.
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

#include "tests/checkpoint/process.h"
#include "tests/checkpoint/sample.h"

namespace syntra {
namespace {

std::string PythonBlock(const std::string& markdown) {
  const std::string fence = "```python\n";
  const size_t begin = markdown.find(fence) + fence.size();
  return markdown.substr(begin, markdown.find("```", begin) - begin);
}

std::string Hexadecimal(const std::vector<std::byte>& bytes, DType dtype) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    // Widened bfloat16: two zero bytes before the two stored ones.
    if (dtype == DType::kBF16 && i % 2 == 0) text += "0000";
    text += fmt::format("{:02x}", std::to_integer<int>(bytes[i]));
  }
  return text;
}

TEST(Interop, ReaderOfTheFormatDescription) {
  const Path root = ScratchInMemory("interop");
  CreateDirectories(root);
  const char* chosen = std::getenv("SYNTRA_PYTHON");
  const std::string python = chosen ? chosen : "python3";
  const Path output = root / "output";
  if (RunProcess({python, "-c", "import h5py, numpy"}, output) != 0) {
    std::filesystem::remove_all(root);
    GTEST_SKIP() << python << " cannot import h5py and numpy; set SYNTRA_PYTHON";
  }
  const Sample sample(12300);
  sample.Save(root / "checkpoints");
  const std::string program =
      PythonBlock(ReadFile(Path(SYNTRA_SOURCE_DIR) / "src/checkpoint/format.md")) +
      "\nimport sys\n"
      "manifest, tensors = read_checkpoint(sys.argv[1])\n"
      "sys.stderr.reconfigure(encoding='utf-8')\n"
      "print(manifest['step'], manifest['attributes']['data_position'], file=sys.stderr)\n"
      "for name, values in tensors.items():\n"
      "    print(name, list(values.shape), values.tobytes().hex(), file=sys.stderr)\n";
  OverwriteFile(root / "reader.py", program);
  const int status = RunProcess(
      {python, (root / "reader.py").string(), (root / "checkpoints" / StepName(12300)).string()},
      output);
  ASSERT_EQ(status, 0) << ReadFile(output);

  std::map<std::string, std::string> lines;
  for (size_t i = 0; i < sample.names.size(); ++i) {
    lines[sample.names[i]] =
        fmt::format("{} {} {}\n", sample.names[i], ToString(sample.types[i].shape),
                    Hexadecimal(sample.bytes[i], sample.types[i].dtype));
  }
  std::string expected = "12300 86100\n";
  for (const auto& [name, line] : lines) expected += line;
  EXPECT_EQ(ReadFile(output), expected);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace syntra
