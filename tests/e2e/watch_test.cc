// SPDX-License-Identifier: Apache-2.0
// What `watch` shows of a run.
#include <gmock/gmock.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <regex>
#include <thread>

#include "base/utf8.h"
#include "tests/e2e/recorded.h"

namespace syntra {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class Watch : public Recorded {
 protected:
  std::string Once(const std::string& name, const Arguments& environment = {}) const {
    const Outcome outcome =
        Run({"watch", "--once", Directory(name).string()}, {.environment = environment});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
};

TEST_F(Watch, OnceShowsHowTheRunStands) {
  Train("run", kShort);
  const std::string view = Once("run", {"LC_ALL=C"});
  EXPECT_THAT(view, testing::StartsWith("step 6 of 6, 100.0%  " + Directory("run").string() +
                                        "\n  done\n"));
  EXPECT_THAT(view, HasSubstr("\n  speed       "));
  EXPECT_THAT(view, HasSubstr("\n  goodput     "));
  EXPECT_THAT(view, HasSubstr("\n  ranks       1\n"));
  EXPECT_THAT(view, HasSubstr(" info goodput: "));  // the log
  EXPECT_THAT(view, HasSubstr(" |"));               // the curve's axis
  EXPECT_THAT(view, Not(HasSubstr("\033")));
  EXPECT_LE(Split(view, '\n').size(), 25u);
  // Without --once the same where nobody could type q.
  const Outcome piped = Run({"watch", Directory("run").string()}, {.environment = {"LC_ALL=C"}});
  EXPECT_EQ(piped.code, 0);
  EXPECT_EQ(Split(piped.out, '\n')[0], Split(view, '\n')[0]);
  EXPECT_THAT(Once("run", {"CLICOLOR_FORCE=1"}), HasSubstr("\033[1m"));
  EXPECT_THAT(Once("run", {"CLICOLOR_FORCE=1", "NO_COLOR=1"}), Not(HasSubstr("\033")));
  const Outcome nothing = Run({"watch", scratch_.string()});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_TRUE(nothing.Says("is not the directory of a run")) << nothing.err;
  for (const auto& [seconds, problem] :
       {std::pair{"nan", "not a decimal number"}, std::pair{"soon", "not a decimal number"},
        std::pair{"0", "not in range"}, std::pair{"3601", "not in range"}}) {
    const Outcome wrong = Run({"watch", "--every", seconds, Directory("run").string()});
    EXPECT_EQ(wrong.code, 2) << seconds;
    EXPECT_TRUE(wrong.Says(problem)) << wrong.err;
  }
}

TEST_F(Watch, AnEndThatWasNoneIsNamed) {
  const Outcome outcome = Run(Pretrain("failed", {"train.max_skipped_steps=1"}),
                              {.environment = {"SYNTRA_FAILPOINT=gradient_nan@2-4"}});
  ASSERT_EQ(outcome.code, 6);
  EXPECT_THAT(Once("failed"), HasSubstr("\n  failed: "));
  Program program(scratch_, Pretrain("killed", {"train.steps=100000"}));
  ASSERT_TRUE(WaitUntil([&] { return HasCheckpoint("killed", 5); }));
  EXPECT_THAT(Once("killed"), HasSubstr("\n  running: process " + std::to_string(program.pid())));
  program.Kill();
  EXPECT_THAT(Once("killed"), HasSubstr("not running: killed, or its machine failed"));
}

// The letters of a line of the screen, without the sequences that command it.
size_t WidthOf(const std::string& line) {
  static const std::regex kCommand("\033\\[[0-9;?]*[A-Za-z]|\r");
  return CodePointCount(std::regex_replace(line, kCommand, ""));
}

// A terminal of 20 rows on which `syntra` runs.
class Terminal {
 public:
  explicit Terminal(const Arguments& arguments, unsigned short columns = 60) {
    winsize size{.ws_row = 20, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    process_ = forkpty(&descriptor_, nullptr, nullptr, &size);
    if (process_ != 0) return;
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    std::vector<const char*> words{SYNTRA_BINARY};
    for (const std::string& argument : arguments) words.push_back(argument.c_str());
    words.push_back(nullptr);
    execv(words[0], const_cast<char* const*>(words.data()));
    _exit(127);
  }
  ~Terminal() { close(descriptor_); }

  // Reads until `text` has come.
  bool Shows(const std::string& text) {
    char buffer[4096];
    while (shown_.find(text) == shown_.npos) {
      const ssize_t count = read(descriptor_, buffer, sizeof buffer);
      if (count <= 0) return false;
      shown_.append(buffer, count);
    }
    return true;
  }
  void Type(const std::string& keys) const {
    ASSERT_EQ(write(descriptor_, keys.data(), keys.size()), std::ssize(keys));
  }
  // Of the exit; what is still shown is read.
  int Code() {
    Shows("never shown");
    int status = 0;
    waitpid(process_, &status, 0);
    return CodeOfStatus(status);
  }
  const std::string& shown() const { return shown_; }
  pid_t process() const { return process_; }

 private:
  int descriptor_ = -1;
  pid_t process_ = -1;
  std::string shown_;
};

// Whether the first has already ended it or not.
TEST_F(Watch, ASecondInterruptGivesTheTerminalBackToo) {
  Train("run", kShort);
  for (int i = 0; i < 20; ++i) {
    Terminal terminal({"watch", Directory("run").string()});
    ASSERT_TRUE(terminal.Shows("\033[J"));
    kill(terminal.process(), SIGINT);
    std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
    kill(terminal.process(), SIGINT);
    EXPECT_THAT(terminal.Code(), testing::AnyOf(0, 130));
    EXPECT_THAT(terminal.shown(), HasSubstr("\033[?25h\033[?1049l"));
  }
}

TEST_F(Watch, RedrawsUntilItsUserHasSeenEnough) {
  Train("run", kShort);
  const Arguments arguments{"watch", "--every", "0.1", Directory("run").string()};
  for (const std::string keys : {"xq", "\x03"}) {
    Terminal terminal(arguments);
    ASSERT_TRUE(terminal.Shows("\033[H"));
    ASSERT_TRUE(terminal.Shows("\033[J\033[H")) << "drawn once only";
    terminal.Type(keys);
    EXPECT_EQ(terminal.Code(), 0);
    // The screen of before comes back.
    EXPECT_THAT(terminal.shown(), EndsWith("\033[?25h\033[?1049l"));
    const std::string frame = terminal.shown().substr(0, terminal.shown().find("\033[J"));
    EXPECT_THAT(frame, HasSubstr("step 6 of 6"));
    const std::vector<std::string> lines = Split(frame, '\n');
    EXPECT_LE(lines.size(), 20u);
    for (const std::string& line : lines) EXPECT_LT(WidthOf(line), 60u) << line;
  }
  Terminal terminal(arguments);
  ASSERT_TRUE(terminal.Shows("\033[J"));
  kill(terminal.process(), SIGTERM);
  EXPECT_EQ(terminal.Code(), 0);
  EXPECT_THAT(terminal.shown(), EndsWith("\033[?25h\033[?1049l"));
}

TEST_F(Watch, FitsANarrowTerminal) {
  Train("run", kShort);
  Terminal terminal({"watch", Directory("run").string()}, 12);
  ASSERT_TRUE(terminal.Shows("\033[J"));
  terminal.Type("q");
  EXPECT_EQ(terminal.Code(), 0);
  for (const std::string& line : Split(terminal.shown(), '\n'))
    EXPECT_LT(WidthOf(line), 12u) << line;
}

// A short step counts for as little as it took.
TEST_F(Watch, SpeedIsTokensOverSeconds) {
  Train("run", kShort);
  ReplaceFileDurably(Directory("run") / "metrics.jsonl",
                     R"({"step":1,"loss":5,"seconds":1,"tokens_per_second":9000}
{"step":2,"loss":4,"seconds":9,"tokens_per_second":1000}
)");
  EXPECT_THAT(Once("run"), HasSubstr("\n  speed       1.8k tokens/s, 5 s a step\n"));
}

TEST_F(Watch, LongNamesLeaveRoomForValues) {
  Train("run", kShort);
  const Path metrics = Directory("run") / "metrics.jsonl";
  const std::string name(60, 'x');
  ReplaceFileDurably(metrics, ReadWholeFile(metrics) + R"({"step": 6, ")" + name + "/f1\": 7.5}\n");
  Terminal terminal({"watch", Directory("run").string()});
  ASSERT_TRUE(terminal.Shows("\033[J"));
  terminal.Type("q");
  EXPECT_EQ(terminal.Code(), 0);
  EXPECT_THAT(terminal.shown(), HasSubstr(" tokens/s, "));
  EXPECT_THAT(terminal.shown(), HasSubstr("xx/f1  7.5"));
}

}  // namespace
}  // namespace syntra
