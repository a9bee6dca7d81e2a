// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/text.h"
#include "tests/cli/shell.h"

namespace syntra {
namespace {

TEST(Manual, HasPagesOfAllCommands) {
  const Outcome page = Syntra("manual config");
  ASSERT_EQ(page.code, 0) << page.err;
  for (const char* part : {".TH syntra\\-config 1", ".SH COMMANDS\n.TP\n.B show\n",
                           ".SH OPTIONS OF syntra config show\n", ".SH EXIT STATUS", ".B 75\n",
                           ".SH ENVIRONMENT", ".B SYNTRA_WATCHDOG\n"}) {
    EXPECT_TRUE(Has(page.out, part)) << part << page.out;
  }
  // No line is taken for a command of roff by accident.
  for (const std::string& line : Split(page.out, '\n')) {
    EXPECT_FALSE(line.starts_with("'")) << line;
  }
  EXPECT_TRUE(Has(Syntra("manual config show").out, ".SH SYNOPSIS\n.B syntra config show\n"));
  EXPECT_EQ(Syntra("manual confg").code, 2);
  const Outcome wrong = Syntra("manual config shw");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(Has(wrong.err, "syntra config has no command \"shw\"; did you mean \"show\"?"))
      << wrong.err;
  const Outcome written = RunShell("\"$syntra\" manual --write $0.pages && ls $0.pages");
  EXPECT_TRUE(Has(written.out, "syntra-pretrain.1\n")) << written.err;
  EXPECT_TRUE(Has(written.out, "syntra.1\n")) << written.out;
}

// Help and manual describe an option in the same words.
TEST(Manual, NamesArgumentsRangesAndDefaults) {
  const std::string page = Syntra("manual slurm").out, help = Syntra("slurm --help").out;
  EXPECT_TRUE(Has(page, ".B syntra slurm\n[OPTIONS] [file...]\n")) << page;
  EXPECT_TRUE(Has(page, ".B \\-\\-mpi {srun,mpirun}\n")) << page;
  EXPECT_TRUE(Has(help, "--mpi {srun,mpirun} ")) << help;
  for (const std::string& text : {page, help}) {
    EXPECT_TRUE(Has(text, "Number of nodes (1 to 1000000; default 1)\n")) << text;
  }
  EXPECT_TRUE(Has(help, "the configuration gives the model's sizes (not with --init-from)\n"))
      << help;
}

using Entries = std::vector<std::pair<std::string, std::string>>;

// What a section of the manual lists, and what it says of each.
Entries EntriesOf(const std::string& section) {
  Entries entries;
  bool inside = false;
  for (std::string line : Split(Syntra("manual config").out, '\n')) {
    std::erase(line, '\\');  // as in "\-"
    if (line.starts_with(".SH ")) {
      inside = line == ".SH " + section;
    } else if (inside && line.starts_with(".B ")) {
      entries.push_back({line.substr(3), ""});
    } else if (inside && line != ".TP") {
      entries.back().second += line;
    }
  }
  return entries;
}

// The first two cells of the rows of a table of the README, as text.
Entries RowsOfReadme(const std::string& heading) {
  Entries rows;
  bool below = false;
  for (const std::string& line : Split(ReadWholeFile(SYNTRA_SOURCE_DIR "/README.md"), '\n')) {
    if (line.starts_with("## ")) below = line == "## " + heading;
    if (!below || !line.starts_with("| ")) continue;
    std::string text;
    std::ranges::remove_copy(line, std::back_inserter(text), '`');
    const std::vector<std::string> cells = Split(text, '|');
    rows.push_back({std::string(StripSpace(cells.at(1))), std::string(StripSpace(cells.at(2)))});
  }
  if (!rows.empty()) rows.erase(rows.begin());  // the table's head
  return rows;
}

TEST(Manual, HasTheExitCodesOfTheReadme) {
  EXPECT_GE(EntriesOf("EXIT STATUS").size(), 10u);
  EXPECT_EQ(EntriesOf("EXIT STATUS"), RowsOfReadme("Exit codes"));
}

// Where the README's list of variables and the manual's differ, one of them is old. What they do
// the README also says by links.
TEST(Manual, HasTheVariablesOfTheReadme) {
  const auto names = [](const Entries& entries) {
    std::vector<std::string> all;
    for (const auto& entry : entries) all.push_back(entry.first);
    return all;
  };
  EXPECT_GE(EntriesOf("ENVIRONMENT").size(), 5u);
  EXPECT_EQ(names(EntriesOf("ENVIRONMENT")), names(RowsOfReadme("Environment")));
}

}  // namespace
}  // namespace syntra
