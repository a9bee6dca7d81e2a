// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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
  EXPECT_EQ(Syntra("manual confg").code, 2);
  const Outcome written = RunShell("\"$syntra\" manual --write $0.pages && ls $0.pages");
  EXPECT_TRUE(Has(written.out, "syntra-pretrain.1\n")) << written.err;
  EXPECT_TRUE(Has(written.out, "syntra.1\n")) << written.out;
}

// Where the README's list of variables and the manual's differ, one of them is old.
TEST(Manual, HasTheVariablesOfTheReadme) {
  const std::string readme = ReadWholeFile(SYNTRA_SOURCE_DIR "/README.md");
  const std::string page = Syntra("manual config").out;
  const size_t begin = page.find(".SH ENVIRONMENT"), end = page.find(".SH SEE ALSO");
  ASSERT_LT(begin, end);
  int variables = 0;
  for (const std::string& line : Split(page.substr(begin, end - begin), '\n')) {
    if (!line.starts_with(".B ")) continue;
    ++variables;
    EXPECT_TRUE(Has(readme, "| `" + line.substr(3) + "` |")) << line;
  }
  EXPECT_EQ(variables, 5);
}

}  // namespace
}  // namespace syntra
