// SPDX-License-Identifier: Apache-2.0
#include "run/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

namespace syntra {
namespace {

struct Screen {
  std::string text;
  StatusLine line{[this](std::string_view added) { text += added; }};
  double seconds = 1000;
  int columns = 80;

  ProgressOptions Options(bool live) {
    setenv("TZ", "UTC", 1);
    return {.steps = 65536,
            .screen = &line,
            .live = live,
            .colored = false,
            .seconds = [this] { return seconds; },
            .wall_time = [] { return std::time_t{1700000000}; },  // Tue 14 Nov 2023 22:13:20
            .columns = [this] { return columns; }};
  }
};

constexpr int kWide = 1000;
// Draws over what was there.
const std::string kErase = "\r\033[K";

StepProgress At(int64_t step) {
  return {.step = step,
          .loss = 2.713,
          .grad_norm = 0.61,
          .learning_rate = 9.02e-3,
          .slots = 41200,
          .flops = 0.374e12,
          .seconds = 1,
          .data_seconds = 0.008,
          .sync_seconds = 0.061};
}

TEST(Progress, Line) {
  Screen screen;
  ProgressOptions options = screen.Options(false);
  options.peak_flops = 1e12;
  options.log_every = 1;
  Progress progress(options);
  progress.Step(At(12300));
  // Memory is what the process uses when the line is made.
  const auto without_memory = [](const std::string& line) {
    return std::regex_replace(line, std::regex("mem [0-9.]+[MG]"), "mem X");
  };
  EXPECT_EQ(without_memory(progress.Line(kWide)),
            "ETA 14h47m (Wed 13:00)  step 12,300/65,536 18.8%  loss 2.713 (ema 2.713)  tok/s 41.2k"
            "  MFU 37.4%  |g| 0.61  lr 9.02e-03  data 0.8%  sync 6.1%  mem X");
  EXPECT_EQ(without_memory(screen.text), without_memory(progress.Line(kWide)) + "\n");
}

TEST(Progress, WhatMattersLeastGoesFirst) {
  Screen screen;
  ProgressOptions options = screen.Options(false);
  options.peak_flops = 1e12;
  Progress progress(options);
  progress.Step(At(12300));
  EXPECT_EQ(progress.Line(79),
            "ETA 14h47m  step 12,300/65,536 18.8%  loss 2.713  tok/s 41.2k  MFU 37.4%");
  EXPECT_EQ(progress.Line(50), "ETA 14h47m  step 12,300/65,536 18.8%  loss 2.713");
  EXPECT_EQ(progress.Line(49), "ETA 14h47m  step 12,300/65,536 18.8%  loss 2.713");
  EXPECT_EQ(progress.Line(20), "ETA 14h47m");
  EXPECT_EQ(progress.Line(0), "ETA 14h47m");
}

TEST(Progress, ColorTakesNoColumns) {
  Screen screen;
  ProgressOptions options = screen.Options(false);
  options.colored = true;
  Progress progress(options);
  progress.Step(At(12300));
  EXPECT_EQ(progress.Line(36), "\033[1mETA 14h47m\033[0m  step 12,300/65,536 18.8%");
}

TEST(Progress, UnknownPeakHasNoMfu) {
  Screen screen;
  Progress progress(screen.Options(false));
  progress.Step(At(1));
  EXPECT_EQ(progress.Line(kWide).find("MFU"), std::string::npos);
}

TEST(Progress, ALineAMinuteWhereThereIsNoTerminal) {
  Screen screen;
  Progress progress(screen.Options(false));
  const auto lines = [&] { return std::count(screen.text.begin(), screen.text.end(), '\n'); };
  for (int64_t step = 1; step <= 3000; ++step, screen.seconds += 0.1) progress.Step(At(step));
  EXPECT_EQ(lines(), 4);
  screen.text.clear();
  for (int64_t step = 3001; step <= 3010; ++step) {
    screen.seconds += 61;
    progress.Step(At(step));
  }
  EXPECT_EQ(lines(), 10);
  screen.text.clear();
  progress.Step(At(65536));
  EXPECT_EQ(lines(), 1);
  EXPECT_EQ(screen.text.find_first_of("\r\033"), std::string::npos);
}

// Lines of 1,000 steps that take so many seconds each.
int64_t LinesWith(int64_t log_every, double seconds) {
  Screen screen;
  ProgressOptions options = screen.Options(false);
  options.log_every = log_every;
  Progress progress(options);
  for (int64_t step = 1; step <= 1000; ++step, screen.seconds += seconds) progress.Step(At(step));
  return std::count(screen.text.begin(), screen.text.end(), '\n');
}

TEST(Progress, OrALineEveryLogEverySteps) { EXPECT_EQ(LinesWith(100, 0.01), 10); }

TEST(Progress, WithLogEveryNoOtherLines) { EXPECT_EQ(LinesWith(1000, 1), 1); }

TEST(Progress, LiveLineIsRedrawnInPlace) {
  Screen screen;
  std::optional<Progress> progress(std::in_place, screen.Options(true));
  progress->Step(At(1));
  const std::string first = progress->Line(79);
  EXPECT_EQ(screen.text, kErase + first);
  // Not faster than people can see.
  progress->Step(At(2));
  EXPECT_EQ(screen.text, kErase + first);
  screen.text.clear();
  screen.columns = 40;
  screen.seconds += 1;
  progress->Step(At(3));
  EXPECT_EQ(screen.text, kErase + progress->Line(39));
  screen.text.clear();
  // A run that fails here leaves its line whole, and the error stands below it.
  progress.reset();
  EXPECT_EQ(screen.text, "\n");
}

TEST(Progress, TheLastStepEndsTheLiveLine) {
  Screen screen;
  Progress progress(screen.Options(true));
  progress.Step(At(65536));
  EXPECT_EQ(screen.text, kErase + progress.Line(79) + "\n");
}

TEST(Progress, OtherTextStandsAboveTheLiveLine) {
  Screen screen;
  Progress progress(screen.Options(true));
  screen.line.Print("before\n");
  progress.Step(At(1));
  const std::string shown = progress.Line(79);
  screen.line.Print("06:54:56 info saved\n");
  EXPECT_EQ(screen.text, "before\n" + kErase + shown + kErase + "06:54:56 info saved\n" + shown);
}

TEST(Progress, AnEvaluationHasALineOfItsOwn) {
  Screen screen;
  Progress progress(screen.Options(false));
  progress.Evaluating("cola", 64, 1043, 2);
  EXPECT_EQ(screen.text, "");
  screen.seconds += 60;
  progress.Evaluating("cola", 512, 1043, 16);
  EXPECT_EQ(screen.text, "evaluating cola  512/1,043  32.0/s  ETA 17s\n");

  Screen live;
  live.columns = 20;
  Progress narrow(live.Options(true));
  narrow.Evaluating("cola", 512, 1043, 16);
  EXPECT_EQ(live.text, kErase + "evaluating cola ...");
  live.text.clear();
  live.seconds += 1;
  narrow.Evaluating("\u00fcbers\u00e4tzen", 512, 1043, 16);
  EXPECT_EQ(live.text, kErase + "evaluating \u00fcbers...");
}

TEST(Progress, EtaCountsEvaluationsAndSaves) {
  Screen screen;
  ProgressOptions options = screen.Options(false);
  options.steps = 1050;
  options.evaluate_every = 100;
  options.save_every = 500;
  Progress progress(options);
  EXPECT_TRUE(std::isinf(progress.SecondsLeft()));
  progress.Step(At(50));
  EXPECT_DOUBLE_EQ(progress.SecondsLeft(), 1000);
  progress.Evaluated(20);
  progress.Evaluated(40);
  EXPECT_DOUBLE_EQ(progress.SecondsLeft(), 1000 + 30 * 11);  // at 100 ... 1000 and at the end
  progress.Saved(5);
  EXPECT_DOUBLE_EQ(progress.SecondsLeft(), 1000 + 30 * 11 + 5 * 3);
  progress.Step(At(1050));
  EXPECT_DOUBLE_EQ(progress.SecondsLeft(), 0);
}

TEST(Progress, SkippedStepsDoNotSpoilTheMean) {
  Screen screen;
  Progress progress(screen.Options(false));
  progress.Step(At(1));
  StepProgress bad = At(2);
  bad.loss = NAN;
  progress.Step(bad);
  EXPECT_NE(progress.Line(kWide).find("loss nan (ema 2.713)"), std::string::npos);
}

TEST(Progress, ClockThatStandsStillOrGoesBack) {
  Screen screen;
  Progress progress(screen.Options(false));
  StepProgress step = At(1);
  step.seconds = 0;
  screen.seconds = -1e9;
  progress.Step(step);
  EXPECT_EQ(progress.TokensPerSecond(), 0);
  EXPECT_TRUE(std::isfinite(progress.SecondsLeft()));
}

TEST(Progress, FarEndShowsTheDate) {
  Screen screen;
  ProgressOptions options = screen.Options(false);
  options.steps = 10 * 86400;
  Progress progress(options);
  progress.Step(At(1));
  EXPECT_TRUE(progress.Line(kWide).starts_with("ETA 9d23h (Nov 24 22:13)")) << progress.Line(kWide);
}

}  // namespace
}  // namespace syntra
