// SPDX-License-Identifier: Apache-2.0
// The style rules that a program can check: dependencies between folders (the table of
// src/README.md), one row per op, kernel, mixer and metric, file lengths, names,
// format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <ranges>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/style/source_tree.h"

namespace syntra {
namespace {

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

// Each definition has its row. (That each row has its definition, the linker checks.)
void CheckRows(const fs::path& def, const std::string& macro, const fs::path& folder,
               const std::string& prefix) {
  const std::vector<std::string> rows = Rows(def, macro);
  EXPECT_FALSE(rows.empty()) << def;
  EXPECT_TRUE(std::ranges::is_sorted(rows)) << def;
  EXPECT_EQ(std::set<std::string>(rows.begin(), rows.end()).size(), rows.size()) << def;
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

// The same, and each row has a file named after it or its op that defines it.
void CheckFiles(const fs::path& def, const std::string& macro, const fs::path& folder,
                const std::string& prefix) {
  CheckRows(def, macro, folder, prefix);
  for (const std::string& name : Rows(def, macro)) {
    const fs::path file = Root() / folder / (WithoutGrad(name) + ".cc");
    EXPECT_NE(Read(file).find(prefix + name + '('), std::string::npos)
        << file << " does not define " << prefix << name;
  }
}

TEST(Rows, EveryOpHasItsFile) {
  CheckFiles("kernels/ops.def", "SYNTRA_OP", "kernels/ops", "op_");
  CheckRows("kernels/ops.def", "SYNTRA_OP", "kernels/cpu", "cpu_");
}

TEST(Rows, EveryCudaKernelHasItsOp) {
  const std::string macro = "SYNTRA_CUDA_(?:KERNEL|PRODUCT|MULTI_TENSOR)";
  CheckRows("kernels/cuda.def", macro, "kernels/cuda", "cuda_");
  const std::vector<std::string> ops = Rows("kernels/ops.def", "SYNTRA_OP");
  for (const std::string& kernel : Rows("kernels/cuda.def", macro)) {
    EXPECT_TRUE(std::ranges::binary_search(ops, kernel)) << kernel << " is a kernel of no op";
  }
}

TEST(Rows, EveryMixerHasItsFile) {
  CheckFiles("src/mixers/mixers.def", "SYNTRA_MIXER", "src/mixers", "mixer_");
}

TEST(Rows, EveryScoreTermHasItsFile) {
  CheckFiles("src/mixers/terms.def", "SYNTRA_SCORE_TERM", "src/mixers/terms", "term_");
}

TEST(Rows, EveryMetricHasItsFile) {
  CheckFiles("src/metrics/metrics.def", "SYNTRA_METRIC", "src/metrics", "metric_");
}

TEST(Rows, EveryTaskHasItsFile) {
  CheckFiles("src/tasks/tasks.def", "SYNTRA_TASK", "src/tasks", "task_");
}

TEST(Rows, EveryDecodingStrategyHasItsFile) {
  CheckFiles("src/decode/strategies.def", "SYNTRA_STRATEGY", "src/decode", "strategy_");
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

// A CMakeLists.txt in the file's folder or above it names the file or all of its folder, or makes a
// library that has all of the folder; otherwise a test that a merge has dropped from the build
// would pass unseen.
TEST(Files, AreBuilt) {
  static const std::regex library_of_all(R"(syntra_library\((?![^)]*\bSOURCES\b))");
  const auto named_by = [](const fs::path& folder, const fs::path& file) {
    const std::string text = Read(Root() / folder / "CMakeLists.txt");
    const fs::path name = folder.empty() ? file : fs::relative(file, folder);
    if (name == name.filename() && name.extension() == ".cc" && !folder.empty() &&
        std::regex_search(text, library_of_all)) {
      return true;
    }
    std::stringstream words(text);
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

// Whether the names in a page tell of a file: `name`, `name.h`, `name.{h,cc}`, or a pattern that
// its name ends like: `*_name`.
bool IsTold(const std::string& stem, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const std::string told = name.substr(0, name.find('.'));
    return told.starts_with('*') ? stem.ends_with(told.substr(1)) : stem == told;
  });
}

// A page with a table of files leaves none of its folder out.
TEST(Readme, TablesOfFilesNameThemAll) {
  static const std::regex table(R"(\| (?:files?|place) \|.*)");
  size_t tables = 0;
  for (const fs::path& page : Files()) {
    if (page.filename() != "README.md") continue;
    bool has_table = false;
    std::vector<std::string> names;
    for (const std::string& line : Lines(Root() / page)) {
      has_table |= std::regex_match(line, table);
      std::ranges::copy(Quoted(line), std::back_inserter(names));
    }
    if (!has_table) continue;
    ++tables;
    for (const fs::path& path : Files()) {
      if (path.parent_path() != page.parent_path() || !IsCode(path)) continue;
      EXPECT_TRUE(IsTold(path.stem().string(), names)) << page << " does not name " << path;
    }
  }
  EXPECT_GE(tables, 15u);
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
  static const std::regex type(
      R"(^(?:struct|class|enum class|enum|using) (\w+)(?: final)? *[:={].*)");
  static const std::regex other(
      R"(^(?:\[\[\w+\]\] )?(?!return|namespace|template|TEST|class |struct |union |enum )\w[\w:<>,&* ]*[ *&](\w+)(?:[({=;\[]| [{=]).*)");
  std::smatch match;
  if (std::regex_match(line, match, type) || std::regex_match(line, match, other)) return match[1];
  return "";
}

using HeadersByName = std::map<std::string, std::set<fs::path>>;

HeadersByName DeclaredNames() {
  HeadersByName headers;
  for (const fs::path& path : Files()) {
    if (path.extension() != ".h") continue;
    for (const std::string& line : Lines(Root() / path)) headers[DeclaredName(line)].insert(path);
  }
  headers.erase("");
  return headers;
}

// Returns how many local names the folder's files have.
int ExpectNoNameOf(const HeadersByName& headers, const std::string& folder,
                   const std::function<bool(const fs::path&)>& may_include) {
  int local_names = 0;
  for (const fs::path& path : CodeBelow(folder)) {
    bool local = false;
    for (const std::string& line : Lines(Root() / path)) {
      if (line == "namespace {") local = true;
      if (line == "}  // namespace") local = false;
      const std::string name = local ? DeclaredName(line) : "";
      if (name.empty()) continue;
      ++local_names;
      const auto found = headers.find(name);
      if (found == headers.end()) continue;
      for (const fs::path& header : found->second) {
        if (may_include(header)) {
          ADD_FAILURE() << path << ": " << name << " is a name in " << header;
        }
      }
    }
  }
  return local_names;
}

// Where several files are compiled as one, a local name that a header of theirs has too hides that
// in all of them, without a word from the compiler. Tests may include what they like: there only
// the headers of their own folder are looked at.
TEST(Names, DifferWhereFilesAreCompiledTogether) {
  const std::map<std::string, Folder> folders = Arrows();
  const HeadersByName headers = DeclaredNames();
  for (const char* name : {"Error", "Fail", "kManifestName"}) ASSERT_TRUE(headers.contains(name));
  int local_names = 0;
  for (const fs::path& list : Files()) {
    if (list.filename() != "CMakeLists.txt") continue;
    const std::string text = Read(Root() / list), folder = list.parent_path().string();
    if (folder.starts_with("tests/")) {
      local_names += ExpectNoNameOf(
          headers, folder, [&](const fs::path& header) { return header.parent_path() == folder; });
    } else if (text.find("syntra_library(") != std::string::npos &&
               folders.contains(ShortName(folder)) && text.find(" APART\n") == std::string::npos) {
      const std::set<std::string>& may_use = folders.at(ShortName(folder)).may_use;
      local_names += ExpectNoNameOf(headers, folder, [&](const fs::path& header) {
        const std::string of = header.parent_path().string();
        return of == folder ||
               (may_use.contains(ShortName(of)) && folders.at(ShortName(of)).path == of);
      });
    }
  }
  EXPECT_GT(local_names, 1000);
}

// The type that a line defines at a file's outermost level, or nothing: a declaration ends with a
// semicolon, and the name of a specialisation goes on with its arguments.
std::string DefinedType(const std::string& line) {
  static const std::regex type(
      R"(^(?:struct|class|union|enum|enum class) (?:alignas\(.*\) )?(\w+)(?: final)?(?: :.*|:.*| \{.*)?$)");
  static const std::regex alias(R"(^using (\w+) =.*)");
  std::smatch match;
  if (std::regex_match(line, match, alias)) return match[1];
  const bool declared = line.ends_with(';') && line.find('{') == std::string::npos;
  return !declared && std::regex_match(line, match, type) ? match[1].str() : "";
}

// A program may be linked from any of them, and one name for two types is then undefined behaviour
// of which no linker says a word; a function with the name of a type hides that type in every file
// that includes both. A header that is compiled for each set of instructions defines its types in a
// namespace for each.
TEST(Names, OfTypesDifferInAllHeaders) {
  static const std::regex opened(R"(^namespace ([\w:]+) \{$)"), closed(R"(^\}  // namespace .*)");
  std::map<std::string, fs::path> types, others;
  for (const fs::path& path : Files()) {
    if (path.extension() != ".h" || path.string().starts_with("tests/")) continue;
    std::vector<std::string> namespaces;
    for (const std::string& line : Lines(Root() / path)) {
      std::smatch match;
      if (std::regex_match(line, match, opened)) namespaces.push_back(match[1].str() + "::");
      if (std::regex_match(line, closed) && !namespaces.empty()) namespaces.pop_back();
      const bool is_type = !DefinedType(line).empty();
      std::string name = is_type ? DefinedType(line) : DeclaredName(line);
      if (name.empty()) continue;
      for (const std::string& outer : namespaces | std::views::reverse) name.insert(0, outer);
      const auto [other, is_new] = (is_type ? types : others).emplace(name, path);
      EXPECT_TRUE(!is_type || is_new || other->second == path)
          << name << " is a type of " << other->second << " and of " << path;
    }
  }
  for (const auto& [name, path] : others) {
    const auto type = types.find(name);
    EXPECT_TRUE(type == types.end()) << name << " of " << path << " is a type of " << type->second;
  }
  for (const char* name : {"syntra::Error", "syntra::attention::Workspace"}) {
    EXPECT_TRUE(types.contains(name)) << name;
  }
  EXPECT_TRUE(others.contains("syntra::Fail"));
  EXPECT_GT(types.size(), 400u);
}

// tests/fuzz/run compiles with that of Debian 12. It cannot read the class that these return.
TEST(Algorithms, AreThoseThatClang14CanCompile) {
  ExpectNowhere(std::regex(R"(\branges::(?:(?:stable_)?partition|remove|remove_if|rotate|unique|)"
                           R"(search|search_n|find_end|equal_range|subrange)\b)"),
                "an algorithm that Clang 14 cannot compile with GCC 12's library");
}

// Otherwise the shell reads the parentheses and quotes of a path.
TEST(Commands, AreQuotedByCMake) {
  static const std::regex command(R"(\badd_custom_(?:command|target)\([^)]*\bCOMMAND\b[^)]*\))");
  int found = 0;
  for (const fs::path& path : Files()) {
    if (path.filename() != "CMakeLists.txt" && path.extension() != ".cmake") continue;
    const std::string text = Read(Root() / path);
    for (std::sregex_iterator it(text.begin(), text.end(), command), end; it != end; ++it) {
      EXPECT_NE(it->str().find("VERBATIM"), std::string::npos) << path << ": " << it->str();
      ++found;
    }
  }
  EXPECT_GE(found, 3);
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
  const auto [version, installed] = Shell("clang-format --version");
  if (!installed) GTEST_SKIP() << "clang-format is not installed";
  // That of Debian 12. Others leave some lines otherwise.
  if (version.find("version 14.") == version.npos) GTEST_SKIP() << "this is not clang-format 14";
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
