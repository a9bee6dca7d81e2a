// SPDX-License-Identifier: Apache-2.0
// What pages say of the tree is so: their links lead to files and headings, the tests that they
// name exist, and the exit codes, variables and messages are those of the sources.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/style/source_tree.h"

namespace syntra {
namespace {

// The rows of the tables below a page's heading, up to the next of its kind, without their heads.
std::vector<std::string> RowsBelow(const fs::path& page, const std::string& heading) {
  std::vector<std::string> rows;
  bool below = false;
  for (const std::string& line : Lines(Root() / page)) {
    if (line.starts_with("## ")) below = line == "## " + heading;
    if (!below || !line.starts_with("|")) continue;
    if (line.starts_with("|---")) {
      rows.pop_back();
    } else {
      rows.push_back(line);
    }
  }
  return rows;
}

std::string FirstCell(const std::string& row) { return row.substr(2, row.find(" |", 2) - 2); }

std::string LastCell(const std::string& row) {
  const size_t end = row.rfind(" |");
  return row.substr(row.rfind("| ", end) + 2, end - row.rfind("| ", end) - 2);
}

// "Suite.Case" of each test that a source defines.
std::set<std::string> CasesIn(const fs::path& path) {
  static const std::regex test(R"(TEST(?:_[FP])?\((\w+),\s*(\w+)\).*)");
  std::set<std::string> cases;
  const std::vector<std::string> lines = Lines(Root() / path);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    // A long one takes two lines.
    const std::string text = lines[i] + (i + 1 < lines.size() ? lines[i + 1] : "");
    if (text.starts_with("TEST") && std::regex_match(text, match, test)) {
      cases.insert(match[1].str() + "." + match[2].str());
    }
  }
  return cases;
}

// The name by which links find a heading, as GitHub makes it.
std::string AnchorOf(const std::string& heading) {
  std::string anchor;
  for (const char c : heading.substr(heading.find(' ') + 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ' ') {
      anchor += '-';
    } else if (byte >= 0x80 || std::isalnum(byte) != 0 || c == '_' || c == '-') {
      anchor += static_cast<char>(std::tolower(byte));
    }
  }
  return anchor;
}

TEST(Pages, LinkToWhatThereIs) {
  static const std::regex link(R"(\]\(([^)#\s]*)(?:#([^)\s]+))?\))");
  std::vector<fs::path> pages;
  std::ranges::copy_if(Files(), std::back_inserter(pages),
                       [](const fs::path& path) { return path.extension() == ".md"; });
  std::map<fs::path, std::set<std::string>> anchors;
  for (const fs::path& page : pages) {
    for (const std::string& line : Lines(Root() / page)) {
      if (line.starts_with("#")) anchors[page].insert(AnchorOf(line));
    }
  }
  int links = 0;
  for (const fs::path& page : pages) {
    for (const std::string& line : Lines(Root() / page)) {
      if (line.starts_with("    ")) continue;  // code
      for (std::sregex_iterator it(line.begin(), line.end(), link), end; it != end; ++it) {
        const std::string name = (*it)[1], anchor = (*it)[2];
        if (name.starts_with("http")) continue;
        ++links;
        const fs::path file = name.empty() ? page : (page.parent_path() / name).lexically_normal();
        EXPECT_TRUE(fs::exists(Root() / file)) << page << " links to " << name;
        EXPECT_TRUE(anchor.empty() || anchors[file].contains(anchor))
            << page << " links to " << name << '#' << anchor;
      }
    }
  }
  EXPECT_GT(links, 200);
}

class NamesOfTests {
 public:
  NamesOfTests() {
    for (const fs::path& path : Files()) {
      if (!path.string().starts_with("tests/")) continue;
      if (path.filename() == "CMakeLists.txt") lists_ += Read(Root() / path);
      if (IsSource(path)) all_cases_.merge(CasesIn(path));
    }
  }

  // Expects that what is named in a row exists: files below tests/, whose cases follow them;
  // programs and tests of ctest; cases, of which only the first of a suite may name that; faults.
  void Check(const std::string& row) {
    static const std::regex name(R"(`([^`]+)`|\b([A-Z]\w*\.[\w*]+)|, ([A-Z]\w+\*?)(?=[,;|]| *$))");
    const std::string cell = LastCell(row);
    row_ = FirstCell(row);
    suite_.clear();
    cases_ = all_cases_;
    for (std::sregex_iterator it(cell.begin(), cell.end(), name), end; it != end; ++it) {
      for (const size_t group : {1, 2, 3}) {
        if ((*it)[group].matched) CheckName((*it)[group]);
      }
    }
  }

  int checked() const { return checked_; }

 private:
  void CheckName(const std::string& name) {
    ++checked_;
    if (std::isupper(static_cast<unsigned char>(name[0]))) {
      CheckCase(name);
    } else if (name.find('/') != std::string::npos) {
      CheckFile(name);
    } else {
      CheckTest(name);
    }
  }

  // Below tests/, or as the tree's root sees it.
  void CheckFile(const std::string& name) {
    cases_.clear();
    suite_.clear();
    bool exists = false;
    for (const fs::path base : {"tests", ""}) {
      for (const char* extension : {"", ".cc", ".cu"}) {
        const fs::path path = base / (name + extension);
        exists |= fs::exists(Root() / path);
        if (IsSource(path)) cases_.merge(CasesIn(path));
      }
    }
    EXPECT_TRUE(exists) << row_ << ": there is no file " << name;
  }

  // "Suite.Case", "Suite.*", or "Case" alone. What follows a slash are parameters.
  void CheckCase(const std::string& name) {
    std::string wanted = name.substr(0, name.find('/'));
    const size_t dot = wanted.find('.');
    if (dot != std::string::npos) {
      suite_ = wanted.substr(0, dot);
    } else {
      wanted.insert(0, suite_ + ".");
    }
    const size_t star = wanted.find('*');
    EXPECT_TRUE(std::ranges::any_of(cases_,
                                    [&](const std::string& known) {
                                      return star != std::string::npos
                                                 ? known.starts_with(wanted.substr(0, star))
                                             : suite_.empty() ? known.ends_with(wanted)
                                                              : known == wanted;
                                    }))
        << row_ << ": there is no case " << wanted;
  }

  // Of names with a star or a number of ranks the beginning.
  void CheckTest(const std::string& name) {
    const std::string backend_test = name.starts_with("simt_") ? name.substr(5) : name;
    const std::string begin = name.substr(0, name.find_first_of(".*"));
    const bool is_program =
        std::regex_search(lists_, std::regex("(test|executable)\\((" + name + ")\\s")) ||
        lists_.find("syntra_backend_test(" + backend_test + " ") != std::string::npos;
    const bool is_test = std::regex_search(lists_, std::regex("(NAME |_test\\()" + begin + "\\b"));
    const bool is_fault = faults_.find("{\"" + name + "\", ") != std::string::npos;
    EXPECT_TRUE(is_program || is_test || is_fault) << row_ << ": there is no test " << name;
  }

  std::set<std::string> all_cases_;
  std::string lists_;  // all CMakeLists.txt
  const std::string faults_ = Read(Root() / "tests/fault/faults.cc");
  std::string row_, suite_;
  std::set<std::string> cases_;  // where those that are named next must be
  int checked_ = 0;
};

TEST(TablesOfTests, NameWhatThereIs) {
  NamesOfTests names;
  for (const auto& [page, heading] : std::vector<std::pair<std::string, std::string>>{
           {"tests/README.md", "Claims and the tests that show them"},
           {"tests/README.md", "Faults and the tests that show them"},
           {"src/train/runs.md", "What changes the numbers"}}) {
    for (const std::string& row : RowsBelow(page, heading)) names.Check(row);
  }
  EXPECT_GT(names.checked(), 250);
}

// The numbers are a promise to scripts.
TEST(TablesOfTheProgram, HaveItsExitCodes) {
  static const std::regex enumerator(R"(  k\w+ = (\d+),.*)");
  std::vector<std::string> codes, listed;
  for (const std::string& line : Lines(Root() / "src/base/error.h")) {
    std::smatch match;
    if (std::regex_match(line, match, enumerator)) codes.push_back(match[1]);
  }
  for (const std::string& row : RowsBelow("README.md", "Exit codes")) {
    listed.push_back(FirstCell(row));
  }
  EXPECT_GE(codes.size(), 10u);
  EXPECT_EQ(listed, codes);
}

TEST(TablesOfTheProgram, HaveTheVariablesThatItReads) {
  static const std::regex reading(R"rx(getenv\("(SYNTRA_\w+)"\))rx");
  std::set<std::string> read, listed;
  for (const char* folder : {"src", "kernels", "dist", "data"}) {
    for (const fs::path& path : CodeBelow(folder)) {
      const std::string text = Read(Root() / path);
      if (text.find("getenv(") == std::string::npos) continue;
      for (std::sregex_iterator it(text.begin(), text.end(), reading), end; it != end; ++it) {
        read.insert((*it)[1]);
      }
    }
  }
  EXPECT_EQ(read.erase("SYNTRA_FAILPOINT"), 1u) << "which is for tests";
  for (const std::string& row : RowsBelow("README.md", "Environment")) {
    const std::string name = Quoted(FirstCell(row)).at(0);
    if (name.starts_with("SYNTRA_")) listed.insert(name);
  }
  EXPECT_EQ(listed, read);
}

// Users search the page for what they see.
TEST(TablesOfTheProgram, QuoteItsMessages) {
  // The parts of a literal that takes several lines.
  static const std::regex between(R"rx("\s*\n\s*")rx");
  std::string sources;
  for (const fs::path& path : Files()) {
    const bool is_test = path.string().starts_with("tests/");
    if (IsCode(path) && !is_test) sources += std::regex_replace(Read(Root() / path), between, "");
  }
  int messages = 0;
  for (const char* heading : {"It does not start", "The data are refused", "Training goes wrong",
                              "It hangs, or a rank dies"}) {
    for (const std::string& row : RowsBelow("src/run/failures.md", heading)) {
      const std::string cell = FirstCell(row);
      if (!cell.starts_with('`')) continue;  // of another program
      ++messages;
      std::istringstream parts(
          std::regex_replace(Quoted(cell).at(0), std::regex(R"(\.\.\.)"), "\n"));
      for (std::string part; std::getline(parts, part);) {
        EXPECT_NE(sources.find(part), std::string::npos) << cell;
      }
    }
  }
  EXPECT_GT(messages, 15);
}

}  // namespace
}  // namespace syntra
