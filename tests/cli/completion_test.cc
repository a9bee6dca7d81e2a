// SPDX-License-Identifier: Apache-2.0
// What shells complete.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/cli/shell.h"

namespace syntra {
namespace {

constexpr const char* kSettings = R"script(unset HISTFILE
PS1='ready> '
syntra() {
  if [[ $1 == completion ]]; then "$PROGRAM" "$@"; else printf '<%s>' "$@" $'done\n'; fi
}
eval "$(syntra completion bash)"
)script";

// A bash with which a user works in `folder`. Its `syntra` shows the arguments that it gets.
class TypedBash {
 public:
  explicit TypedBash(const Path& folder) {
    const Path settings = ScratchDirectory("bash") / "settings";
    ReplaceFileDurably(settings, kSettings);
    process_ = forkpty(&descriptor_, nullptr, nullptr, nullptr);
    if (process_ != 0) return;
    setenv("PROGRAM", SYNTRA_BINARY, 1);
    setenv("TERM", "dumb", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("INPUTRC", "/dev/null", 1);
    if (chdir(folder.c_str()) == 0) {
      execlp("bash", "bash", "--noprofile", "--rcfile", settings.c_str(), "-i", nullptr);
    }
    _exit(127);
  }
  ~TypedBash() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    close(descriptor_);
  }
  TypedBash(const TypedBash&) = delete;
  TypedBash& operator=(const TypedBash&) = delete;

  // The arguments, each in <>, where these keys and return are typed after "syntra ".
  std::string Arguments(const std::string& keys) {
    ReadTo("ready> ");
    const std::string line = "syntra " + keys + "\n";
    if (write(descriptor_, line.data(), line.size()) != std::ssize(line)) return "";
    const std::string shown = ReadTo("<done");
    return shown.substr(std::min(shown.find('<'), shown.size()));
  }

 private:
  // What is shown before `end`; empty if that does not come.
  std::string ReadTo(const std::string& end) {
    constexpr int kPatience = 20'000;  // in milliseconds
    std::string text;
    pollfd ready{.fd = descriptor_, .events = POLLIN, .revents = 0};
    while (!text.ends_with(end)) {
      char byte = 0;
      if (poll(&ready, 1, kPatience) <= 0 || read(descriptor_, &byte, 1) <= 0) return "";
      text += byte;
    }
    return text.substr(0, text.size() - end.size());
  }

  int descriptor_ = -1;
  pid_t process_ = -1;
};

TEST(Completion, OfBash) {
  const auto complete = [](const std::string& words) {
    return RunShell("eval \"$(\"$syntra\" completion bash)\"; COMP_WORDS=(\"$syntra\" " + words +
                    "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _syntra; echo \"${COMPREPLY[@]}\"")
        .out;
  };
  const Path runs = ScratchDirectory("runs");
  std::filesystem::create_directories(runs / "first/checkpoints/step-0000000005");
  std::filesystem::create_directories(runs / "notes/old");
  struct Case {
    std::string words, answer;
  };
  const Case cases[] = {
      {"co", "compare convert config completion"},
      {"config ''", "show diff explain"},
      {"inspect ''", "attention data checkpoint checkpoints memory shards"},
      {"completion ''", "bash zsh fish"},
      {"config show --f", "--full"},
      {"config show my.textproto ''", ""},
      {"config explain train.st", "train.steps train.stop_after_minutes"},
      {"config explain optimizer.sch",
       "optimizer.schedule optimizer.schedule.kind optimizer.schedule.rate "
       "optimizer.schedule.warmup_steps optimizer.schedule.final_rate"},
      {"config show --set train.st", "train.steps= train.stop_after_minutes="},
      {"convert --to s", "syntra safetensors"},
      // bash cuts words at "=".
      {"pretrain --set train.precision =", "FP32 BF16"},
      {"pretrain --set train.precision = B", "BF16"},
      {"pretrain --set train.recompute = ''", "NOTHING FEED_FORWARD LAYERS"},
      {"pretrain --set data.pack = ''", "true false"},
      {"pretrain --set train.steps = ''", ""},
      {"pretrain --set train.precision = BF16 --se", "--set"},
      // The shell puts a slash after a directory's name.
      {"eval --checkpoint " + (runs / "").string(), (runs / "first").string()},
      {"eval --checkpoint " + (runs / "notes/").string(), (runs / "notes/old").string()},
      {"inspect checkpoint " + (runs / "first/").string(), (runs / "first/checkpoints").string()},
      {"eval --checkpoint " + (runs / "first/checkpoints/").string(),
       (runs / "first/checkpoints/step-0000000005").string()},
  };
  for (const Case& each : cases) EXPECT_EQ(complete(each.words), each.answer + "\n") << each.words;
  const Outcome strict = RunShell(
      "eval \"$(\"$syntra\" completion bash)\"; set -u; COMP_CWORD=4; "
      "COMP_WORDS=(\"$syntra\" config show my.textproto ''); _syntra");
  EXPECT_EQ(strict.err, "");
}

TEST(Completion, OfBashQuotesNames) {
  const Path folder = ScratchDirectory("quoted");
  const std::string odd = "my run's \"dir\" $x \u00fcn\u00ef";
  CreateDirectories(folder / odd / "checkpoints");
  const std::string whole = "<eval><--checkpoint><" + odd + "/>";
  TypedBash bash(folder);
  ASSERT_EQ(bash.Arguments("eval --checkpoint my\t"), whole);
  EXPECT_EQ(bash.Arguments("eval --checkpoint my\\ ru\t"), whole);
  EXPECT_EQ(bash.Arguments("eval --checkpoint 'my r\t"), whole);
  EXPECT_EQ(bash.Arguments("eval --checkpoint \"my r\t"), whole);
  EXPECT_EQ(bash.Arguments("eval --checkpoint=my\t"), "<eval><--checkpoint=" + odd + "/>");
  EXPECT_EQ(bash.Arguments("eval --checkpoint my\t\t"),
            "<eval><--checkpoint><" + odd + "/checkpoints/>");
  EXPECT_EQ(bash.Arguments("eval --set train.prec\tB\t"), "<eval><--set><train.precision=BF16>");
}

TEST(Completion, OfWholeWords) {
  const Outcome outcome = Syntra("completion fish -- plan --set train.precision=B");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "train.precision=BF16\t\n");
  EXPECT_EQ(Syntra("completion fish -- convert --to=s").out, "--to=syntra\t\n--to=safetensors\t\n");
  EXPECT_EQ(Syntra("completion zsh -- do").out,
            "doctor\tDescribe this machine and what the program finds on it, for bug reports\n");
}

class CompletionScript : public testing::TestWithParam<const char*> {};

TEST_P(CompletionScript, IsOfItsShell) {
  const std::string shell = GetParam();
  if (!IsInstalled(shell)) GTEST_SKIP() << shell << " is not installed";
  const Outcome outcome =
      RunShell(fmt::format("\"$syntra\" completion {0} > $0.script && {0} -n $0.script", shell));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Completion, CompletionScript, testing::Values("bash", "zsh", "fish"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace syntra
