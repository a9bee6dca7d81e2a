// SPDX-License-Identifier: Apache-2.0
// Whole models from format to format, and against what transformers computed with them
// (tests/golden/make_huggingface.py).
#include "convert/convert.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/host.h"
#include "base/json.h"
#include "checkpoint/layout.h"
#include "config/config.h"
#include "convert/running_model.h"
#include "convert/sample_checkpoint.h"
#include "core/random.h"
#include "data/example.h"
#include "tests/base/error_of.h"
#include "tests/base/scratch.h"
#include "train/initial.h"

namespace syntra {
namespace {

using testing::HasSubstr;

class Fixtures : public ScratchTest, public testing::WithParamInterface<const char*> {
 protected:
  Path Made(const char* name) const { return scratch_ / name; }
  Conversion To(const ModelFormat& format, const Path& input, const Path& output) const {
    return Convert(input, output, format);
  }
};

TEST_P(Fixtures, ImportedGivesTheLogitsAndTheTextOfTransformers) {
  const Json expected = ParseJson(ReadWholeFile(Golden(GetParam()) / "expected.json"));
  const Conversion done = Convert(Golden(GetParam()), Made("imported"), kSyntraFormat);
  EXPECT_EQ(done.from, "huggingface");
  StoredModel model = kSyntraFormat.open(Made("imported"), {});
  EXPECT_EQ(model.config.data().input_length(), 64);
  const Tokenizer tokenizer("tokenizer", model.tokenizer, model.config.data().extra_ids());
  const TrialBatch batch = BatchOf(expected);
  Running running(std::move(model));

  const std::vector<double> logits = running.Logits(batch);
  size_t at = 0;
  double worst = 0;
  for (size_t row = 0; row < expected.at("logits").size(); ++row) {
    for (size_t t = 0; t < expected.at("logits")[row].size(); ++t) {
      const bool counts = batch.decoder_segments[row * batch.shape.target_length + t] > 0;
      for (const Json& logit : expected.at("logits")[row][t]) {
        const double found = logits.at(at++);
        if (counts) worst = std::max(worst, std::abs(found - logit.get<double>()));
      }
    }
  }
  EXPECT_EQ(at, logits.size());
  EXPECT_LE(worst, 1e-4);
  RecordProperty("worst", fmt::format("{:.1e}", worst));

  const auto greedy = running.Greedy(batch, 12);
  for (size_t row = 0; row < greedy.size(); ++row) {
    EXPECT_EQ(Json(greedy[row]), expected.at("greedy_ids")[row]) << row;
    EXPECT_EQ(Json(tokenizer.Decode(greedy[row])), expected.at("greedy_text")[row]) << row;
    // Tokens, too, are those that transformers found.
    std::vector<int32_t> ids =
        tokenizer.EncodeWithSentinels(std::string(expected.at("inputs")[row]));
    ids.push_back(tokenizer.eos_id());
    ids.resize(batch.shape.input_length, 0);
    EXPECT_EQ(Json(ids), expected.at("encoder_ids")[row]) << row;
  }
}

void ExpectSameParameters(StoredModel a, StoredModel b) {
  ASSERT_EQ(a.parameters->tensors(), b.parameters->tensors());
  for (const auto& [name, type] : a.parameters->tensors()) {
    std::vector<float> left(type.shape.size()), right(type.shape.size());
    a.parameters->Read(name, left);
    b.parameters->Read(name, right);
    EXPECT_EQ(std::memcmp(left.data(), right.data(), left.size() * sizeof(float)), 0) << name;
  }
  EXPECT_EQ(a.tokenizer, b.tokenizer);
  EXPECT_EQ(a.tokenizer_identity, b.tokenizer_identity);
}

TEST_P(Fixtures, RoundTripsAreExact) {
  Convert(Golden(GetParam()), Made("a"), kSyntraFormat);
  Convert(Made("a"), Made("b"), kHuggingFaceFormat, {.file_bytes = 4000});
  EXPECT_TRUE(Exists(Made("b") / kSafetensorsIndex));
  Convert(Made("b"), Made("c"), kSafetensorsFormat);
  Convert(Made("c"), Made("d"), kSyntraFormat);
  ExpectSameParameters(kSyntraFormat.open(Made("a"), {}), kSyntraFormat.open(Made("d"), {}));
  ExpectSameParameters(kSyntraFormat.open(Made("a"), {}),
                       kHuggingFaceFormat.open(Golden(GetParam()), {}));
  for (const Path& path : ListDirectory(scratch_)) {
    EXPECT_FALSE(path.filename().string().starts_with('.')) << path << " was left behind";
  }
}

using Parameters = std::map<std::string, std::vector<float>>;

// nullopt if the model is refused, which must be the checkpoint's fault.
std::optional<Parameters> ReadAll(const Path& directory) {
  try {
    const StoredModel model = kHuggingFaceFormat.open(directory, {});
    Parameters all;
    for (const auto& [name, type] : model.parameters->tensors()) {
      all[name].resize(type.shape.size());
      model.parameters->Read(name, all[name]);
    }
    return all;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kCheckpoint) << error.what();
    return std::nullopt;
  }
}

// The tensors of another source, without the last token's row.
class WithoutTheLastToken final : public TensorSource {
 public:
  explicit WithoutTheLastToken(TensorSource& inner, int64_t rows) : inner_(inner) {
    tensors_ = inner.tensors();
    for (auto& [name, type] : tensors_) {
      if (type.shape[0] == rows) type.shape = {rows - 1, type.shape[1]};
    }
  }
  void Read(std::string_view name, std::span<float> values) override {
    std::vector<float> whole(inner_.tensors().find(name)->second.shape.size());
    inner_.Read(name, whole);
    std::copy_n(whole.begin(), values.size(), values.begin());
  }

 private:
  TensorSource& inner_;
};

// As resize_token_embeddings leaves them: the model has one more token, as unlikely as padding.
TEST_P(Fixtures, AnOddVocabularyIsMadeEven) {
  constexpr int64_t kVocabulary = 80, kWidth = 16;
  CreateDirectories(Made("odd"));
  for (const char* file : {"spiece.model", "tokenizer_config.json"}) {
    std::filesystem::copy_file(Golden(GetParam()) / file, Made("odd") / file);
  }
  Json config = ParseJson(ReadWholeFile(Golden(GetParam()) / "config.json"));
  config["vocab_size"] = kVocabulary - 1;
  ReplaceFileDurably(Made("odd") / "config.json", JsonText(config));
  SafetensorsSource theirs(Golden(GetParam()));
  WithoutTheLastToken cut(theirs, kVocabulary);
  WriteTensors(cut, Made("odd"), {});

  Convert(Made("odd"), Made("even"), kSyntraFormat);
  const StoredModel even = kSyntraFormat.open(Made("even"), {});
  const StoredModel sound = kHuggingFaceFormat.open(Golden(GetParam()), {});
  EXPECT_EQ(even.config.model().vocabulary_size(), kVocabulary);
  ASSERT_EQ(even.parameters->tensors(), sound.parameters->tensors());
  for (const auto& [name, type] : sound.parameters->tensors()) {
    std::vector<float> expected(type.shape.size()), found(type.shape.size());
    sound.parameters->Read(name, expected);
    even.parameters->Read(name, found);
    if (type.shape[0] == kVocabulary) {
      std::copy_n(expected.begin(), kWidth, expected.end() - kWidth);
    }
    EXPECT_EQ(found, expected) << name;
  }
  Convert(Made("even"), Made("back"), kHuggingFaceFormat);
  EXPECT_EQ(ParseJson(ReadWholeFile(Made("back") / "config.json")).at("vocab_size"), kVocabulary);
}

// Safetensors have no checksums: a flipped bit of a value is another value. But one of the header
// must not give any tensor other values, and none may crash.
TEST_P(Fixtures, AFlippedBitIsRefusedOrChangesOneTensor) {
  const Path copy = Made("copy");
  std::filesystem::copy(Golden(GetParam()), copy);
  const Parameters sound = *ReadAll(copy);
  int refused = 0, changed = 0;
  for (const Path& path : ListDirectory(copy)) {
    if (path.extension() != ".safetensors") continue;
    std::string bytes = ReadWholeFile(path);
    const size_t header = ParseSafetensorsHeader(std::as_bytes(std::span(bytes))).bytes;
    for (uint64_t i = 0; i < 300; ++i) {
      // Twice as often in the header.
      const RandomBits random = RandomAt({3, 7}, i);
      const size_t at =
          i % 3 == 0 ? header + random[0] % (bytes.size() - header) : random[0] % header;
      const char bit = static_cast<char>(1 << random[1] % 8);
      bytes[at] = static_cast<char>(bytes[at] ^ bit);
      std::ofstream(path, std::ios::binary) << bytes;
      bytes[at] = static_cast<char>(bytes[at] ^ bit);
      const std::optional<Parameters> read = ReadAll(copy);
      if (!read) {
        EXPECT_LT(at, header);
        ++refused;
        continue;
      }
      int different = 0;
      for (const auto& [name, values] : sound) {
        const std::vector<float>& found = read->at(name);
        ASSERT_EQ(found.size(), values.size());
        different += std::memcmp(found.data(), values.data(), values.size() * sizeof(float)) != 0;
      }
      EXPECT_EQ(different, at < header ? 0 : 1) << "byte " << at << " of " << path;
      changed += different;
    }
    std::ofstream(path, std::ios::binary) << bytes;
  }
  EXPECT_GT(refused, 100);
  EXPECT_GE(changed, 100);
}

// What config.json and the index say after such a flip may be another sound model.
TEST_P(Fixtures, AFlippedBitOfADescriptionDoesNotCrash) {
  const Path copy = Made("copy");
  std::filesystem::copy(Golden(GetParam()), copy);
  for (const char* file : {"config.json", "tokenizer_config.json", kSafetensorsIndex}) {
    if (!Exists(copy / file)) continue;
    std::string bytes = ReadWholeFile(copy / file);
    for (uint64_t i = 0; i < 200; ++i) {
      const RandomBits random = RandomAt({4, 7}, i);
      const size_t at = random[0] % bytes.size();
      const char bit = static_cast<char>(1 << random[1] % 8);
      bytes[at] = static_cast<char>(bytes[at] ^ bit);
      std::ofstream(copy / file, std::ios::binary) << bytes;
      bytes[at] = static_cast<char>(bytes[at] ^ bit);
      try {
        kHuggingFaceFormat.open(copy, {});
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ExitCode::kInternal) << error.what();
      }
    }
    std::ofstream(copy / file, std::ios::binary) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(HuggingFace, Fixtures, testing::Values("t5_v1_0", "flan_t5"),
                         [](const auto& info) { return std::string(info.param); });

class Converting : public ScratchTest {
 protected:
  // The run directory of a model with this mixer.
  Path Synthesizer(const std::string& mixer) {
    SaveSample(scratch_ / "run", SampleModel(mixer));
    return scratch_ / "run";
  }
  std::string Complaint(const Path& input, const ModelFormat& to, const Path& output,
                        ExitCode code) {
    return ErrorOf([&] { Convert(input, output, to); }, code);
  }
};

TEST_F(Converting, SynthesizersToSafetensorsAndBack) {
  for (const auto& [name, mixer] : TrialMixers()) {
    const Path run = Synthesizer(mixer);
    Convert(run, scratch_ / "out", kSafetensorsFormat);
    Convert(scratch_ / "out", scratch_ / "back", kSyntraFormat);
    ExpectSameParameters(kSyntraFormat.open(run, {}), kSyntraFormat.open(scratch_ / "back", {}));
    for (const char* made : {"run", "out", "back"}) RemoveAll(scratch_ / made);
  }
}

TEST_F(Converting, AMixerOfAnotherKindIsNamed) {
  const Path run = Synthesizer(TrialMixers().at("light_conv"));
  EXPECT_THAT(Complaint(run, kHuggingFaceFormat, scratch_ / "theirs", ExitCode::kConfig),
              HasSubstr("model.mixer is a light_conv"));
}

TEST_F(Converting, ABodyOtherThanT5sIsRefusedByItsFields) {
  ModelConfig model = ListedModel(TrialBodies().at("learned_positions"));
  model.set_vocabulary_size(80);
  SaveSample(scratch_ / "run", model);
  EXPECT_THAT(
      Complaint(scratch_ / "run", kHuggingFaceFormat, scratch_ / "theirs", ExitCode::kConfig),
      AllOf(HasSubstr("model.norm"), HasSubstr("model.positions"),
            HasSubstr("model.feed_forward.bias")));
}

TEST_F(Converting, AListOfLayersToSafetensorsAndBack) {
  const Path run = scratch_ / "run";
  ModelConfig model = ListedModel("encoder { layers { mixer { " + TrialMixers().at("random") +
                                  " } } layers { repeat: 2 weights: 'shared' } }");
  model.set_vocabulary_size(80);
  SaveSample(run, model);
  Convert(run, scratch_ / "out", kSafetensorsFormat);
  Convert(scratch_ / "out", scratch_ / "back", kSyntraFormat);
  ExpectSameParameters(kSyntraFormat.open(run, {}), kSyntraFormat.open(scratch_ / "back", {}));
  EXPECT_THAT(Complaint(run, kHuggingFaceFormat, scratch_ / "theirs", ExitCode::kConfig),
              HasSubstr("model.encoder.layers[0].mixer has a random"));
}

// Where none is set it follows from the settings of span corruption; earlier files lack these.
TEST_F(Converting, SafetensorsKeepTheLengthOfTargets) {
  Convert(Synthesizer(""), scratch_ / "out", kSafetensorsFormat);
  const Path file = scratch_ / "out/model.json";
  const auto target_length = [&] {
    return RowLengths(kSafetensorsFormat.open(scratch_ / "out", {}).config.data()).targets;
  };
  Json json = ParseJson(ReadWholeFile(file));
  const int64_t by_default = target_length();
  json["data"]["noise_density"] = 0.5;
  json["data"]["mean_span_length"] = 2;
  ReplaceFileDurably(file, JsonText(json, 2) + "\n");
  EXPECT_GT(target_length(), by_default);
  Convert(scratch_ / "out", scratch_ / "back", kSyntraFormat);
  Convert(scratch_ / "back", scratch_ / "again", kSafetensorsFormat);
  EXPECT_EQ(ParseJson(ReadWholeFile(scratch_ / "again/model.json")), json);
  json["data"].erase("noise_density");
  json["data"].erase("mean_span_length");
  ReplaceFileDurably(file, JsonText(json, 2) + "\n");
  EXPECT_EQ(target_length(), by_default);
}

TEST_F(Converting, WeightsOnlyCheckpointsKeepStepAndRun) {
  Convert(Synthesizer(""), scratch_ / "light", kSyntraFormat);
  const StoredModel light = kSyntraFormat.open(scratch_ / "light", {});
  EXPECT_EQ(light.step, 7);
  EXPECT_EQ(light.run_id, "abc");
  const Checkpoint checkpoint(scratch_ / "light/checkpoints" / StepName(7));
  for (const auto& [name, entry] : checkpoint.tensors()) {
    EXPECT_TRUE(name.starts_with(kParametersGroup)) << name;
  }
}

TEST_F(Converting, BFloat16IsHeldToItsRounding) {
  Convert(Synthesizer(""), scratch_ / "out", kHuggingFaceFormat, {.type = SafetensorsType::kBF16});
  EXPECT_TRUE(Exists(scratch_ / "out/model.safetensors"));
}

TEST_F(Converting, TheInputMayBeALink) {
  const Path run = Synthesizer(""), link = scratch_ / "latest";
  std::filesystem::create_directory_symlink(run / kCheckpointsFolder / StepName(7), link);
  const Conversion done = Convert(link, scratch_ / "out", kHuggingFaceFormat);
  EXPECT_THAT(done.source, HasSubstr(StepName(7)));
}

TEST_F(Converting, WhatIsInTheWayStays) {
  const Path run = Synthesizer("");
  EXPECT_THAT(Complaint(run, kHuggingFaceFormat, run, ExitCode::kConfig), HasSubstr("not empty"));
  CreateDirectories(scratch_ / "empty");
  Convert(run, scratch_ / "empty/", kHuggingFaceFormat);
  EXPECT_TRUE(Exists(scratch_ / "empty/config.json"));
  // A directory cannot take the place of these.
  CreateDirectories(scratch_ / "target");
  std::filesystem::create_symlink(scratch_ / "target", scratch_ / "link");
  for (const char* link : {"link", "link/"}) {
    EXPECT_THAT(Complaint(run, kHuggingFaceFormat, scratch_ / link, ExitCode::kConfig),
                HasSubstr("is a symbolic link"));
  }
  EXPECT_THAT(Complaint(run, kHuggingFaceFormat, ".", ExitCode::kConfig),
              HasSubstr("is the working directory"));
}

TEST_F(Converting, TheModelsInADirectoryAreNamed) {
  const Path run = Synthesizer("");
  EXPECT_THAT(
      Complaint(scratch_, kHuggingFaceFormat, scratch_ / "out", ExitCode::kCheckpoint),
      HasSubstr("is no model itself, but these in it are; name one of them: " + run.string()));
}

TEST_F(Converting, TheDirectoryOfAFileOfAModelIsNamed) {
  const Path hub = Golden("t5_v1_0");
  EXPECT_THAT(
      Complaint(hub / "model.safetensors", kSyntraFormat, scratch_ / "out", ExitCode::kCheckpoint),
      HasSubstr("is no model itself, but its directory is; name that: " + hub.string()));
}

// A process that still runs may be writing there.
TEST_F(Converting, WhatAKilledConversionLeftIsRemoved) {
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  waitpid(ended, nullptr, 0);
  const auto building = [&](const std::string& name, const std::string& host, pid_t process) {
    const Path path = scratch_ / fmt::format(".{}.tmp-{}-{}", name, host, process);
    CreateDirectories(path / "model");
    return path;
  };
  const Path abandoned = building("out", HostName(), ended);
  const Path kept[] = {building("out", HostName(), getppid()), building("other", HostName(), ended),
                       building("out", "elsewhere", ended),
                       // No ids of processes.
                       building("out", HostName(), 0), building("out", HostName(), -ended)};
  Convert(Synthesizer(""), scratch_ / "out", kHuggingFaceFormat);
  EXPECT_FALSE(Exists(abandoned));
  for (const Path& path : kept) EXPECT_TRUE(Exists(path)) << path;
}

// Whose fault it is: of the file that was given, or of what describes the model.
TEST_F(Converting, FilesThatAreWrongAreNamed) {
  const Path hub = scratch_ / "hub", text = scratch_ / "text", out = scratch_ / "out";
  std::filesystem::copy(Golden("t5_v1_0"), hub);
  ReplaceFileDurably(text, "no tokenizer");
  const auto complaint = [&](const Path& tokenizer, ExitCode code) {
    try {
      Convert(hub, out, kSyntraFormat, {}, tokenizer);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(complaint(text, ExitCode::kData), HasSubstr("is another than the model's own"));
  RenameDurably(hub / "spiece.model", scratch_ / "own.model");
  EXPECT_THAT(complaint(text, ExitCode::kData), HasSubstr(text.string() + " is not a Sentence"));
  EXPECT_THAT(complaint(scratch_ / "none", ExitCode::kConfig), HasSubstr("does not exist"));
  RenameDurably(scratch_ / "own.model", hub / "spiece.model");
  Json config = ParseJson(ReadWholeFile(hub / "config.json"));
  config["dropout_rate"] = 2;
  ReplaceFileDurably(hub / "config.json", JsonText(config));
  EXPECT_THAT(complaint({}, ExitCode::kCheckpoint), HasSubstr("model.dropout: 2 is not allowed"));
  EXPECT_FALSE(Exists(out));
}

TEST_F(Converting, RefusalsLeaveNothing) {
  const Path run = Synthesizer(TrialMixers().at("random"));
  const Path out = scratch_ / "out";
  EXPECT_THAT(Complaint(run, kHuggingFaceFormat, out, ExitCode::kConfig), HasSubstr("Synthesizer"));
  EXPECT_THAT(Complaint(scratch_ / "nowhere", kSyntraFormat, out, ExitCode::kConfig),
              HasSubstr("does not exist"));
  CreateDirectories(scratch_ / "empty");
  EXPECT_THAT(Complaint(scratch_ / "empty", kSyntraFormat, out, ExitCode::kCheckpoint),
              HasSubstr("is no model"));
  CreateDirectories(scratch_ / "hub");
  for (const char* file : {"config.json", "model.safetensors", "tokenizer_config.json"}) {
    std::filesystem::copy_file(Golden("t5_v1_0") / file, scratch_ / "hub" / file);
  }
  EXPECT_THAT(Complaint(scratch_ / "hub", kSyntraFormat, out, ExitCode::kData),
              HasSubstr("put it there, or name it: in data.tokenizer for a run, with --tokenizer "
                        "FILE for syntra convert (a tokenizer.json cannot take its place)"));
  Convert(scratch_ / "hub", scratch_ / "with", kSyntraFormat, {},
          Golden("t5_v1_0") / "spiece.model");
  // The sample's vocabulary is larger than the model's.
  ReplaceFileDurably(scratch_ / "hub/spiece.model",
                     ReadWholeFile(Path(SYNTRA_SOURCE_DIR) / "data/sample/spiece.model"));
  EXPECT_THAT(Complaint(scratch_ / "hub", kSyntraFormat, out, ExitCode::kConfig),
              HasSubstr("vocabulary_size"));
  EXPECT_FALSE(Exists(out));
  EXPECT_EQ(ListDirectory(scratch_).size(), 4u) << "run, empty, hub and with";
}

// A public T5 as the start of the paper's mixtures: at one end of the gate the model is still that
// T5.
TEST_F(Converting, WarmStartOfAMixtureFromHuggingFace) {
  const Json expected = ParseJson(ReadWholeFile(Golden("t5_v1_0") / "expected.json"));
  const TrialBatch batch = BatchOf(expected);
  StoredModel vanilla = kHuggingFaceFormat.open(Golden("t5_v1_0"), {});
  const ModelConfig base = vanilla.config.model();
  const std::string identity = vanilla.tokenizer_identity;
  const std::vector<double> logits = Running(std::move(vanilla)).Logits(batch);
  for (const bool dense : {false, true}) {
    for (const double alpha : {20.0, -20.0}) {
      ModelConfig mixed = base;
      AttentionConfig& attention = *mixed.mutable_mixer()->mutable_attention();
      if (dense) {
        attention.add_term()->mutable_dense()->set_max_length(16);
      } else {
        attention.add_term()->mutable_random()->set_max_length(16);
      }
      attention.add_term()->mutable_dot_product();
      attention.set_gate(AttentionConfig::SIGMOID);
      attention.set_initial_alpha(alpha);
      Config config;
      *config.mutable_model() = mixed;
      Replica replica(TrainingPlan::Make(config, {.backend = &FastBackend()}), 0);
      replica.InitializeParameters(1);
      StoredParameters initial = OpenForeign(Golden("t5_v1_0")).value();
      RunIdentity identities{.tokenizer_identity = identity};
      CheckpointConfig options;
      EXPECT_THROW(LoadInitial(initial, options, replica, &identities), Error);
      options.set_initial_missing(CheckpointConfig::INITIALIZE);
      LoadInitial(initial, options, replica, &identities);
      std::map<std::string, TensorView> tensors;
      for (const HostTensor& tensor : replica.ParameterTensors()) {
        tensors[tensor.name] = {tensor.values, tensor.type};
      }
      Running running(mixed, [&](const std::string& name, std::span<float> values) {
        std::ranges::copy(tensors.at(kParametersGroup + name).As<float>(), values.begin());
      });
      const std::vector<double> found = running.Logits(batch);
      double worst = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        worst = std::max(worst, std::abs(found[i] - logits[i]));
      }
      if (alpha > 0) {
        EXPECT_LE(worst, 1e-5) << dense;
      } else {
        EXPECT_GT(worst, 1e-3) << "the synthetic term alone is another model";
      }
    }
  }
}

}  // namespace
}  // namespace syntra
