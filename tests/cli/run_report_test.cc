// SPDX-License-Identifier: Apache-2.0
#include "cli/run_report.h"

#include <gtest/gtest.h>

namespace syntra {
namespace {

using TextLines = std::vector<std::string>;

TEST(RunReport, FieldsStandUnderOneAnother) {
  const NamedTexts fields{
      {"speed", "12 tokens/s"}, {"ranks", ""}, {"\u00fcbersetzen_en_de/bleu", "3.5"}};
  EXPECT_EQ(FieldLines(fields), (TextLines{"  speed                  12 tokens/s",
                                           "  \u00fcbersetzen_en_de/bleu  3.5"}));
}

TEST(RunReport, LongNamesLeaveRoomForValues) {
  const NamedTexts fields{
      {"speed", "12 tokens/s"}, {"\u00fcbersetzen_en_de/bleu", "3.5"}, {"\u00fcb\u00e4/em", "2.5"}};
  EXPECT_EQ(FieldLines(fields, 10), (TextLines{"  speed       12 tokens/s", "  ...de/bleu  3.5",
                                               "  \u00fcb\u00e4/em      2.5"}));
  EXPECT_EQ(FieldLines({{"speed", "12"}}, 4), TextLines{"  ...d  12"});
}

}  // namespace
}  // namespace syntra
