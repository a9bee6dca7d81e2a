// SPDX-License-Identifier: Apache-2.0
// The style rules that a program can check: dependencies between folders (the table of
// src/README.md), one row and one file per op, kernel, mixer and metric, file lengths, names,
// format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace syntra {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLicense = "// SPDX-License-Identifier: Apache-2.0\n";

const fs::path& Root() {
  static const fs::path root = SYNTRA_SOURCE_DIR;
  return root;
}

std::string Read(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Lines(const fs::path& path) {
  std::stringstream text(Read(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

bool IsSource(const fs::path& path) {
  return path.extension() == ".cc" || path.extension() == ".cu";
}
bool IsCode(const fs::path& path) { return IsSource(path) || path.extension() == ".h"; }

// Files of the tree, relative to its root; nothing hidden, nothing built.
const std::vector<fs::path>& Files() {
  static const std::vector<fs::path> files = [] {
    std::vector<fs::path> found;
    for (auto entry = fs::recursive_directory_iterator(Root());
         entry != fs::recursive_directory_iterator(); ++entry) {
      const std::string name = entry->path().filename().string();
      // Folders of builds, some of which have only begun.
      const bool built =
          entry->is_directory() && (fs::exists(entry->path() / "CMakeCache.txt") ||
                                    (entry.depth() == 0 && name.starts_with("build")));
      if (name.starts_with(".") || built) {
        entry.disable_recursion_pending();
        continue;
      }
      if (entry->is_regular_file()) found.push_back(fs::relative(entry->path(), Root()));
    }
    std::ranges::sort(found);
    return found;
  }();
  return files;
}

std::vector<fs::path> CodeBelow(const std::string& folder) {
  std::vector<fs::path> found;
  for (const fs::path& path : Files()) {
    if (IsCode(path) && path.string().starts_with(folder + "/")) found.push_back(path);
  }
  return found;
}

// Names between backquotes in one cell of a table: "`src/nn`, `src/optim`".
std::vector<std::string> Quoted(const std::string& cell) {
  std::vector<std::string> names;
  static const std::regex quoted("`([^`]+)`");
  for (std::sregex_iterator it(cell.begin(), cell.end(), quoted), end; it != end; ++it) {
    names.push_back((*it)[1]);
  }
  return names;
}

// "src/nn" is spoken of as "nn", "configs/schema" as "schema".
std::string ShortName(const std::string& folder) { return fs::path(folder).filename().string(); }

struct Folder {
  std::string path;
  int layer = 0;
  std::set<std::string> may_use;  // short names
};

// The table of src/README.md by short name, what may be used of the used ones included.
std::map<std::string, Folder> Arrows() {
  std::map<std::string, Folder> folders;
  std::map<std::string, std::string> uses;
  static const std::regex row(R"(\| (\d+) \| ([^|]+) \| ([^|]+) \|.*)");
  for (const std::string& line : Lines(Root() / "src/README.md")) {
    std::smatch cells;
    if (!std::regex_match(line, cells, row)) continue;
    for (const std::string& path : Quoted(cells[2])) {
      folders[ShortName(path)] = {path, std::stoi(cells[1]), {}};
      uses[ShortName(path)] = cells[3];
    }
  }
  static const std::regex word(R"(\w+)"), aside(R"(\((\w+): \+ (\w+)\))");
  for (auto& [name, folder] : folders) {
    std::string text = uses[name];
    std::smatch extra;
    if (std::regex_search(text, extra, aside)) {
      if (extra[1] == name) folder.may_use.insert(extra[2]);
      text = extra.prefix();
    }
    for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) {
      for (const auto& [other, below] : folders) {
        const bool all_below = it->str() == "everything" && below.layer < folder.layer;
        if (all_below || it->str() == other) folder.may_use.insert(other);
      }
    }
  }
  for (size_t pass = 0; pass < folders.size(); ++pass) {
    for (auto& [name, folder] : folders) {
      for (const std::string& used : std::set<std::string>(folder.may_use)) {
        const std::set<std::string>& more = folders.at(used).may_use;
        folder.may_use.insert(more.begin(), more.end());
      }
    }
  }
  return folders;
}

TEST(Arrows, TheTableNamesEveryFolderOnceAndPointsDown) {
  const std::map<std::string, Folder> folders = Arrows();
  EXPECT_GE(folders.size(), 16u);
  for (const auto& [name, folder] : folders) {
    EXPECT_TRUE(fs::is_directory(Root() / folder.path)) << folder.path;
    for (const std::string& used : folder.may_use) {
      EXPECT_LT(folders.at(used).layer, folder.layer) << name << " uses " << used;
    }
  }
  for (const auto& entry : fs::directory_iterator(Root() / "src")) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(folders.contains(entry.path().filename().string()))
        << entry.path() << " is not in the table of src/README.md";
  }
}

TEST(Arrows, EveryIncludeFollowsTheTable) {
  const std::map<std::string, Folder> folders = Arrows();
  static const std::regex include(R"(\s*#\s*include\s+"([^"]+)\".*)");
  for (const auto& [name, folder] : folders) {
    for (const fs::path& path : CodeBelow(folder.path)) {
      for (const std::string& line : Lines(Root() / path)) {
        std::smatch match;
        if (!std::regex_match(line, match, include)) continue;
        const std::string target = match[1];
        const std::string first = target.substr(0, target.find('/'));
        const std::string used = target.starts_with("configs/schema/") ? "schema" : first;
        if (used == target || used == name) continue;
        EXPECT_NE(used, "tests") << path << ": " << line;
        if (!folders.contains(used)) continue;  // a library's header
        EXPECT_TRUE(folder.may_use.contains(used))
            << path << " includes " << target << ", which " << name << " may not use";
      }
    }
  }
}

// Names in the rows of a .def file.
std::vector<std::string> Rows(const fs::path& path, const std::string& macro) {
  std::vector<std::string> names;
  const std::regex row(macro + R"(\((\w+)\))");
  for (const std::string& line : Lines(Root() / path)) {
    std::smatch match;
    if (std::regex_match(line, match, row)) names.push_back(match[1]);
  }
  return names;
}

std::string WithoutGrad(const std::string& op) {
  return op.ends_with("_grad") ? op.substr(0, op.size() - 5) : op;
}

// The source named after a row or its op.
fs::path SourceOf(const fs::path& folder, const std::string& name) {
  for (const std::string& stem : {name, WithoutGrad(name)}) {
    for (const char* extension : {".cc", ".cu"}) {
      if (fs::exists(folder / (stem + extension))) return folder / (stem + extension);
    }
  }
  return folder / name;
}

// Each row has a file named after it or its op that defines it; each definition has its row.
void CheckRows(const fs::path& def, const std::string& macro, const fs::path& folder,
               const std::string& prefix) {
  const std::vector<std::string> rows = Rows(def, macro);
  EXPECT_FALSE(rows.empty()) << def;
  EXPECT_TRUE(std::ranges::is_sorted(rows)) << def;
  EXPECT_EQ(std::set<std::string>(rows.begin(), rows.end()).size(), rows.size()) << def;
  for (const std::string& name : rows) {
    const fs::path file = SourceOf(Root() / folder, name);
    EXPECT_NE(Read(file).find(prefix + name + '('), std::string::npos)
        << file << " does not define " << prefix << name;
  }
  const std::regex definition(
      R"(\n(?:Op|TermKind|std::optional<BoundKernel>|std::unique_ptr<(?:TokenMixer|Strategy|Task)>|Metric) )" +
      prefix + R"((\w+)\()");
  for (const auto& entry : fs::directory_iterator(Root() / folder)) {
    if (!IsSource(entry.path())) continue;
    const std::string text = Read(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), definition), end; it != end; ++it) {
      EXPECT_TRUE(std::ranges::binary_search(rows, (*it)[1].str()))
          << entry.path() << " defines " << (*it)[1] << ", which has no row in " << def;
    }
  }
}

TEST(Rows, EveryOpHasItsFile) { CheckRows("kernels/ops.def", "SYNTRA_OP", "kernels/ops", "op_"); }

void CheckKernels(const fs::path& def, const std::string& macro, const fs::path& folder,
                  const std::string& prefix) {
  CheckRows(def, macro, folder, prefix);
  const std::vector<std::string> ops = Rows("kernels/ops.def", "SYNTRA_OP");
  for (const std::string& kernel : Rows(def, macro)) {
    EXPECT_TRUE(std::ranges::binary_search(ops, kernel)) << kernel << " is a kernel of no op";
  }
}

TEST(Rows, EveryCpuKernelHasItsFile) {
  CheckKernels("kernels/cpu.def", "SYNTRA_CPU_KERNEL", "kernels/cpu", "cpu_");
}

TEST(Rows, EveryCudaKernelHasItsFile) {
  CheckKernels("kernels/cuda.def", "SYNTRA_CUDA_(?:KERNEL|PRODUCT|MULTI_TENSOR)", "kernels/cuda",
               "cuda_");
}

TEST(Rows, EveryMixerHasItsFile) {
  CheckRows("src/mixers/mixers.def", "SYNTRA_MIXER", "src/mixers", "mixer_");
}

TEST(Rows, EveryScoreTermHasItsFile) {
  CheckRows("src/mixers/terms.def", "SYNTRA_SCORE_TERM", "src/mixers/terms", "term_");
}

TEST(Rows, EveryMetricHasItsFile) {
  CheckRows("src/metrics/metrics.def", "SYNTRA_METRIC", "src/metrics", "metric_");
}

TEST(Rows, EveryTaskHasItsFile) {
  CheckRows("src/tasks/tasks.def", "SYNTRA_TASK", "src/tasks", "task_");
}

TEST(Rows, EveryDecodingStrategyHasItsFile) {
  CheckRows("src/decode/strategies.def", "SYNTRA_STRATEGY", "src/decode", "strategy_");
}

// The comment at the head of an op's file is its contract.
TEST(Rows, EveryOpIsDocumented) {
  for (const std::string& op : Rows("kernels/ops.def", "SYNTRA_OP")) {
    const fs::path file = "kernels/ops/" + WithoutGrad(op) + ".cc";
    const std::string text = Read(Root() / file);
    EXPECT_TRUE(text.starts_with(std::string(kLicense) + "// ")) << file;
  }
}

TEST(Sizes, FilesStayShort) {
  for (const fs::path& path : Files()) {
    if (!IsCode(path)) continue;
    const bool kernels =
        path.string().starts_with("kernels/") || path.string().starts_with("tests/kernels/");
    EXPECT_LE(Lines(Root() / path).size(), kernels ? 700u : 500u) << path;
  }
}

TEST(Sizes, TheProgramStaysSmall) {
  size_t lines = 0;
  for (const fs::path& path : CodeBelow("src/program")) lines += Lines(Root() / path).size();
  EXPECT_LE(lines, 2100u);
}

TEST(Files, StartWithLicenseAndWhatTheyAre) {
  for (const fs::path& path : Files()) {
    if (!IsCode(path)) continue;
    const std::string text = Read(Root() / path);
    EXPECT_TRUE(text.starts_with(kLicense)) << path;
    if (path.extension() == ".h") {
      EXPECT_TRUE(text.starts_with(std::string(kLicense) + "// ")) << path;
    }
  }
}

// Characters, not bytes. A row of a table cannot be broken.
TEST(Pages, HaveLinesThatFit) {
  for (const fs::path& path : Files()) {
    if (path.extension() != ".md") continue;
    int number = 0;
    for (const std::string& line : Lines(Root() / path)) {
      ++number;
      if (line.starts_with("|")) continue;
      const auto width = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(width, 140) << path << ":" << number;
    }
  }
}

// A CMakeLists.txt in the file's folder or above it names the file or all of its folder; otherwise
// a test that a merge has dropped from the build would pass unseen.
TEST(Files, AreBuilt) {
  const auto named_by = [](const fs::path& folder, const fs::path& file) {
    std::stringstream words(Read(Root() / folder / "CMakeLists.txt"));
    const fs::path name = folder.empty() ? file : fs::relative(file, folder);
    for (std::string word; words >> word;) {
      word.erase(word.find_last_not_of("()") + 1);
      const fs::path all = name.parent_path() / ("*" + name.extension().string());
      if (word == name || word == all) return true;
    }
    return false;
  };
  for (const fs::path& file : Files()) {
    if (!IsSource(file)) continue;
    fs::path folder = file;
    do {
      folder = folder.parent_path();
    } while (!named_by(folder, file) && !folder.empty());
    EXPECT_FALSE(folder.empty()) << file << " is in no CMakeLists.txt";
  }
}

TEST(Readme, StandsInEveryFolder) {
  std::vector<fs::path> folders;
  for (const char* parent : {"", "src"}) {
    for (const auto& entry : fs::directory_iterator(Root() / parent)) {
      if (entry.is_directory() && fs::exists(entry.path() / "CMakeLists.txt") &&
          !fs::exists(entry.path() / "CMakeCache.txt")) {
        folders.push_back(entry.path());
      }
    }
  }
  std::string missing;
  std::ranges::sort(folders);
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder / "README.md")) {
      missing += ' ' + fs::relative(folder, Root()).string();
    }
  }
  EXPECT_EQ(missing, "") << "folders without a README.md:" << missing;
}

// Words that this file must not contain itself are put together here.
void ExpectNowhere(const std::regex& pattern, const std::string& what) {
  for (const fs::path& path : Files()) {
    if (!IsCode(path) && path.filename() != "CMakeLists.txt" && path.extension() != ".def" &&
        path.extension() != ".proto") {
      continue;
    }
    const std::vector<std::string> lines = Lines(Root() / path);
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_FALSE(std::regex_search(lines[i], pattern))
          << path.string() << ':' << i + 1 << " has " << what << ": " << lines[i];
    }
  }
}

TEST(Names, SayWhatATypeDoes) {
  ExpectNowhere(std::regex(R"(\b(class|struct|using)\s+\w*(Manager|Helper|Util)\w*)"),
                "a type name without meaning");
}

TEST(Names, OfOneGenerationOnly) {
  ExpectNowhere(
      std::regex(R"(\b(?!(?:is_new|gelu_new|cuGetProcAddress_v2)\b)\w+_(v2|new|old)\b|\blega)"
                 R"(cy)"),
      "a second generation");
  for (const fs::path& path : Files()) {
    EXPECT_FALSE(std::regex_search(path.stem().string(), std::regex("_(v2|new|old)$"))) << path;
  }
}

// The name that a line declares at a file's outermost level, or nothing.
std::string DeclaredName(const std::string& line) {
  static const std::regex type(R"(^(?:struct|class|enum class|enum|using) (\w+) *[:={].*)");
  static const std::regex other(
      R"(^(?:\[\[\w+\]\] )?(?!return|namespace|template|TEST)\w[\w:<>,&* ]*[ *&](\w+)[({=;\[ ].*)");
  std::smatch match;
  if (std::regex_match(line, match, type) || std::regex_match(line, match, other)) return match[1];
  return "";
}

// Where several files are compiled as one (syntra_library), a local name that a header has too
// would hide that in all of them, without a word from the compiler.
TEST(Names, DifferWhereFilesAreCompiledTogether) {
  std::map<std::string, fs::path> headers;
  for (const fs::path& path : Files()) {
    const std::string folder = path.parent_path().string();
    // Below kernels/ names stand in namespaces of their own.
    if (path.extension() != ".h" || folder.starts_with("tests") || folder.starts_with("kernels/")) {
      continue;
    }
    for (const std::string& line : Lines(Root() / path)) headers[DeclaredName(line)] = path;
  }
  headers.erase("");
  for (const char* name : {"Error", "Fail", "kManifestName"}) ASSERT_TRUE(headers.contains(name));
  int local_names = 0;
  for (const fs::path& list : Files()) {
    if (list.filename() != "CMakeLists.txt" ||
        Read(Root() / list).find(" TOGETHER\n") == std::string::npos) {
      continue;
    }
    for (const fs::path& path : CodeBelow(list.parent_path().string())) {
      bool local = false;
      for (const std::string& line : Lines(Root() / path)) {
        if (line == "namespace {") local = true;
        if (line == "}  // namespace") local = false;
        const std::string name = local ? DeclaredName(line) : "";
        if (name.empty()) continue;
        ++local_names;
        const auto at = headers.find(name);
        if (at == headers.end()) continue;
        ADD_FAILURE() << path << ": " << name << " is a name in " << at->second;
      }
    }
  }
  EXPECT_GT(local_names, 100);
}

TEST(Comments, PutNothingOff) {
  ExpectNowhere(std::regex(R"(\b(TO)"
                           R"(DO|FIX)"
                           R"(ME|XX)"
                           R"(X)\b)"),
                "work put off");
}

// Output of a command, and whether it succeeded.
std::pair<std::string, bool> Shell(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string output;
  char buffer[4096];
  while (size_t count = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, count);
  return {output, pclose(pipe) == 0};
}

TEST(Format, EveryFileIsAsClangFormatLeavesIt) {
  if (!Shell("clang-format --version").second) GTEST_SKIP() << "clang-format is not installed";
  std::string command = "cd '" + Root().string() + "' && clang-format --dry-run -Werror";
  for (const fs::path& path : Files()) {
    if (IsCode(path)) command += ' ' + path.string();
  }
  const auto [output, agrees] = Shell(command);
  std::set<std::string> differing;
  static const std::regex place(R"(([^:\s]+):\d+:\d+: error: )");
  for (std::sregex_iterator it(output.begin(), output.end(), place), end; it != end; ++it) {
    differing.insert((*it)[1]);
  }
  std::string list;
  for (const std::string& path : differing) list += ' ' + path;
  EXPECT_TRUE(agrees) << differing.size() << " files differ; run clang-format -i" << list;
}

}  // namespace
}  // namespace syntra
