// SPDX-License-Identifier: Apache-2.0
// What `report` shows of runs.
#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/e2e/recorded.h"

namespace syntra {
namespace {

using testing::HasSubstr;
using testing::Not;

class Reports : public Recorded {
 protected:
  // A finished run of six steps whose records are these.
  void Write(const std::string& name, double slope) const {
    Train(name, {"train.steps=6"});
    std::string metrics;
    for (int step = 0; step <= 6; ++step) {
      if (step > 0) {
        metrics += fmt::format(
            "{{\"step\":{},\"loss\":{},\"tokens_per_second\":2000,\"seconds\":5,\"mfu\":0.25}}\n",
            step, 10 - slope * step);
      }
      if (step % 3 == 0) {
        metrics += fmt::format("{{\"step\":{},\"validation_log_perplexity\":{}}}\n", step,
                               9 - slope * step);
      }
    }
    ReplaceFileDurably(Directory(name) / "metrics.jsonl", metrics);
    std::filesystem::remove(Directory(name) / "events.jsonl");
  }
};

TEST_F(Reports, NamesCommandNoTerminal) {
  Train("run", {"train.steps=4"});
  std::filesystem::rename(Directory("run"), Directory("r\033[2Jn"));
  const Outcome outcome = Run({"report", Directory("r\033[2Jn").string()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("r\\x1b[2Jn: 4 of 4 steps"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("\033")));
}

TEST_F(Reports, TextAndJson) {
  Write("run", 1);
  const Arguments arguments{"report", Directory("run").string()};
  const Outcome ascii = Run(arguments, {.environment = {"LC_ALL=C"}});
  const std::string expected = Directory("run").string() + R"(: 6 of 6 steps, done
  model       2+2 layers of width 32, random + dot_product; 53.8k parameters
  throughput  2.0k tokens/s, MFU 25.0%; 30s in 6 steps
  training    9.0000 at step 1, 4.0000 at step 6
  validation  9.0000 at step 0, 3.0000 at step 6

Log-perplexity against step: training ..., validation o

9.00 |o           ...
     |               ......
     |                     ......
     |                           ......
     |                                 .........
     |                                    o     .........
     |                                                   ......
     |                                                         ......
     |                                                               ......
     |                                                                     ....
     |
3.00 |                                                                        o
      0                                                                       6
)";
  EXPECT_EQ(ascii.out, expected);
  const Outcome braille = Run({"report", Directory("run").string(), Directory("run").string()},
                              {.environment = {"LC_ALL=C.UTF-8"}});
  EXPECT_NE(braille.out.find("\u2809"), std::string::npos) << braille.out;
  EXPECT_EQ(Split(braille.out, '\n').size(), 2 * Split(ascii.out, '\n').size());
  const Json json = Report("run");
  EXPECT_EQ(json.at("validation").at("last").at("log_perplexity"), 3);
  EXPECT_EQ(json.at("tokens_per_second"), 2000);
  const Outcome none = Run({"report", scratch_.string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(none.Says("is not the directory of a run: it has no metrics.jsonl")) << none.err;
  // As while a large corpus is prepared.
  CreateDirectories(Directory("early") / "log");
  ReplaceFileDurably(Directory("early") / "log/rank-0000.log", "");
  const Outcome early = Run({"report", Directory("early").string()});
  EXPECT_EQ(early.code, 2);
  EXPECT_TRUE(early.Says("has no metrics.jsonl yet, since it has not begun to train")) << early.err;
  const Path picture = Directory("run") / "curve.svg";
  ASSERT_EQ(Run({"report", "--svg", picture.string(), Directory("run").string()}).code, 0);
  const std::string svg = ReadWholeFile(picture);
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  // From the upper left to the lower right corner; the last value stands in the legend.
  EXPECT_NE(svg.find("points=\"76.0,20.0 540.0,370.0 \""), svg.npos) << svg;
  EXPECT_NE(svg.find(">run  3.00</text>"), svg.npos) << svg;
}

TEST_F(Reports, PageAndPictures) {
  Write("a", 1);
  Write("b", 0.5);
  Train("c", {"train.steps=6", "model.width=16"});
  const Path page = scratch_ / "report.html";
  const Arguments runs{Directory("a").string(), Directory("b").string(), Directory("c").string()};
  const auto report = [&](Arguments options) {
    options.insert(options.begin(), "report");
    options.insert(options.end(), runs.begin(), runs.end());
    return Run(options);
  };
  ASSERT_EQ(report({"--html", page.string()}).code, 0);
  const std::string html = ReadWholeFile(page);
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  for (const char* title :
       {"Log-perplexity on the validation split", "Throughput", "Phases of a step",
        "Where the time went", "Events", "Differences of the configurations"}) {
    EXPECT_THAT(html, HasSubstr("<h2>" + std::string(title)));
  }
  // All three curves in one picture, with their last values.
  EXPECT_THAT(html, HasSubstr(">a  3.00</text>"));
  EXPECT_THAT(html, HasSubstr(">b  6.00</text>"));
  EXPECT_THAT(html, HasSubstr(">c  "));
  EXPECT_THAT(html, HasSubstr("<tr><td>model.width</td><td>32</td><td>32</td><td>16</td></tr>"));
  EXPECT_THAT(html, Not(HasSubstr("train.directory")));
  EXPECT_THAT(html, HasSubstr("<title>forward: "));
  // Neither scripts nor anything from elsewhere.
  for (const char* foreign : {"<script", "src=", "href=", "url(", "@import"}) {
    EXPECT_THAT(html, Not(HasSubstr(foreign)));
  }

  const Path picture = scratch_ / "picture.svg";
  for (const char* name : {"validation", "training", "throughput", "phases", "time", "events",
                           "learning_rate", "gradient_norm"}) {
    ASSERT_EQ(report({"--svg", picture.string(), "--picture", name}).code, 0) << name;
    const std::string svg = ReadWholeFile(picture);
    EXPECT_TRUE(svg.starts_with("<svg ")) << name;
    EXPECT_THAT(html, HasSubstr(svg)) << name;
  }
  // Those of early versions know nothing of phases.
  const Outcome none =
      Run({"report", "--svg", picture.string(), "--picture", "phases", Directory("a").string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(none.Says("none of these runs has what the picture \"phases\" shows")) << none.err;
}

// A run on tasks has metrics and no log-perplexity of a validation split.
TEST_F(Reports, MetricsOfTasks) {
  Train("run", {"train.steps=6"});
  std::string metrics;
  for (const auto& [step, value] : {std::pair{0, 10.0}, {3, 40.5}, {6, 30.0}}) {
    metrics +=
        fmt::format("{{\"step\":{},\"loss\":2,\"tokens_per_second\":1,\"seconds\":1}}\n", step);
    metrics +=
        fmt::format("{{\"step\":{},\"cola/matthews\":{},\"cola_invalid\":0}}\n", step, value);
  }
  ReplaceFileDurably(Directory("run") / "metrics.jsonl", metrics);
  const std::string expected =
      "\n  cola/matthews  10.00 at step 0, 30.00 at step 6, highest 40.50 at step 3\n";
  for (const Arguments& command : {Arguments{"report"}, Arguments{"watch", "--once"}}) {
    Arguments whole = command;
    whole.push_back(Directory("run").string());
    const Outcome outcome = Run(whole);
    EXPECT_THAT(outcome.out, HasSubstr(expected));
    EXPECT_THAT(outcome.out, HasSubstr("\n  training       2.0000"));  // values under one another
    EXPECT_THAT(outcome.out, Not(HasSubstr("  validation ")));
  }
  const Json last = Report("run").at("metrics").at("cola/matthews").at("last");
  EXPECT_EQ(last.at("step"), 6);
  EXPECT_EQ(last.at("value"), 30);
  const Path page = scratch_ / "report.html";
  ASSERT_EQ(Run({"report", "--html", page.string(), Directory("run").string()}).code, 0);
  EXPECT_THAT(ReadWholeFile(page), HasSubstr("<h2>cola/matthews"));
  const Outcome nowhere =
      Run({"report", "--html", (scratch_ / "no/page.html").string(), Directory("run").string()});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_TRUE(nowhere.Says("there is no directory " + (scratch_ / "no").string())) << nowhere.err;
}

TEST_F(Reports, AloneThePageHasTheConfiguration) {
  Train("run", kShort);
  const Path page = scratch_ / "report.html";
  ASSERT_EQ(Run({"report", "--html", page.string(), Directory("run").string()}).code, 0);
  const std::string html = ReadWholeFile(page);
  EXPECT_THAT(html, HasSubstr("<h1>run</h1>"));
  EXPECT_THAT(html, HasSubstr("steps: 6"));
  EXPECT_THAT(html, HasSubstr("<td>done</td>"));
}

TEST_F(Reports, SamplesOverTime) {
  Train("a", kSampled);
  Train("b", kSampled);
  Train("none", kShort);
  const Json samples = Report("a").at("samples");
  const Json last = Lines("a", "samples.jsonl").back();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples.at(1).at("output"), last.at("output"));
  EXPECT_EQ(samples.at(1).at("step"), 6);
  EXPECT_TRUE(Report("none").at("samples").empty());
  const Outcome text = Run({"report", Directory("a").string()});
  EXPECT_THAT(text.out, HasSubstr(fmt::format("Validation example {} at step 6:\n  input   ",
                                              last.at("example").get<int64_t>())));
  const Path page = scratch_ / "report.html";
  ASSERT_EQ(Run({"report", "--html", page.string(), Directory("a").string(),
                 Directory("none").string(), Directory("b").string()})
                .code,
            0);
  const std::string html = ReadWholeFile(page);
  EXPECT_THAT(html, HasSubstr("<h2>Samples over time</h2>"));
  EXPECT_THAT(html, HasSubstr("<p>Truth: [0] "));
  EXPECT_THAT(html, HasSubstr("<tr><th>step</th><th>a</th><th>b</th></tr>\n<tr><td>0</td>"));
  EXPECT_THAT(html, Not(HasSubstr("extra_id")));
}

// The first of these programs that is installed; empty: none.
std::string Installed(const std::vector<std::string>& names) {
  const char* path = std::getenv("PATH");
  for (const std::string& name : names) {
    for (const std::string& folder : Split(path ? path : "", ':')) {
      if (access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
    }
  }
  return "";
}

// Looks at pages with a browser that has no window and no network.
class InABrowser : public Reports {
 protected:
  void SetUp() override {
    browser_ = Installed({"chromium", "chromium-browser", "google-chrome"});
    python_ = Installed({"python3"});
    if (browser_.empty()) GTEST_SKIP() << "no browser: install chromium";
    if (python_.empty()) GTEST_SKIP() << "no python3";
    Reports::SetUp();
  }
  std::string Browse(const Path& page, const Arguments& options) const {
    Arguments arguments{"--headless",
                        "--no-sandbox",
                        "--disable-gpu",
                        "--disable-dev-shm-usage",
                        "--hide-scrollbars",
                        "--host-resolver-rules=MAP * ~NOTFOUND",
                        "--user-data-dir=" + (scratch_ / "browser").string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.push_back("file://" + page.string());
    const Outcome shown = RunProgram(scratch_, arguments, {.program = browser_});
    EXPECT_EQ(shown.code, 0) << shown.err;
    return shown.out;
  }
  // How many pixels of the page have which colour.
  Json Colours(const Path& page, const std::string& option) const {
    const Path screenshot = scratch_ / "page.png";
    Browse(page, {option, "--window-size=900,2200", "--screenshot=" + screenshot.string()});
    const Outcome counted =
        RunProgram(scratch_, {SYNTRA_SOURCE_DIR "/tests/e2e/count_colours.py", screenshot.string()},
                   {.program = python_});
    EXPECT_EQ(counted.code, 0) << counted.err;
    return ParseJson(counted.out);
  }
  Path PageOf(const std::vector<std::string>& runs) const {
    const Path page = scratch_ / "report.html";
    Arguments report{"report", "--html", page.string()};
    for (const std::string& run : runs) report.push_back(Directory(run).string());
    EXPECT_EQ(Run(report).code, 0);
    return page;
  }

 private:
  std::string browser_, python_;
};

// The bars and lines of the page are on the screen, in their colours.
TEST_F(InABrowser, ThePageIsLightOrDark) {
  Train("a", kShort);
  Train("b", kShort);
  const Path page = PageOf({"a", "b"});
  constexpr int kPixels = 900 * 2200;
  const Json light = Colours(page, "--blink-settings=preferredColorScheme=1");
  const Json dark = Colours(page, "--blink-settings=preferredColorScheme=0");
  EXPECT_GT(light.value("#ffffff", 0), kPixels / 2);
  EXPECT_GT(dark.value("#181818", 0), kPixels / 2);
  EXPECT_LT(dark.value("#ffffff", 0), kPixels / 100);
  for (const Json* colours : {&light, &dark}) {
    // Those of the two curves; the forward and backward passes of the bars are of these, too.
    for (const char* colour : {"#0072b2", "#d55e00", "#009e73"}) {
      EXPECT_GT(colours->value(colour, 0), 500) << colour;
    }
  }
}

// In a frame as narrow as a telephone wide pictures and tables scroll by themselves, not the page.
TEST_F(InABrowser, ThePageIsAsNarrowAsItsWindow) {
  Train("run", kSampled);
  const std::string html = ReadWholeFile(PageOf({"run"}));
  const Path frame = scratch_ / "frame.html";
  ReplaceFileDurably(
      frame,
      "<!DOCTYPE html><iframe width=\"400\" height=\"3000\" srcdoc=\"" + XmlText(html) +
          "\"></iframe><script>onload = () => { const root = frames[0].document.documentElement; "
          "document.body.dataset.widths = root.clientWidth + ' ' + root.scrollWidth; }</script>");
  EXPECT_THAT(Browse(frame, {"--dump-dom"}), HasSubstr("data-widths=\"400 400\""));
}

}  // namespace
}  // namespace syntra
