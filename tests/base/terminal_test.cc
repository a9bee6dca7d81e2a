// SPDX-License-Identifier: Apache-2.0
#include "base/terminal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/log.h"
#include "base/output.h"

namespace syntra {
namespace {

TEST(Terminal, ColorIsAsked) {
  // A pipe, and so no terminal.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  unsetenv("NO_COLOR");
  unsetenv("CLICOLOR_FORCE");
  EXPECT_FALSE(IsTerminal(ends[1]));
  EXPECT_FALSE(WantsColor(ends[1]));
  setenv("CLICOLOR_FORCE", "1", 1);
  EXPECT_TRUE(WantsColor(ends[1]));
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(WantsColor(ends[1]));
  unsetenv("NO_COLOR");
  setenv("CLICOLOR_FORCE", "0", 1);
  EXPECT_FALSE(WantsColor(ends[1]));
  EXPECT_EQ(TerminalColumns(ends[1]), 80);
  close(ends[0]);
  close(ends[1]);
}

TEST(Terminal, TheFirstLocaleThatIsSetDecides) {
  const auto utf8 = [](const char* all, const char* type, const char* lang) {
    setenv("LC_ALL", all, 1);
    setenv("LC_CTYPE", type, 1);
    setenv("LANG", lang, 1);
    return LocaleIsUtf8();
  };
  EXPECT_TRUE(utf8("", "", "en_US.UTF-8"));
  EXPECT_TRUE(utf8("", "C.utf8", "C"));
  EXPECT_TRUE(utf8("de_DE.UTF-8@euro", "", ""));
  EXPECT_FALSE(utf8("C", "en_US.UTF-8", "en_US.UTF-8"));
  EXPECT_FALSE(utf8("", "", "de_DE.ISO-8859-1"));
  EXPECT_FALSE(utf8("", "", ""));
}

TEST(StatusLine, WhatIsLoggedStandsAboveIt) {
  const auto logger = Log().clone("syntra");
  logger->set_pattern("%l %v");
  testing::internal::CaptureStderr();
  logger->info("before");
  StderrLine().Show("ETA 23m");
  logger->info("saved");
  StderrLine().Show("ETA 22m");
  StderrLine().Finish();
  StderrLine().Finish();
  logger->info("after");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "info before\n\r\033[KETA 23m\r\033[Kinfo saved\nETA 23m\r\033[KETA 22m\ninfo after\n");
}

// On a line of its own, once, whoever prints next.
TEST(StatusLine, ErrorsStandBelowIt) {
  const auto logger = Log().clone("syntra");
  logger->set_pattern("%l %v");
  testing::internal::CaptureStderr();
  PrintError("a");
  StderrLine().Show("ETA 23m");
  PrintError("b");
  PrintNote("c");
  StderrLine().Show("ETA 22m");
  PrintError("d");
  logger->info("e");
  PrintError("f");
  StderrLine().Finish();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "error: a\n\r\033[KETA 23m\nerror: b\nc\n\r\033[KETA 22m\nerror: d\n"
            "\r\033[Kinfo e\nETA 22m\nerror: f\n");
}

// A thread that hangs while it draws keeps nobody from telling so.
TEST(StatusLine, PrintingBelowTakesNoLock) {
  std::string screen;
  StatusLine* drawing = nullptr;
  StatusLine line([&](std::string_view text) {
    screen += text;
    // While Show holds the lock.
    if (text.ends_with("ETA 1s")) drawing->PrintBelow("rank 0 hangs\n");
  });
  drawing = &line;
  line.Show("ETA 1s");
  EXPECT_EQ(screen, "\r\033[KETA 1s\nrank 0 hangs\n");
}

}  // namespace
}  // namespace syntra
